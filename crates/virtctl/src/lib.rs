//! virtctl: what users do with their virtual machines, from a terminal.
//!
//! [`commands`] has a file for each command: its flags and what it does. A command gets a [`connect::Connect`], and
//! only when it asks for a session is there a need for a cluster. What can be decided without one is a pure function.

// A pipe or a terminal may close at any time, and these would panic: `output` has what goes on.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod cluster;
pub mod commands;
pub mod connect;
mod contention;
mod dialect;
pub mod failure;
mod farewell;
pub mod flags;
mod kubeconfig;
mod local;
mod manifest;
mod names;
pub mod output;
pub mod program;
mod proxy;
pub mod subresource;
pub mod target;
mod terminal;
#[cfg(test)]
mod tests;
mod transfer;
mod wait;
#[cfg(test)]
mod wire;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};

use crate::commands::{Command, version};
use crate::connect::Connect;
use crate::output::note;
use crate::program::Program;

/// Controls virtual machines on a Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(
    name = "virtctl",
    disable_version_flag = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Which cluster, and who asks.
    #[command(flatten)]
    pub cluster: cluster::Flags,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Runs the program; its name is the first argument. What goes wrong is told on standard error.
pub fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let program = Program::called(arguments.first().map(OsString::as_os_str).unwrap_or_default());
    let cli = match parse(&program, arguments) {
        Ok(cli) => cli,
        Err(error) => return Ok(answer(&program, &error)),
    };
    if cli.cluster.verbosity > 0 {
        kubevirt_logs::init("virtctl", cli.cluster.verbosity);
    }
    // One of many crates may have chosen before, and there is only one to choose from.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no asynchronous runtime could be made")?;
    let connect = Connect::new(cli.cluster, program);
    let result = runtime.block_on(done(cli.command, &connect));
    // A read of standard input cannot be called back: nobody waits for it.
    runtime.shutdown_background();
    Ok(result.unwrap_or_else(|error| {
        note!("{}", failure::words_of(&connect.program, &error));
        ExitCode::FAILURE
    }))
}

/// Runs a command; if the cluster refuses it, whether that is of another version is told as well.
async fn done(command: Command, connect: &Connect) -> Result<ExitCode> {
    let result = command.run(connect).await;
    if let (Err(error), Some(session)) = (&result, connect.opened())
        && failure::is_refused(error)
        && let Some(words) = version::difference(session).await
    {
        note!("{words}");
    }
    result
}

/// What a command line asks for.
pub fn parse(program: &Program, arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = dialect::adapt(Cli::command(), program);
    let matches = command.try_get_matches_from_mut(arguments)?;
    let mut cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    for hidden in dialect::shadowed(&Cli::command(), &matches) {
        cli.cluster.forget(&hidden);
    }
    cli.cluster.forget_empty();
    Ok(cli)
}

/// Prints help or what is wrong with a command line. Scripts expect one for every mistake.
fn answer(program: &Program, error: &clap::Error) -> ExitCode {
    let help = match error.kind() {
        ErrorKind::MissingSubcommand => {
            dialect::help_instead(dialect::adapt(Cli::command(), program), program, error)
        }
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Some(error.render().to_string()),
        _ => None,
    };
    if let Some(help) = help {
        output::line(help.trim_end());
        return ExitCode::SUCCESS;
    }
    // The terminal may be gone, which changes nothing.
    let _ = error.print();
    ExitCode::FAILURE
}
