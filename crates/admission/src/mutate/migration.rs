//! The marks on a new migration: the instance that it moves, and who waits for its end.

use kubevirt_api::migration::VirtualMachineInstanceMigration;

use super::vmi::metadata;
use crate::{Context, Operation, Problems};

const INSTANCE_LABEL: &str = "kubevirt.io/vmi-name";
const FINALIZER: &str = "kubevirt.io/migrationJobFinalize";

/// Labels a new migration with its instance, by which migrations are found, and adds the finalizer.
pub fn apply(
    cx: &Context<'_>,
    migration: &mut VirtualMachineInstanceMigration,
    _old: Option<&VirtualMachineInstanceMigration>,
) -> Problems {
    if cx.request.operation == Operation::Create {
        let instance = migration.spec.vmi_name.clone().unwrap_or_default();
        migration.metadata.labels.get_or_insert_default().insert(INSTANCE_LABEL.to_owned(), instance);
        metadata::add_finalizer(&mut migration.metadata, FINALIZER);
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
            "labels": { INSTANCE_LABEL: "web" },
            "finalizers": [FINALIZER],
            "annotations": {
                "kubevirt.io/latest-observed-api-version": "v1",
                "kubevirt.io/storage-observed-api-version": "v1",
            },
        });
        assert_eq!(after(&World::default(), json!({})), marked);
        assert_eq!(after(&World::default(), json!({ "labels": { INSTANCE_LABEL: "other" } })), marked);
        let own = json!({ "labels": { "a": "b" }, "finalizers": ["x"] });
        let both = patched(
            &marked,
            &json!({ "labels": { "a": "b", INSTANCE_LABEL: "web" }, "finalizers": ["x", FINALIZER] }),
        );
        assert_eq!(after(&World::default(), own.clone()), both);
        assert_eq!(after(&World::default().updating(), own.clone()), own);
    }
}
