//! What is told of migrations.

use std::sync::Arc;

use kubevirt_api::migration::{MigrationPhase, VirtualMachineInstanceMigration};
use kubevirt_component::metrics::Page;

use super::list;

/// How many migrations there are in each phase, and which ended how.
pub fn tell(page: &mut Page, migrations: &[Arc<VirtualMachineInstanceMigration>]) {
    let [mut pending, mut scheduling, mut unset, mut running] = [0_u32; 4];
    for migration in migrations {
        let name = migration.metadata.name.as_deref().unwrap_or_default();
        let namespace = migration.metadata.namespace.as_deref().unwrap_or_default();
        let labels = [migration.spec.vmi_name.as_deref().unwrap_or_default(), name, namespace];
        let phase = migration.status.as_ref().and_then(|status| status.phase.as_ref());
        match phase {
            None => unset += 1,
            Some(MigrationPhase::Other(text)) if text.is_empty() => unset += 1,
            Some(MigrationPhase::Pending) => pending += 1,
            Some(MigrationPhase::Scheduling) => scheduling += 1,
            Some(MigrationPhase::Succeeded) => page.add(&list::MIGRATION_SUCCEEDED, &labels, 1.0),
            Some(MigrationPhase::Failed) => page.add(&list::MIGRATION_FAILED, &labels, 1.0),
            Some(MigrationPhase::Other(_)) => {}
            Some(_) => running += 1,
        }
    }
    for (metric, count) in [
        (list::MIGRATIONS_PENDING, pending),
        (list::MIGRATIONS_SCHEDULING, scheduling),
        (list::MIGRATIONS_UNSET, unset),
        (list::MIGRATIONS_RUNNING, running),
    ] {
        page.add(&metric, &[], count.into());
    }
}
