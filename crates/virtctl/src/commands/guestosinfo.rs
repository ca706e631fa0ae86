//! `guestosinfo`: the operating system of a guest, as its agent tells.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::connect::Connect;
use crate::output::{self, Format};
use crate::subresource::Kind;

/// Return guest agent info about the operating system.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "  # Return guest agent info about the operating system.\n  {program} guestosinfo myvmi"
)]
pub struct Arguments {
    /// The name of the instance
    #[arg(value_name = "VMI")]
    name: String,
}

impl Arguments {
    /// Prints it as JSON.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let session = connect.session().await?;
        let told: Value = session
            .get(Kind::Vmi, &session.namespace, &self.name, "guestosinfo")
            .await
            .with_context(|| format!("Error getting guestosinfo of VirtualMachineInstance {}", self.name))?;
        output::print(&Format::Json.render(&told)?)?;
        Ok(ExitCode::SUCCESS)
    }
}
