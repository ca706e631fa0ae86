//! `virt-tail`: copies a growing file to standard output.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::follow::Following;

/// Copies a growing file to standard output, until it is told to end.
#[derive(Debug, Parser)]
#[command(name = "virt-tail", args_override_self = true)]
pub struct Arguments {
    /// The file. It may come into being later, be emptied and be replaced.
    #[arg(long)]
    logfile: Option<PathBuf>,
    /// Accepted for old command lines; there is no socket to wait for.
    #[arg(long = "socket-timeout", hide = true)]
    _socket_timeout: Option<String>,
    /// Accepted for old command lines; there is nothing more to say.
    #[arg(short = 'v', long = "v", hide = true)]
    _verbosity: Option<u32>,
}

/// Copies until SIGTERM or SIGINT, which is a success.
pub fn run(arguments: &Arguments) -> ExitCode {
    let Some(file) = &arguments.logfile else {
        return super::fail("virt-tail", "give the --logfile to copy");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(copy(file))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => super::fail("virt-tail", format!("cannot copy {}: {error}", file.display())),
    }
}

async fn copy(file: &Path) -> io::Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut following = Following::copy(file, io::stdout().as_fd().try_clone_to_owned()?, None)?;
    tokio::select! {
        ended = following.ended() => return ended,
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    following.finish().await
}
