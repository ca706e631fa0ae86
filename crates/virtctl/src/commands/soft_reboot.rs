//! `soft-reboot`: asks the guest to boot again.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::connect::Connect;
use crate::output::say;
use crate::subresource::Kind;

/// Soft reboot a virtual machine instance.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "  # Soft reboot a virtual machine instance called 'myvmi':\n  {program} soft-reboot myvmi"
)]
pub struct Arguments {
    /// Its name
    #[arg(value_name = "VMI")]
    name: String,
}

impl Arguments {
    /// Asks the guest.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let session = connect.session().await?;
        session
            .put(Kind::Vmi, &session.namespace, &self.name, "softreboot", None)
            .await
            .with_context(|| format!("Error soft rebooting VirtualMachineInstance {}", self.name))?;
        say!("VMI {} was scheduled to soft-reboot", self.name);
        Ok(ExitCode::SUCCESS)
    }
}
