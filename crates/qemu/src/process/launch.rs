//! Starting QEMU.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::net::UnixStream;
use tokio::process::Command;

use super::exit::Exit;
use super::parent::die_with_us;
use super::watch::Process;
use crate::machine::Machine;
use crate::qmp::{Limits, Qmp, QmpError};

/// What to start.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// The program, looked up in PATH if it has no slash.
    pub program: PathBuf,
    /// Its arguments, without the monitor and without `-S`: both are added. Nothing in them may read from
    /// `stdio`, which is where the monitor is.
    pub arguments: Vec<OsString>,
    /// Environment variables on top of our own.
    pub environment: Vec<(OsString, OsString)>,
    /// The limits of the monitor.
    pub limits: Limits,
}

/// Why QEMU does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such program.
    #[error("there is no program {program}")]
    NoProgram {
        /// Its path.
        program: PathBuf,
    },
    /// The system would not start it.
    #[error("{program} cannot be started: {source}")]
    Spawn {
        /// The program's path.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It started and ended at once; its last words say why, mostly wrong arguments.
    #[error("QEMU ended at the start: {0}")]
    Ended(Exit),
    /// It runs, but its monitor is of no use. It has been killed.
    #[error("QEMU started, but its monitor failed: {0}")]
    Monitor(#[from] QmpError),
}

impl Launch {
    /// Starts QEMU with its CPUs stopped and returns once its monitor answers.
    ///
    /// The monitor is a pair of sockets of which QEMU holds one end as its standard input: no path that others
    /// could open, nothing to clean up, and the end of either side is seen at once by the other. QEMU is killed when
    /// the thread that called this ends, however it does.
    pub async fn start(self) -> Result<(Process, Machine), StartError> {
        let spawn = |source| StartError::Spawn { program: self.program.clone(), source };
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(spawn)?;
        ours.set_nonblocking(true).map_err(spawn)?;
        let ours = UnixStream::from_std(ours).map_err(spawn)?;

        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .args(["-S", "-chardev", "socket,id=kubevirt-monitor,fd=0"])
            .args(["-mon", "chardev=kubevirt-monitor,mode=control"])
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        die_with_us(&mut command);
        let child = command.spawn().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => StartError::NoProgram { program: self.program.clone() },
            _ => spawn(source),
        })?;
        // The command holds QEMU's end of the pair, which would hide its closing.
        drop(command);

        let process = Process::watch(child);
        match Qmp::over(ours, self.limits).await {
            Ok(qmp) => Ok((process, Machine::new(qmp))),
            Err(error) if error.is_gone() => Err(StartError::Ended(process.end().await)),
            Err(error) => {
                process.end().await;
                Err(StartError::Monitor(error))
            }
        }
    }
}
