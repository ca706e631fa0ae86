//! Rules for writes of the status subresource.
//!
//! Replica sets and migrations have none beyond their schema.

use kubevirt_api::vm::VirtualMachine;

use super::vm_storage;
use super::vmi_spec::storage::volume_requests;
use crate::{Context, Problems};

/// Everything that is wrong with a new status of a virtual machine.
pub fn check(cx: &Context<'_>, new: &VirtualMachine, old: Option<&VirtualMachine>) -> Problems {
    let mut problems = Problems::default();
    volume_requests::check(cx, new, &mut problems);
    problems.append(vm_storage::check_status(cx, new, old));
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{World, patched};

    #[test]
    fn a_status_is_held_to_its_volume_requests_and_its_snapshot() {
        let base = json!({
            "metadata": { "name": "vm", "namespace": "default" },
            "spec": { "running": false, "template": { "spec": { "domain": { "devices": {} } } } },
        });
        let request = json!({ "status": { "volumeRequests": [{}] } });
        let snapshot = json!({ "spec": { "running": true }, "status": { "snapshotInProgress": "s" } });
        let cases = [
            ("nothing", json!({}), &[][..]),
            ("empty request", request.clone(), &["Status.volumeRequests"]),
            ("started during a snapshot", snapshot.clone(), &["spec"]),
            ("both", patched(&request, &snapshot), &["Status.volumeRequests", "spec"]),
        ];
        World::default().updating().assert_changed(check, &base, &cases);
    }
}
