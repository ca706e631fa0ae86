//! `migrate-cancel`: lets a machine stay where it is.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kube::api::{DeleteParams, ListParams};
use kubevirt_api::migration::{MigrationPhase, VirtualMachineInstanceMigration};
use kubevirt_api::names::labels;

use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::say;

/// Cancel the migration of a virtual machine.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "  # Cancel the migration of a virtual machine called 'myvm':\n  {program} migrate-cancel myvm"
)]
pub struct Arguments {
    /// Its name
    #[arg(value_name = "VM")]
    name: String,
    /// Only check: nothing is changed
    #[arg(long)]
    dry_run: bool,
}

impl Arguments {
    /// Deletes the migration that is under way: there is one at most.
    pub async fn run(self, connect: &Connect) -> Result<ExitCode> {
        let session = connect.session().await?;
        let api = session.api::<VirtualMachineInstanceMigration>(None);
        let chosen = ListParams::default().labels(&format!("{}={}", labels::MIGRATION_VMI_NAME, self.name));
        let migrations =
            api.list(&chosen).await.context("Error fetching virtual machine instance migration list")?;
        let Some(name) =
            migrations.items.iter().find(|one| !is_over(one)).and_then(|one| one.metadata.name.clone())
        else {
            let what = format!("Found no migration to cancel for {}", self.name);
            return Err(Failure::new(what, "See what has become of others with `kubectl get vmim`.").into());
        };
        let mut parameters = DeleteParams::default();
        if self.dry_run {
            say!("Dry Run execution");
            parameters.dry_run = true;
        }
        api.delete(&name, &parameters)
            .await
            .with_context(|| format!("Error canceling migration {name} of a VirtualMachine {}", self.name))?;
        say!("VM {} was scheduled to migrate-cancel", self.name);
        Ok(ExitCode::SUCCESS)
    }
}

fn is_over(migration: &VirtualMachineInstanceMigration) -> bool {
    let phase = migration.status.as_ref().and_then(|status| status.phase.as_ref());
    matches!(phase, Some(MigrationPhase::Succeeded | MigrationPhase::Failed))
}
