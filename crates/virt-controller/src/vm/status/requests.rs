//! Requests of users that are done are dropped.

use kubevirt_api::vm::status::{StateChangeRequestAction, VirtualMachineStatus};
use kubevirt_api::vm::{RunStrategy, VirtualMachine};
use kubevirt_api::vmi::VirtualMachineInstance;

use crate::vm::view;

/// Drops the first start or stop where it is done. Only the first: the controller has not acted on the others yet.
pub fn drop_first_if_done(
    status: &mut VirtualMachineStatus,
    strategy: Option<&RunStrategy>,
    vmi: Option<&VirtualMachineInstance>,
) {
    let done = view::first_request(status).is_some_and(|request| match (&request.action, vmi) {
        (StateChangeRequestAction::Stop, None) => true,
        // One that names no instance, or one that is gone, can never be acted on.
        (StateChangeRequestAction::Stop, Some(vmi)) => {
            request.uid.is_none() || request.uid != vmi.metadata.uid
        }
        // An instance that ended before anyone looked was this start, unless it is what a start is queued after.
        (StateChangeRequestAction::Start, Some(vmi)) => {
            let ended = view::is_final(vmi) && strategy != Some(&RunStrategy::Manual);
            !view::is_deleting(&vmi.metadata) && !ended
        }
        (StateChangeRequestAction::Start, None) => false,
        (StateChangeRequestAction::Other(_), _) => true,
    });
    if let (true, Some(requests)) = (done, &mut status.state_change_requests) {
        requests.remove(0);
    }
}

/// Drops requests for volumes that are in the machine's template, or out of it, as they asked for.
pub fn drop_done_volumes(status: &mut VirtualMachineStatus, vm: &VirtualMachine) {
    let Some(requests) = &mut status.volume_requests else { return };
    let disks = view::template(vm).and_then(|spec| spec.domain.devices.disks.as_deref()).unwrap_or_default();
    let is_there = |name: &str| {
        let volume = view::volumes(vm).iter().any(|volume| volume.name == name);
        (volume, disks.iter().any(|disk| disk.name == name))
    };
    requests.retain(|request| match (&request.add_volume_options, &request.remove_volume_options) {
        (Some(add), _) => is_there(&add.name) != (true, true),
        (None, Some(remove)) => is_there(&remove.name) != (false, false),
        (None, None) => false,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{machine, read};
    use serde_json::{Value, json};

    #[test]
    fn a_request_goes_when_it_is_done_and_one_at_a_time() {
        let stop = |uid: &str| json!({ "action": "Stop", "uid": uid });
        let start = json!({ "action": "Start" });
        let vmi = |phase: &str, deleting: bool| {
            let deletion = deleting.then_some("2026-01-01T00:00:00Z");
            Some(
                json!({ "metadata": { "uid": "u", "deletionTimestamp": deletion }, "status": { "phase": phase } }),
            )
        };
        let cases = [
            (json!([]), None, json!([])),
            (json!([stop("u"), start]), None, json!([start])),
            (json!([stop("u"), start]), vmi("Running", false), json!([stop("u"), start])),
            (json!([stop("u"), start]), vmi("Running", true), json!([stop("u"), start])),
            (json!([stop("old"), start]), vmi("Running", false), json!([start])),
            (json!([{ "action": "Stop" }]), vmi("Running", false), json!([])),
            (json!([start]), None, json!([start])),
            (json!([start]), vmi("Pending", false), json!([])),
            (json!([start]), vmi("Running", true), json!([start])),
            (json!([start]), vmi("Failed", false), json!([start])),
            (json!([start, start]), vmi("Running", false), json!([start])),
            (json!([{ "action": "Jump" }]), None, json!([])),
        ];
        for (before, vmi, expected) in cases {
            let mut status = read(json!({ "stateChangeRequests": before }));
            let vmi: Option<VirtualMachineInstance> = vmi.map(read);
            drop_first_if_done(&mut status, Some(&RunStrategy::RerunOnFailure), vmi.as_ref());
            assert_eq!(json!(status.state_change_requests), expected, "{before} {vmi:?}");
        }
        let mut status = read(json!({ "stateChangeRequests": [start] }));
        let ended: Option<VirtualMachineInstance> = vmi("Failed", false).map(read);
        drop_first_if_done(&mut status, Some(&RunStrategy::Manual), ended.as_ref());
        assert_eq!(status.state_change_requests, Some(vec![]));
    }

    #[test]
    fn a_volume_request_goes_when_the_template_has_it() {
        let spec = |volumes: Value, disks: Value| json!({ "domain": { "devices": { "disks": disks } }, "volumes": volumes });
        let there = spec(json!([{ "name": "v" }]), json!([{ "name": "v" }]));
        let half = spec(json!([{ "name": "v" }]), json!([]));
        let absent = spec(json!([]), json!([]));
        let add = json!({ "addVolumeOptions": { "name": "v", "disk": { "name": "v" }, "volumeSource": {} } });
        let remove = json!({ "removeVolumeOptions": { "name": "v" } });
        for (request, template, left) in [
            (&add, &there, 0),
            (&add, &half, 1),
            (&add, &absent, 1),
            (&remove, &there, 1),
            (&remove, &half, 1),
            (&remove, &absent, 0),
        ] {
            let vm = machine(json!({ "spec": { "template": { "spec": template } } }));
            let mut status = read(json!({ "volumeRequests": [request] }));
            drop_done_volumes(&mut status, &vm);
            assert_eq!(status.volume_requests.unwrap().len(), left, "{request} {template}");
        }
    }
}
