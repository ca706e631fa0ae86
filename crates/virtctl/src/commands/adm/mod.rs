//! `adm`: what administrators do.

mod log_verbosity;

use std::process::ExitCode;

use anyhow::Result;

use crate::connect::Connect;

/// Administrate KubeVirt configuration.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    #[command(alias = "logVerbosity")]
    LogVerbosity(log_verbosity::Arguments),
}

impl Arguments {
    /// Does it.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        match self.command {
            Command::LogVerbosity(arguments) => arguments.run(connect).await,
        }
    }
}
