//! Brings node selector, affinity and tolerations over; they count for the next migration.

use jiff::Timestamp;
use kubevirt_admission::validate::same::same;
use kubevirt_api::names::reasons;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

use crate::vm::plan::Failure;
use crate::vm::view;

/// Brings them over, unless the instance is moving by the old ones right now.
pub fn apply(
    wanted: &VirtualMachineInstanceSpec,
    vmi: &mut VirtualMachineInstance,
    now: Timestamp,
) -> Result<(), Failure> {
    let spec = &vmi.spec;
    let moved = !same(&wanted.node_selector, &spec.node_selector) || !same(&wanted.affinity, &spec.affinity);
    let tolerates = !same(&wanted.tolerations, &spec.tolerations);
    if !moved && !tolerates {
        return Ok(());
    }
    if view::is_migrating(vmi, now) {
        let reason =
            if moved { reasons::vm::AFFINITY_CHANGE_ERROR } else { reasons::vm::TOLERATIONS_CHANGE_ERROR };
        return Err(Failure::new(reason, "placement cannot be changed while the machine migrates"));
    }
    let spec = &mut vmi.spec;
    spec.node_selector.clone_from(&wanted.node_selector);
    spec.affinity.clone_from(&wanted.affinity);
    spec.tolerations.clone_from(&wanted.tolerations);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::vm::testing::{at, read};

    #[test]
    fn placement_follows_but_not_during_a_migration() {
        let wanted = read(json!({
            "domain": { "devices": {} }, "nodeSelector": { "a": "b" }, "tolerations": [{ "operator": "Exists" }],
        }));
        let mut vmi = VirtualMachineInstance::default();
        assert_eq!(apply(&wanted, &mut vmi, at(10)), Ok(()));
        assert_eq!(vmi.spec.node_selector, wanted.node_selector);
        assert_eq!(vmi.spec.tolerations, wanted.tolerations);
        let migrating =
            json!({ "status": { "migrationState": { "startTimestamp": "1970-01-01T00:00:01Z" } } });
        let mut vmi: VirtualMachineInstance = read(migrating);
        assert!(apply(&wanted, &mut vmi, at(10)).is_err());
        assert_eq!(apply(&VirtualMachineInstanceSpec::default(), &mut vmi, at(10)), Ok(()));
    }
}
