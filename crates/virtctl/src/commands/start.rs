//! `start`: lets a machine run.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::dry_run_body;
use crate::connect::Connect;
use crate::output::say;
use crate::subresource::Kind;

/// Start a virtual machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Start a virtual machine called 'myvm':\n  {program} start myvm")]
pub struct Arguments {
    /// Its name
    #[arg(value_name = "VM")]
    name: String,
    /// Start it paused
    #[arg(long)]
    paused: bool,
    /// Only check: nothing is changed
    #[arg(long)]
    dry_run: bool,
}

impl Arguments {
    /// Starts the machine.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let session = connect.session().await?;
        let mut body = dry_run_body(self.dry_run);
        if self.paused {
            body["paused"] = true.into();
        }
        session
            .put(Kind::Vm, &session.namespace, &self.name, "start", Some(&body))
            .await
            .context("Error starting VirtualMachine")?;
        say!("VM {} was scheduled to start", self.name);
        Ok(ExitCode::SUCCESS)
    }
}
