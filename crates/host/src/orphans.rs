//! Children that nobody waits for: the first process of a container inherits them, and has to.
//!
//! The first process also has children of its own, whose end someone in it waits for, such as QEMU. If it waited for
//! just any child, it would take their exit status away. So it is told which are its own: [`Orphans::starting`] before
//! a child is started, [`Starting::started`] after. Between the two nothing is reaped, for the number of the new child
//! is not known yet.
//!
//! ```
//! use std::process::Command;
//! use kubevirt_host::orphans::Orphans;
//!
//! let orphans = Orphans::default();
//! let starting = orphans.starting();
//! let mut child = Command::new("true").spawn()?;
//! let owned = starting.started(child.id());
//! // At each SIGCHLD:
//! for ended in orphans.reap()? {
//!     println!("{ended}");
//! }
//! assert!(child.wait()?.success());
//! drop(owned);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, waitid};

/// Reaps the children that this process inherited. Clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct Orphans(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// Own children, by number; a number can be there twice when it is used again before its first owner lets go.
    owned: BTreeMap<u32, usize>,
    /// Children that are being started.
    starting: usize,
    /// Someone wanted to reap meanwhile.
    missed: bool,
}

/// A child is being started: nothing is reaped while this is held. It may also be held for the whole life of a child.
#[derive(Debug)]
#[must_use]
pub struct Starting(Orphans);

/// A child of our own: it is not reaped while this is held.
#[derive(Debug)]
#[must_use]
pub struct Owned {
    orphans: Orphans,
    process: u32,
}

/// A child that was reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its number.
    pub process: u32,
    /// What it ended with, or the signal that ended it.
    pub status: Result<i32, i32>,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Ok(code) => write!(f, "process {} ended with {code}", self.process),
            Err(signal) => write!(f, "process {} was ended by signal {signal}", self.process),
        }
    }
}

impl Orphans {
    /// Says that a child is about to be started.
    pub fn starting(&self) -> Starting {
        self.known().starting += 1;
        Starting(self.clone())
    }

    /// Reaps all that ended and is not owned. Call it at every `SIGCHLD`, and once at the start. While a child is being
    /// started it does nothing, and is done when that is over.
    pub fn reap(&self) -> io::Result<Vec<Ended>> {
        let mut known = self.known();
        if known.starting > 0 {
            known.missed = true;
            return Ok(Vec::new());
        }
        known.missed = false;
        // Still locked: no child can be started, end and get lost between the look and the wait.
        let ended = ended_children(std::process::id())?;
        ended
            .into_iter()
            .filter(|process| !known.owned.contains_key(process))
            .map(wait_for)
            .filter_map(Result::transpose)
            .collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Starting {
    /// Says that the child was started, and has this number.
    pub fn started(self, process: u32) -> Owned {
        *self.0.known().owned.entry(process).or_default() += 1;
        Owned { orphans: self.0.clone(), process }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        let mut known = self.0.known();
        known.starting = known.starting.saturating_sub(1);
        let due = known.missed && known.starting == 0;
        drop(known);
        if due {
            // What cannot be read now is tried again at the next signal.
            let _ = self.0.reap();
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let mut known = self.orphans.known();
        if let Some(times) = known.owned.get_mut(&self.process) {
            *times -= 1;
            if *times == 0 {
                known.owned.remove(&self.process);
            }
        }
    }
}

/// Children that ended and were not waited for. Asking the kernel for any such child would show only the first, over
/// and over, and hide all others behind one that is owned.
fn ended_children(parent: u32) -> io::Result<Vec<u32>> {
    let mut ended = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = fs::read(entry.path().join("stat")) else { continue };
        if state_and_parent(&String::from_utf8_lossy(&stat)) == Some(('Z', parent)) {
            ended.push(process);
        }
    }
    Ok(ended)
}

/// Reads `NUMBER (NAME) STATE PARENT …`; a name can have brackets and spaces in it.
fn state_and_parent(stat: &str) -> Option<(char, u32)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Waits for one child; none if someone else did.
fn wait_for(process: u32) -> io::Result<Option<Ended>> {
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return Ok(None) };
    match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(status) => Ok(status.map(|status| Ended { process, status: outcome(&status) })),
        Err(Errno::CHILD) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn outcome(status: &WaitIdStatus) -> Result<i32, i32> {
    match status.terminating_signal() {
        Some(signal) => Err(signal),
        None => Ok(status.exit_status().unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn reads_state_and_parent() {
        for (stat, expected) in [
            ("12 (sleep) S 1 12 12", Some(('S', 1))),
            ("13 (a) Z (b) c) Z 7 13", Some(('Z', 7))),
            ("14 (x) Z", None),
            ("", None),
        ] {
            assert_eq!(state_and_parent(stat), expected, "{stat}");
        }
    }

    /// Reaping takes what other tests wait for, so it is tested in a process of its own.
    #[test]
    fn reaps_orphans_only() {
        const INSIDE: &str = "KUBEVIRT_HOST_ORPHANS";
        if std::env::var_os(INSIDE).is_some() {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
            reaps_what_was_left_behind();
            leaves_own_children_alone();
            waits_while_a_child_is_started();
            return;
        }
        let test = "orphans::tests::reaps_orphans_only";
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn reaps_what_was_left_behind() {
        let orphans = Orphans::default();
        let starting = orphans.starting();
        // The shell ends at once and leaves two children to us.
        let mut shell = Command::new("sh")
            .args(["-c", "(exit 3) & (kill -9 $(sh -c 'echo $PPID')) & exit 0"])
            .spawn()
            .unwrap();
        let owned = starting.started(shell.id());
        assert!(shell.wait().unwrap().success());
        drop(owned);
        let mut statuses: Vec<_> = reap(&orphans, 2).iter().map(|ended| ended.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [Ok(3), Err(9)]);
    }

    fn leaves_own_children_alone() {
        let orphans = Orphans::default();
        let mut children: Vec<(Child, Owned)> = (1..=3).map(|code| ended_child(&orphans, code)).collect();
        assert_eq!(orphans.reap().unwrap(), []);
        let (forgotten, owned) = children.remove(1);
        drop(owned);
        assert_eq!(orphans.reap().unwrap(), [Ended { process: forgotten.id(), status: Ok(2) }]);
        for ((mut child, _owned), code) in children.into_iter().zip([1, 3]) {
            assert_eq!(child.wait().unwrap().code(), Some(code));
        }
    }

    fn waits_while_a_child_is_started() {
        let orphans = Orphans::default();
        let (forgotten, owned) = ended_child(&orphans, 5);
        drop(owned);
        let starting = orphans.starting();
        assert_eq!(orphans.reap().unwrap(), []);
        assert!(fs::exists(format!("/proc/{}", forgotten.id())).unwrap());
        drop(starting);
        assert!(!fs::exists(format!("/proc/{}", forgotten.id())).unwrap());
    }

    /// Starts a child and waits until it ended, without taking its status.
    fn ended_child(orphans: &Orphans, code: i32) -> (Child, Owned) {
        let starting = orphans.starting();
        let child = Command::new("sh").args(["-c", &format!("exit {code}")]).spawn().unwrap();
        let owned = starting.started(child.id());
        let pid = Pid::from_child(&child);
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        (child, owned)
    }

    fn reap(orphans: &Orphans, count: usize) -> Vec<Ended> {
        let begun = Instant::now();
        let mut ended = Vec::new();
        while ended.len() < count {
            assert!(begun.elapsed() < Duration::from_secs(60), "only {ended:?}");
            ended.extend(orphans.reap().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
        ended
    }
}
