//! `reset`: presses the reset button.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::connect::Connect;
use crate::output::say;
use crate::subresource::Kind;

/// Reset a virtual machine instance.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Reset a virtual machine instance called 'myvmi':\n  {program} reset myvmi")]
pub struct Arguments {
    /// Its name
    #[arg(value_name = "VMI")]
    name: String,
}

impl Arguments {
    /// Presses the button.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let session = connect.session().await?;
        session
            .put(Kind::Vmi, &session.namespace, &self.name, "reset", None)
            .await
            .with_context(|| format!("Error reseting VirtualMachineInstance {}", self.name))?;
        say!("VMI {} was scheduled to reset", self.name);
        Ok(ExitCode::SUCCESS)
    }
}
