//! What machines and instances say of themselves, read in the words of the controller.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kubevirt_api::condition::{self, Condition};
use kubevirt_api::names::{groups, reasons};
use kubevirt_api::vm::status::{StateChangeRequest, StateChangeRequestAction, VirtualMachineStatus};
use kubevirt_api::vm::{RunStrategy, VirtualMachine};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::migration_state::MigrationState;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_api::vmi::volumes::Volume;

use super::plan::Failure;

/// The run strategy that a machine asks for; the older `running` says Always or Halted.
pub fn run_strategy(vm: &VirtualMachine) -> Result<RunStrategy, Failure> {
    let asked = vm.spec.run_strategy.as_ref().filter(|strategy| !strategy.is_empty());
    match (vm.spec.running, asked) {
        (Some(_), Some(_)) => Err(Failure::new(
            reasons::vm::FAILED_CREATE,
            "spec.running and spec.runStrategy exclude each other: remove spec.running",
        )),
        (Some(true), None) => Ok(RunStrategy::Always),
        (Some(false) | None, None) => Ok(RunStrategy::Halted),
        (None, Some(strategy)) => Ok(strategy.clone()),
    }
}

/// Asks for another run strategy in the words that the machine uses: `running` never becomes `runStrategy`.
pub fn switch_to(vm: &mut VirtualMachine, strategy: RunStrategy) {
    match vm.spec.running {
        Some(_) => vm.spec.running = Some(strategy != RunStrategy::Halted),
        None => vm.spec.run_strategy = Some(strategy),
    }
}

/// The request to act on next.
pub fn first_request(status: &VirtualMachineStatus) -> Option<&StateChangeRequest> {
    status.state_change_requests.as_ref()?.first()
}

/// Whether the next request is to start.
pub fn start_requested(status: &VirtualMachineStatus) -> bool {
    first_request(status).is_some_and(|request| request.action == StateChangeRequestAction::Start)
}

/// Whether the next request is to stop this very instance.
pub fn stop_requested(status: &VirtualMachineStatus, vmi: &VirtualMachineInstance) -> bool {
    first_request(status).is_some_and(|request| {
        request.action == StateChangeRequestAction::Stop
            && request.uid.is_some()
            && request.uid == vmi.metadata.uid
    })
}

/// The phase of an instance, if it has one yet.
pub fn phase(vmi: &VirtualMachineInstance) -> Option<&VmiPhase> {
    vmi.status.as_ref()?.phase.as_ref().filter(|phase| !phase.is_empty())
}

/// Whether an instance is in this phase.
pub fn is_in(vmi: &VirtualMachineInstance, wanted: VmiPhase) -> bool {
    phase(vmi) == Some(&wanted)
}

/// Whether an instance has ended for good.
pub fn is_final(vmi: &VirtualMachineInstance) -> bool {
    matches!(phase(vmi), Some(VmiPhase::Succeeded | VmiPhase::Failed))
}

/// Whether the guest of an instance ever ran.
pub fn has_run(vmi: &VirtualMachineInstance) -> bool {
    let times = vmi.status.as_ref().and_then(|status| status.phase_transition_timestamps.as_ref());
    times.into_iter().flatten().any(|time| time.phase == Some(VmiPhase::Running))
}

/// Whether an object is on its way out.
pub fn is_deleting(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

/// Whether an object bears a finalizer.
pub fn has_finalizer(metadata: &ObjectMeta, finalizer: &str) -> bool {
    metadata.finalizers.iter().flatten().any(|other| other == finalizer)
}

/// Takes a finalizer off.
pub fn remove_finalizer(metadata: &mut ObjectMeta, finalizer: &str) {
    let Some(finalizers) = &mut metadata.finalizers else { return };
    finalizers.retain(|other| other != finalizer);
    if finalizers.is_empty() {
        metadata.finalizers = None;
    }
}

/// A condition of an instance.
pub fn condition<'a>(vmi: &'a VirtualMachineInstance, type_: &str) -> Option<&'a Condition> {
    condition::find(vmi.status.as_ref()?.conditions.as_deref(), type_)
}

/// Whether a condition of an instance has this status.
pub fn condition_is(vmi: &VirtualMachineInstance, type_: &str, status: &str) -> bool {
    condition(vmi, type_).is_some_and(|condition| condition.status == status)
}

/// The current or last migration of an instance.
pub fn migration(vmi: &VirtualMachineInstance) -> Option<&MigrationState> {
    vmi.status.as_ref()?.migration_state.as_ref()
}

/// Whether a migration of an instance is under way.
pub fn is_migrating(vmi: &VirtualMachineInstance, now: Timestamp) -> bool {
    let passed = |time: &Option<Time>| time.as_ref().is_some_and(|time| time.0 <= now);
    migration(vmi).is_some_and(|state| passed(&state.start_timestamp) && !passed(&state.end_timestamp))
}

/// Whether the last migration of an instance is over.
pub fn has_migrated(vmi: &VirtualMachineInstance) -> bool {
    migration(vmi).is_some_and(|state| state.completed == Some(true))
}

/// Whether an instance moves from or to another cluster or namespace: only one side knows where to meet.
pub fn is_decentralized(vmi: &VirtualMachineInstance) -> bool {
    let Some(state) = migration(vmi) else { return false };
    match (&state.source_state, &state.target_state) {
        (Some(source), Some(target)) => source.sync_address.is_some() != target.sync_address.is_some(),
        _ => false,
    }
}

/// The reference by which a machine owns what it makes.
pub fn owner_reference(vm: &VirtualMachine) -> OwnerReference {
    OwnerReference {
        api_version: groups::KUBEVIRT_V1.to_owned(),
        kind: "VirtualMachine".to_owned(),
        name: vm.metadata.name.clone().unwrap_or_default(),
        uid: vm.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Who controls an object.
pub fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// An annotation of an object.
pub fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The specification in a machine's template.
pub fn template(vm: &VirtualMachine) -> Option<&VirtualMachineInstanceSpec> {
    vm.spec.template.spec.as_ref()
}

/// The volumes in a machine's template.
pub fn volumes(vm: &VirtualMachine) -> &[Volume] {
    template(vm).and_then(|spec| spec.volumes.as_deref()).unwrap_or_default()
}

/// The claim behind a volume, if it has one.
pub fn claim_name(volume: &Volume) -> Option<&str> {
    let name = match volume {
        Volume { data_volume: Some(source), .. } => &source.name,
        Volume { persistent_volume_claim: Some(source), .. } => &source.claim_name,
        Volume { memory_dump: Some(source), .. } => &source.claim_name,
        _ => return None,
    };
    Some(name.as_str()).filter(|name| !name.is_empty())
}

/// Whether a volume may be plugged while the guest runs, by its own word.
pub fn is_hotpluggable(volume: &Volume) -> bool {
    let claim = volume.persistent_volume_claim.as_ref().and_then(|source| source.hotpluggable);
    let data_volume = volume.data_volume.as_ref().and_then(|source| source.hotpluggable);
    claim == Some(true) || data_volume == Some(true)
}

/// The present second: what is stored has no parts of one, and comparing must not find any.
pub fn second(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{machine, read};
    use serde_json::json;

    #[test]
    fn the_older_running_says_always_or_halted() {
        let cases = [
            (json!({ "running": true }), Some(RunStrategy::Always)),
            (json!({ "running": false }), Some(RunStrategy::Halted)),
            (json!({}), Some(RunStrategy::Halted)),
            (json!({ "runStrategy": "Once" }), Some(RunStrategy::Once)),
            (json!({ "runStrategy": "Sometimes" }), Some(RunStrategy::from("Sometimes"))),
            (json!({ "runStrategy": "Once", "running": true }), None),
        ];
        for (spec, expected) in cases {
            assert_eq!(run_strategy(&machine(json!({ "spec": spec }))).ok(), expected, "{spec}");
        }
    }

    #[test]
    fn a_machine_that_says_running_keeps_saying_it() {
        for (spec, to, expected) in [
            (json!({ "running": false }), RunStrategy::Always, json!({ "running": true })),
            (json!({ "running": true }), RunStrategy::Halted, json!({ "running": false })),
            (json!({ "runStrategy": "Halted" }), RunStrategy::Always, json!({ "runStrategy": "Always" })),
            (json!({}), RunStrategy::Always, json!({ "runStrategy": "Always" })),
        ] {
            let mut vm = machine(json!({ "spec": spec }));
            switch_to(&mut vm, to);
            let written = json!(vm.spec);
            for key in ["running", "runStrategy"] {
                assert_eq!(written.get(key), expected.get(key), "{spec}");
            }
        }
    }

    #[test]
    fn a_stop_is_for_one_instance() {
        let status = |request: serde_json::Value| read(json!({ "stateChangeRequests": [request] }));
        let vmi = read(json!({ "metadata": { "uid": "a" } }));
        assert!(stop_requested(&status(json!({ "action": "Stop", "uid": "a" })), &vmi));
        assert!(!stop_requested(&status(json!({ "action": "Stop", "uid": "b" })), &vmi));
        assert!(!stop_requested(&status(json!({ "action": "Stop" })), &read(json!({}))));
        assert!(start_requested(&status(json!({ "action": "Start" }))));
    }
}
