//! `migrate`: moves a running machine to another node.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::dry_run_body;
use crate::connect::Connect;
use crate::flags;
use crate::output::say;
use crate::subresource::Kind;

/// Migrate a virtual machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "  # Migrate a virtual machine called 'myvm':\n  {program} migrate myvm

  # Migrate it to a node with an SSD:\n  {program} migrate myvm --addedNodeSelector disk=ssd")]
pub struct Arguments {
    /// Its name
    #[arg(value_name = "VM")]
    name: String,
    /// Labels that the target node must have, for this migration only and beyond what the machine asks for. Without
    /// it, the scheduler finds the best node
    #[arg(long = "addedNodeSelector", value_name = "KEY=VALUE,…", value_parser = flags::pairs)]
    added_node_selector: Vec<BTreeMap<String, String>>,
    /// Only check: nothing is changed
    #[arg(long)]
    dry_run: bool,
}

impl Arguments {
    /// Asks for the migration.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let session = connect.session().await?;
        let mut body = dry_run_body(self.dry_run);
        let selector: BTreeMap<_, _> = self.added_node_selector.into_iter().flatten().collect();
        if !selector.is_empty() {
            body["addedNodeSelector"] = serde_json::to_value(selector)?;
        }
        session
            .put(Kind::Vm, &session.namespace, &self.name, "migrate", Some(&body))
            .await
            .context("Error migrating VirtualMachine")?;
        say!("VM {} was scheduled to migrate", self.name);
        Ok(ExitCode::SUCCESS)
    }
}
