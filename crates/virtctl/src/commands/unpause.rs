//! `unpause`: lets a guest go on.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::{dry_run_body, pause};
use crate::connect::Connect;
use crate::output::say;
use crate::subresource::Kind;
use crate::target;

/// Unpause a virtual machine.
///
/// The first argument is vm or vmi (also in their long and plural forms), the second is the name.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Unpause a virtual machine called 'myvm':\n  {program} unpause vm myvm")]
pub struct Arguments {
    /// vm or vmi
    #[arg(value_name = "vm|vmi")]
    kind: String,
    /// Its name
    name: String,
    /// Only check: nothing is changed
    #[arg(long)]
    dry_run: bool,
}

impl Arguments {
    /// Unpauses the instance.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let kind = target::kind(&self.kind)?;
        let session = connect.session().await?;
        if kind == Kind::Vm {
            pause::machine(session, &self.name).await?;
        }
        let body = dry_run_body(self.dry_run);
        session
            .put(Kind::Vmi, &session.namespace, &self.name, "unpause", Some(&body))
            .await
            .with_context(|| format!("Error unpausing VirtualMachineInstance {}", self.name))?;
        say!("VMI {} was scheduled to unpause", self.name);
        Ok(ExitCode::SUCCESS)
    }
}
