//! Threads of processes: their names, the CPUs they run on, and their place in the queue.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::cpus::format_list;
use crate::realtime;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number, unique on the host.
    pub id: u32,
    /// Its name, of which the kernel keeps 15 bytes.
    pub name: String,
}

/// A thread could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// It ended.
    #[error("thread {thread} is gone")]
    Gone {
        /// The thread.
        thread: u32,
    },
    /// Some CPUs are not there, or not for this container.
    #[error("thread {thread} cannot run on CPUs {wanted}: this container has {available}")]
    Cpus {
        /// The thread.
        thread: u32,
        /// CPUs that were asked for.
        wanted: String,
        /// Those that there are.
        available: String,
    },
    /// The process may not do this.
    #[error("thread {thread} may not get {what}, which needs {needs}")]
    NotPermitted {
        /// The thread.
        thread: u32,
        /// What was tried.
        what: &'static str,
        /// Who could.
        needs: &'static str,
    },
    /// Something else.
    #[error("thread {thread} cannot be changed")]
    Other {
        /// The thread.
        thread: u32,
        /// What the kernel says.
        source: io::Error,
    },
}

/// The threads of a process, in the order of their numbers. One that ends meanwhile may be missing.
pub fn of(process: u32) -> io::Result<Vec<Thread>> {
    let folder = PathBuf::from(format!("/proc/{process}/task"));
    let mut threads = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        match fs::read(entry.path().join("comm")) {
            Ok(name) => {
                let name = String::from_utf8_lossy(&name).trim_end().to_owned();
                threads.push(Thread { id, name });
            }
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    threads.sort_unstable_by_key(|thread| thread.id);
    Ok(threads)
}

/// Makes a thread run on these CPUs and no others. Either it gets all of them or it is an error.
pub fn pin(thread: u32, cpus: &[u32]) -> Result<(), ThreadError> {
    let unavailable = |available: &[u32]| ThreadError::Cpus {
        thread,
        wanted: format_list(cpus),
        available: if available.is_empty() {
            "none of them".into()
        } else {
            format!("only {}", format_list(available))
        },
    };
    let set = cpu_set(cpus).ok_or_else(|| unavailable(&[]))?;
    match sched_setaffinity(Some(pid(thread)?), &set).map_err(io::Error::from) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Err(unavailable(&[])),
        Err(error) => {
            return Err(explained(thread, "CPUs of its own", "the same user or CAP_SYS_NICE", error));
        }
    }
    // The kernel leaves out, without a word, what the control group does not have.
    let got = affinity(thread)?;
    let all = cpus.iter().all(|cpu| got.contains(cpu));
    if all { Ok(()) } else { Err(unavailable(&got)) }
}

/// The CPUs that a thread may run on.
pub fn affinity(thread: u32) -> Result<Vec<u32>, ThreadError> {
    let set = sched_getaffinity(Some(pid(thread)?))
        .map_err(|error| explained(thread, "its CPUs read", "the same user", error.into()))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect())
}

/// Makes a thread run before all ordinary ones until it waits by itself. Priorities go from 1 to 99.
pub fn make_realtime(thread: u32, priority: u8) -> Result<(), ThreadError> {
    const NEEDS: &str =
        "CAP_SYS_NICE or a limit of real-time priority, and real-time quota in its control group";
    realtime::first_in_first_out(pid(thread)?.as_raw_nonzero().get(), priority.into())
        .map_err(|error| explained(thread, "real-time priority", NEEDS, error))
}

/// None if there is no CPU, or one that the kernel's set has no place for.
fn cpu_set(cpus: &[u32]) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        let cpu = usize::try_from(*cpu).ok().filter(|cpu| *cpu < CpuSet::MAX_CPU)?;
        set.set(cpu);
    }
    (!cpus.is_empty()).then_some(set)
}

fn pid(thread: u32) -> Result<Pid, ThreadError> {
    i32::try_from(thread)
        .ok()
        .filter(|number| *number > 0)
        .and_then(Pid::from_raw)
        .ok_or(ThreadError::Gone { thread })
}

fn explained(thread: u32, what: &'static str, needs: &'static str, error: io::Error) -> ThreadError {
    match error.raw_os_error() {
        Some(libc::ESRCH) => ThreadError::Gone { thread },
        Some(libc::EPERM | libc::EACCES) => ThreadError::NotPermitted { thread, what, needs },
        _ => ThreadError::Other { thread, source: error },
    }
}

/// A file of a thread that ended is not there, or cannot be read any more.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Runs a test with a thread of a process of ours that waits meanwhile.
    fn with_a_thread(test: impl FnOnce(u32)) {
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let wait = move || {
            tell.send(rustix::thread::gettid()).unwrap();
            let _ = ended.recv();
        };
        let thread = std::thread::Builder::new().name("CPU 0/TCG".into()).spawn(wait).unwrap();
        let id = u32::try_from(told.recv().unwrap().as_raw_nonzero().get()).unwrap();
        test(id);
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn names_threads() {
        with_a_thread(|id| {
            let threads = of(std::process::id()).unwrap();
            assert!(threads.contains(&Thread { id, name: "CPU 0/TCG".into() }), "{threads:?}");
        });
        assert!(is_gone(&of(u32::MAX).unwrap_err()));
    }

    #[test]
    fn pins_a_thread() {
        with_a_thread(|id| {
            let mine = affinity(id).unwrap();
            let one = *mine.last().unwrap();
            pin(id, &[one]).unwrap();
            assert_eq!(affinity(id).unwrap(), [one]);
            for cpus in [&[][..], &[1023], &[one, 1023], &[5000], &[u32::MAX]] {
                if mine.contains(&1023) {
                    continue;
                }
                let error = pin(id, cpus).unwrap_err();
                assert!(matches!(error, ThreadError::Cpus { .. }), "{cpus:?}: {error}");
            }
            if !mine.contains(&1023) {
                let words = pin(id, &[one, 1023]).unwrap_err().to_string();
                assert!(words.ends_with(&format!("this container has only {one}")), "{words}");
            }
            let words = pin(id, &[one, 5000]).unwrap_err().to_string();
            assert!(words.contains("has none of them") && words.contains("5000"), "{words}");
        });
    }

    #[test]
    fn gives_priority_or_says_who_can() {
        with_a_thread(|id| match make_realtime(id, 1) {
            Ok(()) => {
                let stat = fs::read_to_string(format!("/proc/self/task/{id}/stat")).unwrap();
                let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
                assert_eq!(fields[38], libc::SCHED_FIFO.to_string(), "{stat}");
            }
            Err(error) => {
                assert!(matches!(error, ThreadError::NotPermitted { .. }), "{error}");
                assert!(error.to_string().contains("CAP_SYS_NICE"), "{error}");
            }
        });
        with_a_thread(|id| assert!(matches!(make_realtime(id, 200), Err(ThreadError::Other { .. }))));
    }

    #[test]
    fn knows_what_is_gone() {
        for thread in [0, u32::MAX, i32::MAX as u32] {
            for result in [pin(thread, &[0]), affinity(thread).map(drop), make_realtime(thread, 1)] {
                assert!(matches!(result, Err(ThreadError::Gone { .. })), "{thread}: {result:?}");
            }
        }
    }
}
