//! The processes of a cluster: started with a mark in their environment, found and ended by that mark.
//!
//! The mark is there from the first instruction on and is inherited, so a process is found although whoever
//! started it crashed before writing anything down, and a stranger with a reused process id is never touched.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};

use super::layout::Layout;
use super::{network, node};

const CLUSTER: &str = "KUBEVIRT_RS_CLUSTER";
const COMPONENT: &str = "KUBEVIRT_RS_COMPONENT";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const PAUSE: Duration = Duration::from_millis(50);
const LOG_LINES: usize = 30;

/// A component that this process started.
#[derive(Debug)]
pub struct Started {
    component: String,
    log: PathBuf,
    child: Child,
}

impl Started {
    /// The id of the first process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn still_runs(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} ended by itself ({status}). {}", self.component, log_tail(&self.log));
        }
        Ok(())
    }
}

/// Starts a component of the cluster in the background, its output going to its log.
pub fn start(layout: &Layout, component: &str, command: &[OsString]) -> Result<Started> {
    let [program, arguments @ ..] = command else { bail!("{component}: nothing to run") };
    let log = layout.log(component);
    fs::create_dir_all(layout.root().join("logs"))?;
    let output = File::options().create(true).append(true).open(&log)?;
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", layout.root())
        .env(CLUSTER, layout.root())
        .env(COMPONENT, component)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("start {component} ({})", program.display()))?;
    Ok(Started { component: component.to_owned(), log, child })
}

/// Waits until `ready` says yes; gives up when one of `started` ends or when the time is over.
/// `blamed` is the component to blame for the latter, `ready` says `Err` for what it still waits for.
pub fn wait_until(
    started: &mut [Started],
    blamed: &str,
    limit: Duration,
    mut ready: impl FnMut() -> Result<()>,
) -> Result<()> {
    let begin = Instant::now();
    loop {
        let missing = match ready() {
            Ok(()) => return Ok(()),
            Err(missing) => missing,
        };
        started.iter_mut().try_for_each(Started::still_runs)?;
        if begin.elapsed() > limit {
            let log = started.iter().find(|one| one.component == blamed).map(|one| log_tail(&one.log));
            bail!(
                "{blamed} is not ready after {} s: {missing:#}. {}",
                limit.as_secs(),
                log.unwrap_or_else(|| "It was not started.".into())
            );
        }
        std::thread::sleep(PAUSE);
    }
}

fn log_tail(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    format!("The end of its log:\n{}", last_lines(&String::from_utf8_lossy(&text), LOG_LINES))
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// A process that carries a cluster's mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its id on this machine.
    pub id: i32,
    /// The component that it belongs to.
    pub component: String,
    /// The file name of its program.
    pub program: String,
    /// Whether it is the first process of a process namespace of its own.
    pub is_first_in_namespace: bool,
    start_time: u64,
}

impl Running {
    /// Whether this is the component itself, and not a process that it started.
    pub fn is(&self, component: &str) -> bool {
        self.component == component
            && match component.rsplit('/').next() {
                Some(node::INIT) => self.is_first_in_namespace,
                Some(network::HOLDER | network::FORWARDER_OUTSIDE | network::FORWARDER_INSIDE) => true,
                program => program == Some(&self.program),
            }
    }

    /// Ends the process at once, unless its id belongs to another process by now.
    fn kill(&self) -> Result<()> {
        let Some(pid) = Pid::from_raw(self.id) else { return Ok(()) };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
        if start_time(self.id) == Some(self.start_time) {
            match pidfd_send_signal(&handle, Signal::KILL) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("end {} ({})", self.component, self.id));
                }
            }
        }
        Ok(())
    }

    /// Collects the ended process if it was a child of ours; otherwise another parent does.
    fn collect(&self) {
        let begin = Instant::now();
        let Some(pid) = Pid::from_raw(self.id) else { return };
        while let Ok(None) = waitpid(Some(pid), WaitOptions::NOHANG)
            && begin.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The processes that carry the mark of the cluster in the folder `root`.
pub fn running(root: &Path) -> Result<Vec<Running>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Some(start_time) = start_time(id) else { continue };
        let Ok(environment) = fs::read(format!("/proc/{id}/environ")) else { continue };
        let Some(component) = mark(&environment, root) else { continue };
        let program = fs::read_link(format!("/proc/{id}/exe")).unwrap_or_default();
        let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let is_first_in_namespace = parse_is_first(&status);
        found.push(Running { id, component, program, is_first_in_namespace, start_time });
    }
    found.sort_by_key(|process| (process.start_time, process.id));
    Ok(found)
}

/// Ends all processes that carry the cluster's mark and that `which` picks, and waits until they are gone.
pub fn stop(root: &Path, which: impl Fn(&Running) -> bool) -> Result<()> {
    let begin = Instant::now();
    let mut ended: Vec<Running> = Vec::new();
    loop {
        let left: Vec<Running> = running(root)?.into_iter().filter(&which).collect();
        if left.is_empty() {
            ended.iter().for_each(Running::collect);
            return Ok(());
        }
        ensure!(begin.elapsed() < Duration::from_secs(20), "processes that do not end: {left:?}");
        for process in left {
            process.kill()?;
            if !ended.contains(&process) {
                ended.push(process);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn mark(environment: &[u8], root: &Path) -> Option<String> {
    let value = |name: &str| {
        environment
            .split(|&byte| byte == 0)
            .find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    (value(CLUSTER)? == root.as_os_str().as_encoded_bytes())
        .then(|| String::from_utf8_lossy(value(COMPONENT).unwrap_or_default()).into_owned())
}

/// When the process started, in ticks since boot; with its id, this names a process for good.
fn start_time(id: i32) -> Option<u64> {
    parse_start_time(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

fn parse_start_time(stat: &str) -> Option<u64> {
    // The name in parentheses may hold spaces and parentheses itself; 22nd field, 20th after the name.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn parse_is_first(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    let ids: Vec<&str> = ids.split_ascii_whitespace().collect();
    ids.len() > 1 && ids.last() == Some(&"1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_start_times() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2";
        assert_eq!(parse_start_time(stat), Some(4711));
        assert_eq!(parse_start_time("7 (a) S 1"), None);
        assert!(start_time(i32::try_from(std::process::id()).unwrap()).is_some());
    }

    #[test]
    fn knows_the_mark_of_one_cluster_only() {
        let environment = b"PATH=/bin\0KUBEVIRT_RS_CLUSTER=/c/one\0KUBEVIRT_RS_COMPONENT=node01/kubelet\0";
        assert_eq!(mark(environment, Path::new("/c/one")).as_deref(), Some("node01/kubelet"));
        assert_eq!(mark(environment, Path::new("/c/on")), None);
        assert_eq!(mark(environment, Path::new("/c/one-2")), None);
        assert_eq!(mark(b"PATH=/bin\0", Path::new("/c/one")), None);
    }

    #[test]
    fn tells_a_component_from_what_it_started() {
        let process = |program: &str| Running {
            id: 1,
            component: "node01/containerd".into(),
            program: program.into(),
            is_first_in_namespace: false,
            start_time: 1,
        };
        assert!(process("containerd").is("node01/containerd"));
        assert!(!process("containerd-shim-runc-v2").is("node01/containerd"));
        assert!(!process("containerd").is("node02/containerd"));
    }

    #[test]
    fn knows_the_first_process_of_a_namespace() {
        for (status, first) in
            [("NSpid:\t9\t1\n", true), ("NSpid:\t9\t12\n", false), ("NSpid:\t1\n", false), ("", false)]
        {
            assert_eq!(parse_is_first(&format!("Name:\tsh\n{status}Threads:\t1\n")), first, "{status}");
        }
    }

    #[test]
    fn cuts_logs() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a", 2), "a");
    }

    #[test]
    fn finds_and_stops_what_it_started() {
        let cache = std::env::temp_dir().join(format!("kubevirt-rs-processes-{}", std::process::id()));
        let layout = Layout::new(&cache, "one").unwrap();
        let mut started = [start(&layout, "sleep", &["sleep".into(), "60".into()]).unwrap()];
        let id = i32::try_from(started[0].id()).unwrap();
        assert_eq!(running(layout.root()).unwrap().iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
        assert!(running(&cache).unwrap().is_empty());
        wait_until(&mut started, "sleep", Duration::from_secs(1), || Ok(())).unwrap();

        stop(layout.root(), |process| process.is("sleep")).unwrap();
        assert!(running(layout.root()).unwrap().is_empty());
        assert_eq!(start_time(id), None, "collected as well");
        fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn a_component_that_ends_is_named_with_the_end_of_its_log() {
        let cache = std::env::temp_dir().join(format!("kubevirt-rs-failing-{}", std::process::id()));
        let layout = Layout::new(&cache, "one").unwrap();
        let command = ["sh", "-c", "echo no such disk; exit 3"].map(OsString::from);
        let mut started = [start(&layout, "etcd", &command).unwrap()];
        let error =
            wait_until(&mut started, "etcd", Duration::from_secs(10), || bail!("no answer")).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("etcd ended by itself (exit status: 3)") && text.contains("no such disk"),
            "{text}"
        );
        fs::remove_dir_all(cache).unwrap();
    }
}
