//! What the agent of a guest tells: several commands ask for it, each for another part.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::connect::Connect;
use crate::output::{self, Format};
use crate::subresource::Kind;

/// The instance whose guest is asked.
#[derive(Debug, clap::Args)]
pub struct Guest {
    /// The name of the instance
    #[arg(value_name = "VMI")]
    name: String,
}

impl Guest {
    /// Prints what the agent tells as JSON; `doing` says what was tried if it tells nothing.
    pub async fn tell(&self, connect: &Connect, subresource: &str, doing: &str) -> Result<ExitCode> {
        let session = connect.session().await?;
        let told: Value = session
            .get(Kind::Vmi, &session.namespace, &self.name, subresource)
            .await
            .with_context(|| format!("Error {doing} of VirtualMachineInstance {}", self.name))?;
        output::print(&Format::Json.render(&told)?)?;
        Ok(ExitCode::SUCCESS)
    }
}
