//! Volumes that are to be added to, or removed from, a machine: each request alone, and what they lead to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::{AddVolumeOptions, VolumeRequest};
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

use super::seams;
use super::volumes::same;
use crate::validate::vmi_spec;
use crate::{Context, Path, Problems};

/// The list stands here in what users are told, with this capital letter.
const FIELD: Path<'_> = Path::new("Status.volumeRequests");

/// Checks the requests that are kept in the machine's status.
pub(crate) fn check(cx: &Context<'_>, vm: &VirtualMachine, problems: &mut Problems) {
    let requests =
        vm.status.as_ref().and_then(|status| status.volume_requests.as_deref()).unwrap_or_default();
    if requests.is_empty() {
        return;
    }
    let vmi = running_instance(cx, vm);
    let template = vm.spec.template.spec.clone().unwrap_or_default();
    let mut own = Problems::default();
    check_each(requests, &template, vmi.as_deref(), &mut own);
    if own.is_empty() {
        check_outcome(cx, requests, template, vmi.as_deref(), &mut own);
    }
    problems.append(own);
}

fn running_instance(cx: &Context<'_>, vm: &VirtualMachine) -> Option<Arc<VirtualMachineInstance>> {
    let ready = vm.status.as_ref().and_then(|status| status.ready).unwrap_or_default();
    let name = vm.metadata.name.as_deref().filter(|_| ready)?;
    cx.objects.vmi(&cx.request.namespace, name).filter(|vmi| vmi.metadata.deletion_timestamp.is_none())
}

fn check_each(
    requests: &[VolumeRequest],
    template: &VirtualMachineInstanceSpec,
    vmi: Option<&VirtualMachineInstance>,
    problems: &mut Problems,
) {
    let of_template = by_name(template);
    let of_instance = vmi.map(|vmi| by_name(&vmi.spec)).unwrap_or_default();
    let (mut added, mut removed) = (BTreeSet::new(), BTreeSet::new());
    for request in requests {
        match (&request.add_volume_options, &request.remove_volume_options) {
            (Some(add), None) => {
                let name = add.name.as_str();
                if !added.insert(name) {
                    problems.invalid(&FIELD, format!("volume {name:?} is to be added twice"));
                    continue;
                }
                seams::check_hotplug_disk(&FIELD, add, problems);
                let wanted = volume(add);
                for (have, place) in [(&of_template, "the template"), (&of_instance, "the running instance")]
                {
                    if have.get(name).is_some_and(|have| !same(*have, &wanted)) {
                        problems.invalid(&FIELD, format!("{place} has another volume of the name {name:?}"));
                    }
                }
            }
            (None, Some(remove)) => {
                if !removed.insert(remove.name.as_str()) {
                    problems.invalid(&FIELD, format!("volume {:?} is to be removed twice", remove.name));
                }
            }
            _ => problems
                .invalid(&FIELD, "set exactly one of addVolumeOptions and removeVolumeOptions in a request"),
        }
    }
}

/// Both the template and the running instance must be usable after the changes, and the instance must stay put.
fn check_outcome(
    cx: &Context<'_>,
    requests: &[VolumeRequest],
    mut template: VirtualMachineInstanceSpec,
    vmi: Option<&VirtualMachineInstance>,
    problems: &mut Problems,
) {
    let path = Path::new("spec.template.spec");
    apply(requests, &mut template);
    problems.append(vmi_spec::check(cx, &path, &template));
    let Some(vmi) = vmi else { return };
    if problems.is_empty() {
        let mut instance = vmi.spec.clone();
        apply(requests, &mut instance);
        problems.append(vmi_spec::check(cx, &path, &instance));
    }
    if is_migrating(vmi, &cx.now) {
        problems
            .not_supported(&Path::new("spec"), "volumes cannot change while the machine is being migrated");
    }
}

fn by_name(vmi: &VirtualMachineInstanceSpec) -> BTreeMap<&str, &Volume> {
    vmi.volumes.iter().flatten().map(|volume| (volume.name.as_str(), volume)).collect()
}

/// The volume that a request adds.
fn volume(add: &AddVolumeOptions) -> Volume {
    let mut volume = Volume { name: add.name.clone(), ..Volume::default() };
    match &add.volume_source.persistent_volume_claim {
        Some(claim) => volume.persistent_volume_claim = Some(claim.clone()),
        None => volume.data_volume.clone_from(&add.volume_source.data_volume),
    }
    volume
}

/// Makes the changes in the order of the requests; a volume that is there already is not added again.
fn apply(requests: &[VolumeRequest], vmi: &mut VirtualMachineInstanceSpec) {
    for request in requests {
        let volumes = vmi.volumes.get_or_insert_default();
        let disks = vmi.domain.devices.disks.get_or_insert_default();
        if let Some(add) = &request.add_volume_options {
            if volumes.iter().any(|volume| volume.name == add.name) {
                continue;
            }
            let mut volume = volume(add);
            if let Some(claim) = &mut volume.persistent_volume_claim {
                claim.hotpluggable = Some(true);
            }
            if let Some(data_volume) = &mut volume.data_volume {
                data_volume.hotpluggable = Some(true);
            }
            volumes.push(volume);
            let mut disk = add.disk.clone();
            disk.name.clone_from(&add.name);
            disks.push(disk);
        } else if let Some(remove) = &request.remove_volume_options {
            volumes.retain(|volume| volume.name != remove.name);
            disks.retain(|disk| disk.name != remove.name);
        }
    }
}

/// Whether a migration of the instance has started and not ended.
fn is_migrating(vmi: &VirtualMachineInstance, now: &Time) -> bool {
    let state = vmi.status.as_ref().and_then(|status| status.migration_state.as_ref());
    let past = |time: Option<&Time>| time.is_some_and(|time| time.0 <= now.0);
    state.is_some_and(|state| past(state.start_timestamp.as_ref()) && !past(state.end_timestamp.as_ref()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, patched, read, shared};

    fn add(name: &str, claim: &str) -> Value {
        json!({ "addVolumeOptions": {
            "name": name,
            "disk": { "name": name, "disk": { "bus": "scsi" } },
            "volumeSource": { "persistentVolumeClaim": { "claimName": claim } },
        } })
    }

    fn remove(name: &str) -> Value {
        json!({ "removeVolumeOptions": { "name": name } })
    }

    fn instance(claim: &str) -> Value {
        json!({
            "architecture": "amd64",
            "domain": {
                "memory": { "guest": "1Gi" },
                "machine": { "type": "q35" },
                "devices": { "disks": [{ "name": "have", "disk": { "bus": "scsi" } }] },
            },
            "volumes": [{ "name": "have", "persistentVolumeClaim": { "claimName": claim } }],
        })
    }

    fn found(vmi_patch: &Value, ready: bool, requests: Value) -> Problems {
        let mut world = World::default();
        let vmi = json!({ "metadata": { "name": "vm", "namespace": "default" }, "spec": instance("live") });
        world.objects.vmis.push(shared(patched(&vmi, vmi_patch)));
        let vm = read(json!({
            "metadata": { "name": "vm", "namespace": "default" },
            "spec": { "runStrategy": "Always", "template": { "spec": instance("claim") } },
            "status": { "ready": ready, "volumeRequests": requests },
        }));
        let mut problems = Problems::default();
        world.run(|cx| check(cx, &vm, &mut problems));
        problems
    }

    #[test]
    fn each_request() {
        let both = patched(&add("a", "x"), &remove("b"));
        let list = &["Status.volumeRequests"][..];
        let cases = [
            ("none", json!([]), &[][..]),
            ("add", json!([add("a", "x")]), &[]),
            ("remove", json!([remove("have")]), &[]),
            ("remove what is not there", json!([remove("b")]), &[]),
            ("remove and add", json!([remove("have"), add("a", "x")]), &[]),
            ("nothing", json!([{}]), list),
            ("both", json!([both]), list),
            ("add twice", json!([add("a", "x"), add("a", "x")]), list),
            ("remove twice", json!([remove("a"), remove("a")]), list),
            ("add what is there", json!([add("have", "claim")]), &[]),
            ("add another of the name", json!([add("have", "other")]), list),
            (
                "several",
                json!([{}, add("have", "other")]),
                &["Status.volumeRequests", "Status.volumeRequests"],
            ),
        ];
        for (case, requests, expected) in cases {
            assert_fields(case, &found(&json!({}), false, requests), expected);
        }
    }

    #[test]
    fn the_running_instance_is_asked_too() {
        let list = &["Status.volumeRequests"][..];
        let moving = |end: Value| json!({ "status": { "migrationState": { "startTimestamp": "2026-01-01T00:00:00Z", "endTimestamp": end } } });
        let later = json!({ "status": { "migrationState": { "startTimestamp": "2027-01-01T00:00:00Z" } } });
        let deleting = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        let same = json!([add("have", "claim")]);
        let new = json!([add("a", "x")]);
        let cases = [
            ("other claim there", json!({}), same.clone(), list),
            ("is being deleted", deleting, same.clone(), &[]),
            ("other name", json!({ "metadata": { "name": "x" } }), same.clone(), &[]),
            ("new", json!({}), new.clone(), &[]),
            ("is migrating", moving(Value::Null), new.clone(), &["spec"]),
            ("has migrated", moving(json!("2026-01-01T01:00:00Z")), new.clone(), &[]),
            ("will migrate", later, new.clone(), &[]),
        ];
        for (case, patch, requests, expected) in cases {
            assert_fields(case, &found(&patch, true, requests), expected);
        }
        assert_fields("not ready", &found(&moving(Value::Null), false, new), &[]);
    }

    #[test]
    fn requests_are_applied_in_order() {
        let requests: Vec<VolumeRequest> =
            read(json!([add("a", "x"), remove("have"), add("have", "new"), add("a", "ignored")]));
        let mut vmi: VirtualMachineInstanceSpec = read(instance("claim"));
        apply(&requests, &mut vmi);
        let volumes = serde_json::to_value(&vmi.volumes).unwrap();
        assert_eq!(
            volumes,
            json!([
                { "name": "a", "persistentVolumeClaim": { "claimName": "x", "hotpluggable": true } },
                { "name": "have", "persistentVolumeClaim": { "claimName": "new", "hotpluggable": true } },
            ])
        );
        let disks: Vec<&str> =
            vmi.domain.devices.disks.iter().flatten().map(|disk| disk.name.as_str()).collect();
        assert_eq!(disks, ["a", "have"]);
    }
}
