//! Whether a change of the machine takes effect only after a restart.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kubevirt_admission::instancetype::expand;
use kubevirt_admission::validate::same::same;
use kubevirt_api::names;
use kubevirt_api::vm::{UpdateVolumesStrategy, VirtualMachine, VirtualMachineSpec};
use kubevirt_api::vmi::disks::Disk;
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

use super::{live, revisions};
use crate::vm::observe::Observed;
use crate::vm::plan::Plan;
use crate::vm::status::conditions;
use crate::vm::view;

/// Compares the machine with what its instance was started from, and notes what a restart is needed for. Whether one
/// is needed.
pub fn decide(seen: &Observed, plan: &mut Plan, now: Timestamp) -> bool {
    let Some(vmi) = &plan.instance else { return false };
    let Some(started_from) = revisions::last_start(seen) else { return false };
    let Some(needed) = needs_restart(seen, started_from, vmi) else { return false };
    let status = plan.machine.status.get_or_insert_default();
    match needed {
        true => conditions::require_restart(
            status,
            "a field of the template was changed that cannot be changed while the machine runs",
            now,
        ),
        false => conditions::remove(status, names::conditions::vm::RESTART_REQUIRED),
    }
    needed
}

/// Whether anything but what can be changed live differs; nothing where it cannot be told.
fn needs_restart(
    seen: &Observed,
    started_from: VirtualMachineSpec,
    vmi: &VirtualMachineInstance,
) -> Option<bool> {
    let present = expand::template(&seen.objects, &seen.vm).ok()?.spec?;
    // The revision names exact copies; what the status of today names is not its matter.
    let then = VirtualMachine { metadata: seen.vm.metadata.clone(), spec: started_from, status: None };
    let mut then = expand::template(&seen.objects, &then).ok()?.spec?;
    let migrates = seen.vm.spec.update_volumes_strategy == Some(UpdateVolumesStrategy::Migration);
    if disks_can_follow(&then, &present) {
        then.domain.devices.disks.clone_from(&present.domain.devices.disks);
    }
    if volumes_can_follow(&then, &present, migrates) {
        then.volumes.clone_from(&present.volumes);
    }
    if seen.config.live_update() {
        follow_live(&mut then, &present);
    }
    if !live::interfaces::need_restart(&present, &vmi.spec) {
        then.domain.devices.interfaces.clone_from(&present.domain.devices.interfaces);
        then.networks.clone_from(&present.networks);
    }
    follow_identity(&mut then, &present, vmi);
    Some(!same(&then, &present))
}

/// CPUs, memory and placement are brought to a running instance elsewhere.
fn follow_live(then: &mut VirtualMachineInstanceSpec, present: &VirtualMachineInstanceSpec) {
    if let (Some(then), Some(present)) = (&mut then.domain.cpu, &present.domain.cpu) {
        then.sockets = present.sockets;
    }
    if let Some(guest) = present.domain.memory.as_ref().and_then(|memory| memory.guest.clone()) {
        then.domain.memory.get_or_insert_default().guest = Some(guest);
    }
    then.node_selector.clone_from(&present.node_selector);
    then.affinity.clone_from(&present.affinity);
    then.tolerations.clone_from(&present.tolerations);
}

/// A UUID that was written down for a machine that had none is no change to its guest.
fn follow_identity(
    then: &mut VirtualMachineInstanceSpec,
    present: &VirtualMachineInstanceSpec,
    vmi: &VirtualMachineInstance,
) {
    let uuid = |spec: &VirtualMachineInstanceSpec| spec.domain.firmware.as_ref()?.uuid.clone();
    let present = uuid(present);
    if present.is_some() && present == uuid(&vmi.spec) {
        then.domain.firmware.get_or_insert_default().uuid = present;
    }
}

fn by_name<T>(list: &Option<Vec<T>>, name: fn(&T) -> &str) -> BTreeMap<&str, &T> {
    list.iter().flatten().map(|item| (name(item), item)).collect()
}

fn volume_name(volume: &Volume) -> &str {
    &volume.name
}

fn disk_name(disk: &Disk) -> &str {
    &disk.name
}

fn can_be_plugged(volume: &Volume) -> bool {
    let dump = volume.memory_dump.as_ref().and_then(|dump| dump.hotpluggable);
    view::is_hotpluggable(volume) || dump == Some(true)
}

/// Whether each volume that came, went or changed can do so while the guest runs.
fn volumes_can_follow(
    then: &VirtualMachineInstanceSpec,
    present: &VirtualMachineInstanceSpec,
    migrates: bool,
) -> bool {
    let mut left = by_name(&then.volumes, volume_name);
    let kept = present.volumes.iter().flatten().all(|volume| {
        let old = left.remove(volume.name.as_str());
        let has_claim = volume.persistent_volume_claim.is_some() || volume.data_volume.is_some();
        let Some(old) = old else { return can_be_plugged(volume) };
        can_be_plugged(volume) || (migrates && has_claim) || same(old, volume)
    });
    kept && left.values().all(|volume| can_be_plugged(volume))
}

/// Whether each disk that came, went or changed can do so while the guest runs.
fn disks_can_follow(then: &VirtualMachineInstanceSpec, present: &VirtualMachineInstanceSpec) -> bool {
    let mut left = by_name(&then.domain.devices.disks, disk_name);
    let volumes_then = by_name(&then.volumes, volume_name);
    let volumes = by_name(&present.volumes, volume_name);
    let kept = present.domain.devices.disks.iter().flatten().all(|disk| {
        let old = left.remove(disk.name.as_str());
        let pluggable = volumes.get(disk.name.as_str()).is_some_and(|volume| can_be_plugged(volume));
        pluggable || old.is_some_and(|old| same(old, disk))
    });
    kept && left.values().all(|disk| {
        let fixed = volumes_then.get(disk.name.as_str()).is_some_and(|volume| !can_be_plugged(volume));
        // An empty drive can be filled and emptied while the guest runs, but not taken out.
        !fixed && disk.cdrom.is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{at, machine, patched, read, seen, shared};
    use kubevirt_admission::ClusterConfig;
    use kubevirt_api::condition;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn template(patch: Value) -> Value {
        let base = json!({
            "domain": {
                "cpu": { "sockets": 1 }, "memory": { "guest": "1Gi" },
                "devices": { "disks": [{ "name": "root" }], "interfaces": [{ "name": "default", "masquerade": {} }] },
            },
            "networks": [{ "name": "default", "pod": {} }],
            "volumes": [{ "name": "root", "persistentVolumeClaim": { "claimName": "a" } }],
        });
        patched(&base, &patch)
    }

    fn needed(patch: Value, spec: Value, configuration: Value) -> bool {
        let at_start = machine(json!({
            "metadata": { "generation": 1 }, "spec": { "template": { "spec": template(json!({})) } },
        }));
        let mut spec = spec;
        spec["template"] = json!({ "spec": template(patch) });
        let mut seen = seen(machine(json!({ "metadata": { "generation": 2 }, "spec": spec })));
        seen.revisions.push(Arc::new(revisions::of_start(&at_start)));
        seen.config =
            Arc::new(ClusterConfig::of(&read(json!({ "spec": { "configuration": configuration } }))));
        let mut plan = Plan::keeping(&seen);
        plan.instance = Some(read(json!({ "spec": template(json!({})) })));
        let needed = decide(&seen, &mut plan, at(0));
        let noted = conditions::holds(plan.status(), names::conditions::vm::RESTART_REQUIRED);
        assert_eq!(noted, needed);
        needed
    }

    #[test]
    fn a_restart_that_is_still_needed_keeps_its_time() {
        let with = |sockets: u32, generation: i64| {
            let domain = json!({ "cpu": { "sockets": sockets }, "firmware": { "uuid": "u" } });
            let spec = template(json!({ "domain": domain }));
            let spec = json!({ "runStrategy": "Always", "template": { "spec": spec } });
            machine(json!({ "metadata": { "generation": generation }, "spec": spec }))
        };
        let mut seen = seen(with(1, 2));
        seen.revisions.push(Arc::new(revisions::of_start(&with(2, 1))));
        let owner = json!([view::owner_reference(&seen.vm)]);
        seen.instance = Some(shared(json!({
            "metadata": { "name": "web", "ownerReferences": owner },
            "spec": template(json!({
                "domain": { "cpu": { "sockets": 2, "maxSockets": 4 }, "firmware": { "uuid": "u" } },
            })),
            "status": { "phase": "Running" },
        })));
        let told = [10, 20].map(|second| {
            let plan = crate::vm::decide::decide(&seen, at(second));
            seen.vm = Arc::new(crate::vm::status::machine(&seen, &plan, at(second)));
            let all = seen.vm.status.as_ref().unwrap().conditions.as_deref();
            condition::find(all, names::conditions::vm::RESTART_REQUIRED).cloned()
        });
        assert!(told[0].is_some());
        assert_eq!(told[0], told[1]);
    }

    #[test]
    fn only_what_cannot_be_changed_live_needs_a_restart() {
        let pluggable =
            json!({ "name": "more", "persistentVolumeClaim": { "claimName": "b", "hotpluggable": true } });
        let root = json!({ "name": "root", "persistentVolumeClaim": { "claimName": "a" } });
        let moved = json!({ "name": "root", "persistentVolumeClaim": { "claimName": "b" } });
        let domain = |domain: Value| json!({ "domain": domain });
        let cases = [
            ("nothing", json!({}), json!({}), false),
            ("empty instead of none", json!({ "tolerations": [], "hostname": "" }), json!({}), false),
            ("written otherwise", domain(json!({ "memory": { "guest": "1024Mi" } })), json!({}), false),
            ("hostname", json!({ "hostname": "x" }), json!({}), true),
            ("cores", domain(json!({ "cpu": { "cores": 2 } })), json!({}), true),
            ("sockets", domain(json!({ "cpu": { "sockets": 2 } })), json!({}), false),
            ("memory", domain(json!({ "memory": { "guest": "2Gi" } })), json!({}), false),
            ("node selector", json!({ "nodeSelector": { "a": "b" } }), json!({}), false),
            ("tolerations", json!({ "tolerations": [{ "operator": "Exists" }] }), json!({}), false),
            (
                "a volume plugged",
                json!({ "volumes": [root, pluggable], "domain": { "devices": { "disks": [{ "name": "root" }, { "name": "more" }] } } }),
                json!({}),
                false,
            ),
            (
                "a volume added",
                json!({ "volumes": [root, { "name": "more", "emptyDisk": { "capacity": "1Gi" } }] }),
                json!({}),
                true,
            ),
            (
                "a volume removed",
                json!({ "volumes": [], "domain": { "devices": { "disks": [] } } }),
                json!({}),
                true,
            ),
            ("a claim replaced", json!({ "volumes": [moved] }), json!({}), true),
            (
                "a claim migrated",
                json!({ "volumes": [moved] }),
                json!({ "updateVolumesStrategy": "Migration" }),
                false,
            ),
            (
                "an interface plugged",
                json!({
                    "networks": [{ "name": "default", "pod": {} }, { "name": "n", "multus": { "networkName": "n" } }],
                    "domain": { "devices": { "interfaces": [{ "name": "default", "masquerade": {} }, { "name": "n", "bridge": {} }] } },
                }),
                json!({}),
                false,
            ),
            (
                "an interface changed",
                domain(json!({ "devices": { "interfaces": [{ "name": "default", "bridge": {} }] } })),
                json!({}),
                true,
            ),
        ];
        for (case, patch, spec, expected) in cases {
            assert_eq!(needed(patch, spec, json!({})), expected, "{case}");
        }
    }

    #[test]
    fn where_changes_are_staged_all_need_a_restart() {
        let staged = json!({ "vmRolloutStrategy": "Stage" });
        for patch in [
            json!({ "domain": { "cpu": { "sockets": 2 } } }),
            json!({ "domain": { "memory": { "guest": "2Gi" } } }),
            json!({ "nodeSelector": { "a": "b" } }),
        ] {
            assert!(needed(patch.clone(), json!({}), staged.clone()), "{patch}");
        }
    }

    #[test]
    fn a_larger_instance_type_is_a_change_of_sockets() {
        let kept = |name: &str, cpus: u32| {
            shared(json!({
                "metadata": { "name": name, "namespace": "default",
                    "labels": { "instancetype.kubevirt.io/object-name": name } },
                "revision": 0,
                "data": {
                    "apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineInstancetype",
                    "spec": { "cpu": { "guest": cpus }, "memory": { "guest": "1Gi" } },
                },
            }))
        };
        let vm = |name: &str, generation: i64| {
            machine(json!({
                "metadata": { "generation": generation },
                "spec": { "instancetype": { "name": name, "revisionName": name } },
            }))
        };
        let mut seen = seen(vm("large", 2));
        seen.revisions.push(Arc::new(revisions::of_start(&vm("small", 1))));
        seen.objects.controller_revisions = vec![kept("small", 1), kept("large", 2)];
        let mut plan = Plan::keeping(&seen);
        plan.instance = Some(VirtualMachineInstance::default());
        assert!(!decide(&seen, &mut plan, at(0)));
    }
}
