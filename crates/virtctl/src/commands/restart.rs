//! `restart`: stops a machine and starts it again.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::{dry_run_body, stop::Force};
use crate::connect::Connect;
use crate::output::say;
use crate::subresource::Kind;

/// Restart a virtual machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Restart a virtual machine called 'myvm':\n  {program} restart myvm")]
pub struct Arguments {
    /// Its name
    #[arg(value_name = "VM")]
    name: String,
    #[command(flatten)]
    force: Force,
    /// Only check: nothing is changed
    #[arg(long)]
    dry_run: bool,
}

impl Arguments {
    /// Restarts the machine.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let forced = self.force.seconds()?;
        let session = connect.session().await?;
        let mut body = dry_run_body(self.dry_run);
        if let Some(seconds) = forced {
            body["gracePeriodSeconds"] = seconds.into();
        }
        session.put(Kind::Vm, &session.namespace, &self.name, "restart", Some(&body)).await.context(
            match forced {
                Some(_) => "error force restarting VirtualMachine",
                None => "error restarting VirtualMachine",
            },
        )?;
        say!("VM {} was scheduled to restart", self.name);
        Ok(ExitCode::SUCCESS)
    }
}
