//! `virt-tail`: copies a growing file to standard output.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Copies a growing file to standard output, until it is told to end.
#[derive(Debug, Parser)]
#[command(name = "virt-tail")]
pub struct Arguments {
    /// The file; it may come into being later.
    #[arg(long)]
    logfile: PathBuf,
}

/// Copies.
pub fn run(arguments: &Arguments) -> ExitCode {
    super::fail("virt-tail", format!("cannot follow {} in this version yet", arguments.logfile.display()))
}
