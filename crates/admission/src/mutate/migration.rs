//! The marks on a new migration: the instance that it moves, and who waits for its end.

use kubevirt_api::migration::VirtualMachineInstanceMigration;
use kubevirt_api::names::{finalizers, labels};

use super::vmi::metadata;
use crate::{Context, Operation, Problems};

/// Labels a new migration with its instance, by which migrations are found, and adds the finalizer.
pub fn apply(
    cx: &Context<'_>,
    migration: &mut VirtualMachineInstanceMigration,
    _old: Option<&VirtualMachineInstanceMigration>,
) -> Problems {
    if cx.request.operation == Operation::Create {
        let instance = migration.spec.vmi_name.clone().unwrap_or_default();
        let labels = migration.metadata.labels.get_or_insert_default();
        labels.insert(labels::MIGRATION_VMI_NAME.to_owned(), instance);
        metadata::add_finalizer(&mut migration.metadata, finalizers::MIGRATION);
        metadata::mark_versions(&mut migration.metadata);
    }
    Problems::default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, patched, read};

    fn after(world: &World, metadata: Value) -> Value {
        let mut migration = read(json!({ "metadata": metadata, "spec": { "vmiName": "web" } }));
        assert!(world.run(|cx| apply(cx, &mut migration, None)).is_empty());
        serde_json::to_value(migration.metadata).unwrap()
    }

    #[test]
    fn a_new_migration_is_marked() {
        let marked = json!({
            "labels": { "kubevirt.io/vmi-name": "web" },
            "finalizers": ["kubevirt.io/migrationJobFinalize"],
            "annotations": {
                "kubevirt.io/latest-observed-api-version": "v1",
                "kubevirt.io/storage-observed-api-version": "v1",
            },
        });
        assert_eq!(after(&World::default(), json!({})), marked);
        assert_eq!(
            after(&World::default(), json!({ "labels": { "kubevirt.io/vmi-name": "other" } })),
            marked
        );
        let own = json!({ "labels": { "a": "b" }, "finalizers": ["x"] });
        let both = patched(
            &marked,
            &json!({ "labels": { "a": "b", "kubevirt.io/vmi-name": "web" }, "finalizers": ["x", "kubevirt.io/migrationJobFinalize"] }),
        );
        assert_eq!(after(&World::default(), own.clone()), both);
        assert_eq!(after(&World::default().updating(), own.clone()), own);
    }
}
