//! Makes the instance of a machine.

use kubevirt_admission::Gate;
use kubevirt_admission::instancetype::expand;
use kubevirt_admission::mutate::vmi::{disks, firmware, metadata, network};
use kubevirt_api::condition;
use kubevirt_api::names::{annotations, conditions, events, finalizers, reasons};
use kubevirt_api::vm::status::{MemoryDumpPhase, VirtualMachineStatus};
use kubevirt_api::vm::{RunStrategy, VirtualMachine};
use kubevirt_api::vmi::devices::Input;
use kubevirt_api::vmi::status::{ChangedBlockTrackingState, ChangedBlockTrackingStatus};
use kubevirt_api::vmi::{StartStrategy, VirtualMachineInstance, VirtualMachineInstanceSpec};

use super::instancetypes::sentence;
use super::{adoption::Claim, data_volumes, revisions};
use crate::vm::observe::Observed;
use crate::vm::plan::{Failure, Plan, Step};
use crate::vm::status::tracking;
use crate::vm::view;

/// Starts the machine, unless its disks are not there or a user has to look first.
pub fn decide(seen: &Observed, plan: &mut Plan, claim: Claim, strategy: &RunStrategy) -> Result<(), Failure> {
    if claim == Claim::Foreign {
        return Err(Failure::new(
            reasons::vm::FAILED_CREATE,
            "there is an instance of this name that belongs to somebody else, or is on its way out",
        ));
    }
    if !is_immediate(&seen.vm) && !data_volumes::decide(seen, plan)? {
        return Ok(());
    }
    let status = seen.vm.status.as_ref().and_then(|status| status.conditions.as_deref());
    let recovery = condition::find(status, conditions::vm::MANUAL_RECOVERY_REQUIRED);
    if recovery.is_some_and(condition::Condition::is_true) {
        return Ok(());
    }
    let vmi = instance(seen, strategy).inspect_err(|failure| {
        plan.warn(events::objects::FAILED_CREATE, failure.message.clone());
    })?;
    plan.forget_restart();
    if !revisions::is_kept(seen) {
        plan.steps.push(Step::CreateRevision(Box::new(revisions::of_start(&seen.vm))));
    }
    plan.outdated_revisions.extend(revisions::outdated(seen));
    let name = vmi.metadata.name.clone().unwrap_or_default();
    plan.steps.push(Step::CreateInstance(Box::new(vmi)));
    plan.tell(
        events::objects::SUCCESSFUL_CREATE,
        format!("Started the machine by creating its instance {name}"),
    );
    Ok(())
}

/// Whether DataVolumes are made with the machine rather than with its first instance.
pub fn is_immediate(vm: &VirtualMachine) -> bool {
    view::annotation(&vm.metadata, annotations::IMMEDIATE_DATA_VOLUME_CREATION) != Some("false")
}

/// The instance of a machine, as it is sent to be created: admission completes it.
pub fn instance(seen: &Observed, strategy: &RunStrategy) -> Result<VirtualMachineInstance, Failure> {
    let mut vmi = bare(&seen.vm);
    let status = vmi.status.get_or_insert_default();
    status.virtual_machine_revision_name = Some(revisions::name(&seen.vm));
    revisions::mark(&mut vmi, seen.vm.metadata.generation.unwrap_or_default());
    if *strategy == RunStrategy::WaitAsReceiver {
        let all = vmi.metadata.annotations.get_or_insert_default();
        all.insert(annotations::CREATE_MIGRATION_TARGET.to_owned(), "true".to_owned());
    }
    metadata::add_finalizer(&mut vmi.metadata, finalizers::VM_CONTROLLER);
    let spec = &mut vmi.spec;
    let problems = expand::attach_by_preference(&seen.objects, &seen.vm, spec);
    problems.into_result().map_err(|all| sentence(&all))?;
    attach_input(spec);
    network::add_default(&seen.config, spec).into_result().map_err(|all| sentence(&all))?;
    track_blocks(seen, &mut vmi);
    let problems = expand::into_instance(&seen.objects, &seen.vm, &mut vmi);
    problems.into_result().map_err(|all| sentence(&all))?;
    Ok(vmi)
}

/// What the template says, under the machine's name and with the machine as its owner.
fn bare(vm: &VirtualMachine) -> VirtualMachineInstance {
    let template = vm.spec.template.clone();
    let mut vmi = VirtualMachineInstance {
        metadata: template.metadata.unwrap_or_default(),
        spec: template.spec.unwrap_or_default(),
        status: None,
    };
    let metadata = &mut vmi.metadata;
    metadata.name.clone_from(&vm.metadata.name);
    metadata.namespace.clone_from(&vm.metadata.namespace);
    metadata.generate_name = None;
    metadata.owner_references = Some(vec![view::owner_reference(vm)]);
    let status = vm.status.as_ref();
    if status.is_some_and(paused_start_requested) {
        vmi.spec.start_strategy = Some(StartStrategy::Paused);
    }
    if let Some(dump) = status.and_then(finished_dump) {
        // The guest was dumped already; with the volume it would be dumped at each start.
        vmi.spec.volumes.iter_mut().for_each(|volumes| volumes.retain(|volume| volume.name != dump));
    }
    let firmware = vmi.spec.domain.firmware.get_or_insert_default();
    if firmware.uuid.as_deref().unwrap_or_default().is_empty() {
        let name = vm.metadata.name.as_deref().unwrap_or_default();
        firmware.uuid = Some(firmware::uuid_by_name(name).to_string());
    }
    disks::add_missing(&mut vmi.spec);
    vmi
}

fn paused_start_requested(status: &VirtualMachineStatus) -> bool {
    let data = view::first_request(status).and_then(|request| request.data.as_ref());
    let paused = data.and_then(|data| data.get("paused"));
    view::start_requested(status) && paused.is_some_and(|paused| paused == "true")
}

fn finished_dump(status: &VirtualMachineStatus) -> Option<&str> {
    let dump = status.memory_dump_request.as_ref()?;
    let under_way = matches!(dump.phase, MemoryDumpPhase::Associating | MemoryDumpPhase::InProgress);
    (!under_way).then_some(&dump.claim_name)
}

/// Only named here: a preference or admission chooses what kind of device it is.
fn attach_input(spec: &mut VirtualMachineInstanceSpec) {
    let devices = &mut spec.domain.devices;
    let has_input = devices.inputs.as_ref().is_some_and(|inputs| !inputs.is_empty());
    if devices.autoattach_input_device == Some(true) && !has_input {
        devices.inputs = Some(vec![Input { name: "default-0".to_owned(), ..Input::default() }]);
    }
}

fn track_blocks(seen: &Observed, vmi: &mut VirtualMachineInstance) {
    if !seen.config.enabled(Gate::IncrementalBackup) {
        return;
    }
    let known = seen.vm.status.as_ref().and_then(|status| status.changed_block_tracking.as_ref());
    let state = match tracking::is_selected(seen) {
        true => ChangedBlockTrackingState::Initializing,
        false if known.is_some_and(|known| !known.state.is_empty()) => ChangedBlockTrackingState::Disabled,
        false => return,
    };
    vmi.status.get_or_insert_default().changed_block_tracking =
        Some(ChangedBlockTrackingStatus { state, ..ChangedBlockTrackingStatus::default() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{machine, seen, shared};
    use serde_json::{Value, json};

    fn made(patch: Value, strategy: &RunStrategy) -> Value {
        json!(instance(&seen(machine(patch)), strategy).unwrap())
    }

    /// The table of the seed: name, namespace and labels are the machine's, the specification its template's.
    #[test]
    fn an_instance_is_the_template_under_the_machines_name() {
        let vmi = made(
            json!({
                "metadata": { "generation": 4, "labels": { "not": "these" } },
                "spec": { "template": {
                    "metadata": { "name": "odd", "labels": { "app": "web" }, "annotations": { "note": "x" } },
                    "spec": {
                        "domain": { "devices": {}, "firmware": { "uuid": "own" } },
                        "networks": [{ "name": "n", "pod": {} }],
                        "volumes": [{ "name": "v", "emptyDisk": { "capacity": "1Gi" } }],
                    },
                } },
            }),
            &RunStrategy::Always,
        );
        assert_eq!(
            vmi["metadata"],
            json!({
                "name": "web", "namespace": "default",
                "labels": { "app": "web" },
                "annotations": { "note": "x", "kubevirt.io/vm-generation": "4" },
                "finalizers": ["kubevirt.io/virtualMachineControllerFinalize"],
                "ownerReferences": [{
                    "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "vm-uid",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            })
        );
        assert_eq!(vmi["spec"]["domain"]["firmware"]["uuid"], "own");
        assert_eq!(vmi["spec"]["domain"]["devices"]["disks"], json!([{ "name": "v" }]));
        assert_eq!(vmi["status"], json!({ "virtualMachineRevisionName": "revision-start-vm-vm-uid-4" }));
    }

    #[test]
    fn a_machine_without_a_uuid_has_the_one_that_its_name_stands_for() {
        let vmi = made(json!({}), &RunStrategy::Always);
        assert_eq!(vmi["spec"]["domain"]["firmware"]["uuid"], firmware::uuid_by_name("web").to_string());
    }

    #[test]
    fn a_request_can_ask_for_a_paused_start() {
        let start = |data: Value| {
            let status = json!({ "stateChangeRequests": [{ "action": "Start", "data": data }] });
            made(json!({ "status": status }), &RunStrategy::Always)["spec"]["startStrategy"].clone()
        };
        assert_eq!(start(json!({ "paused": "true" })), "Paused");
        assert_eq!(start(json!({ "paused": "false" })), Value::Null);
        assert_eq!(start(Value::Null), Value::Null);
    }

    #[test]
    fn a_receiver_is_marked_and_an_input_comes_where_it_is_asked_for() {
        let devices = json!({ "autoattachInputDevice": true });
        let vmi = made(
            json!({ "spec": { "template": { "spec": { "domain": { "devices": devices } } } } }),
            &RunStrategy::WaitAsReceiver,
        );
        assert_eq!(vmi["metadata"]["annotations"]["kubevirt.io/create-migration-target"], "true");
        assert_eq!(vmi["spec"]["domain"]["devices"]["inputs"][0]["name"], "default-0");
    }

    #[test]
    fn a_finished_memory_dump_is_not_taken_again() {
        let volumes = |phase: &str| {
            let dump = json!({ "memoryDump": { "claimName": "dump", "hotpluggable": true }, "name": "dump" });
            let spec = json!({ "domain": { "devices": {} }, "volumes": [dump] });
            let status = json!({ "memoryDumpRequest": { "claimName": "dump", "phase": phase } });
            let vmi = made(
                json!({ "spec": { "template": { "spec": spec } }, "status": status }),
                &RunStrategy::Always,
            );
            vmi["spec"]["volumes"].as_array().unwrap().len()
        };
        assert_eq!(volumes("Completed"), 0);
        assert_eq!(volumes("InProgress"), 1);
    }

    #[test]
    fn instance_type_and_preference_are_applied_and_named() {
        let mut seen = seen(machine(json!({
            "spec": { "instancetype": { "name": "small" }, "preference": { "name": "linux" } },
        })));
        seen.objects.cluster_instancetypes.push(shared(json!({
            "metadata": { "name": "small" },
            "spec": { "cpu": { "guest": 2 }, "memory": { "guest": "1Gi" } },
        })));
        seen.objects.cluster_preferences.push(shared(json!({
            "metadata": { "name": "linux" },
            "spec": { "devices": { "preferredAutoattachInputDevice": true, "preferredInputBus": "virtio" } },
        })));
        let vmi = json!(instance(&seen, &RunStrategy::Always).unwrap());
        assert_eq!(vmi["spec"]["domain"]["memory"]["guest"], "1Gi");
        assert_eq!(vmi["spec"]["domain"]["devices"]["inputs"][0]["bus"], "virtio");
        assert_eq!(vmi["metadata"]["annotations"]["kubevirt.io/cluster-instancetype-name"], "small");
        assert_eq!(vmi["metadata"]["annotations"]["kubevirt.io/cluster-preference-name"], "linux");
    }
}
