//! Volumes that a virtual machine was asked to add or remove, which wait in its status.

use std::collections::{HashMap, HashSet};

use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::{AddVolumeOptions, VolumeRequest};
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

use super::{hotplug, volumes_of};
use crate::validate::same::same;
use crate::validate::vmi_spec;
use crate::{Context, Path, Problems};

/// Everything that is wrong with the volume requests of a VM, alone and in what they would lead to.
///
/// They are tried on the VM's template and on its running instance. For a VM of which something else is wrong
/// that says the same twice: ask when nothing is.
pub fn check(cx: &Context<'_>, vm: &VirtualMachine, problems: &mut Problems) {
    let status = vm.status.as_ref();
    let requests = status.and_then(|status| status.volume_requests.as_deref()).unwrap_or_default();
    if requests.is_empty() {
        return;
    }
    let mut template = vm.spec.template.spec.clone().unwrap_or_default();
    let instance = running_instance(cx, vm);
    let mut running = instance.as_ref().map(|vmi| vmi.spec.clone());
    if !check_requests(requests, &template, running.as_ref(), problems) {
        return;
    }
    for request in requests {
        apply(request, &mut template);
        if let Some(running) = &mut running {
            apply(request, running);
        }
    }
    let path = Path::new("spec.template.spec");
    let outcome = vmi_spec::check(cx, &path, &template);
    let fine = outcome.is_empty();
    problems.append(outcome);
    if let Some(running) = running.filter(|_| fine) {
        problems.append(vmi_spec::check(cx, &path, &running));
    }
    if instance.is_some_and(|vmi| is_migrating(cx, &vmi)) {
        let message = "the instance is being migrated: add and remove volumes when that is over";
        problems.not_supported(&Path::new("spec"), message);
    }
}

/// Does to a specification what a request asks for; a volume that is there already stays as it is.
pub fn apply(request: &VolumeRequest, spec: &mut VirtualMachineInstanceSpec) {
    if let Some(add) = &request.add_volume_options {
        if volumes_of(spec).iter().any(|volume| volume.name == add.name) {
            return;
        }
        let mut volume = volume_of(add);
        if let Some(claim) = &mut volume.persistent_volume_claim {
            claim.hotpluggable = Some(true);
        }
        if let Some(data_volume) = &mut volume.data_volume {
            data_volume.hotpluggable = Some(true);
        }
        spec.volumes.get_or_insert_default().push(volume);
        let mut disk = add.disk.clone();
        disk.name.clone_from(&add.name);
        spec.domain.devices.disks.get_or_insert_default().push(disk);
    } else if let Some(remove) = &request.remove_volume_options {
        if let Some(volumes) = &mut spec.volumes {
            volumes.retain(|volume| volume.name != remove.name);
        }
        if let Some(disks) = &mut spec.domain.devices.disks {
            disks.retain(|disk| disk.name != remove.name);
        }
    }
}

/// Checks the requests themselves, and returns whether they can be tried.
fn check_requests(
    requests: &[VolumeRequest],
    template: &VirtualMachineInstanceSpec,
    running: Option<&VirtualMachineInstanceSpec>,
    problems: &mut Problems,
) -> bool {
    let field = Path::new("Status.volumeRequests");
    let mut found = Problems::default();
    let (mut added, mut removed) = (HashSet::new(), HashSet::new());
    let in_template = by_name(Some(template));
    let in_instance = by_name(running);
    for request in requests {
        match (&request.add_volume_options, &request.remove_volume_options) {
            (Some(_), Some(_)) => {
                found.invalid(&field, "a request adds a volume or removes one: keep one of them");
            }
            (None, None) => {
                found.invalid(&field, "a request adds a volume or removes one: this does neither");
            }
            (None, Some(remove)) => {
                if !removed.insert(remove.name.as_str()) {
                    found.invalid(&field, format!("volume {:?} is to be removed already", remove.name));
                }
            }
            (Some(add), None) => {
                let name = add.name.as_str();
                if !added.insert(name) {
                    found.invalid(&field, format!("volume {name:?} is to be added already"));
                    continue;
                }
                hotplug::check_disk(&add.disk, name, &field, &mut found);
                let volume = volume_of(add);
                for (place, volumes) in [("the VM", &in_template), ("the running instance", &in_instance)] {
                    if volumes.get(name).is_some_and(|other| !same(*other, &volume)) {
                        let message =
                            format!("{place} has another volume called {name:?}: choose another name");
                        found.invalid(&field, message);
                    }
                }
            }
        }
    }
    let fine = found.is_empty();
    problems.append(found);
    fine
}

fn by_name(spec: Option<&VirtualMachineInstanceSpec>) -> HashMap<&str, &Volume> {
    spec.map(volumes_of).unwrap_or_default().iter().map(|volume| (volume.name.as_str(), volume)).collect()
}

fn volume_of(add: &AddVolumeOptions) -> Volume {
    let claim = add.volume_source.persistent_volume_claim.clone();
    let data_volume = add.volume_source.data_volume.clone().filter(|_| claim.is_none());
    Volume { name: add.name.clone(), persistent_volume_claim: claim, data_volume, ..Volume::default() }
}

fn running_instance(cx: &Context<'_>, vm: &VirtualMachine) -> Option<VirtualMachineInstance> {
    vm.status.as_ref().filter(|status| status.ready == Some(true))?;
    let namespace = vm.metadata.namespace.as_deref().unwrap_or(&cx.request.namespace);
    let vmi = cx.objects.vmi(namespace, vm.metadata.name.as_deref()?)?;
    vmi.metadata.deletion_timestamp.is_none().then(|| vmi.as_ref().clone())
}

fn is_migrating(cx: &Context<'_>, vmi: &VirtualMachineInstance) -> bool {
    let Some(state) = vmi.status.as_ref().and_then(|status| status.migration_state.as_ref()) else {
        return false;
    };
    let reached = |time: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        time.is_some_and(|time| time.0 <= cx.now.0)
    };
    reached(state.start_timestamp.as_ref()) && !reached(state.end_timestamp.as_ref())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, patched, read, shared};

    const FIELD: &str = "Status.volumeRequests";

    fn machine(requests: &Value, ready: bool) -> Value {
        json!({
            "metadata": {"name": "vm", "namespace": "default"},
            "spec": {"template": {"spec": spec()}},
            "status": {"ready": ready, "volumeRequests": requests},
        })
    }

    fn spec() -> Value {
        json!({
            "domain": {"devices": {"disks": [{"name": "root"}, {"name": "data", "disk": {"bus": "scsi"}}]}},
            "volumes": [
                {"name": "root", "emptyDisk": {"capacity": "1Gi"}},
                {"name": "data", "dataVolume": {"name": "d", "hotpluggable": true}},
            ],
        })
    }

    fn add(patch: Value) -> Value {
        let base = json!({
            "name": "new",
            "disk": {"name": "new", "disk": {"bus": "scsi"}},
            "volumeSource": {"persistentVolumeClaim": {"claimName": "c"}},
        });
        json!({"addVolumeOptions": patched(&base, &patch)})
    }

    /// The storage problems only: what the rest of the specification needs is tested elsewhere.
    fn found(world: &World, requests: &Value, ready: bool) -> Vec<String> {
        let mut problems = Problems::default();
        world.run(|cx| check(cx, &read(machine(requests, ready)), &mut problems));
        let storage = |field: &String| {
            field.starts_with(FIELD)
                || field == "spec"
                || field.contains("disks")
                || field.contains("volumes")
        };
        problems.into_iter().map(|problem| problem.field).filter(storage).collect()
    }

    #[test]
    fn requests_are_tried_before_they_are_kept() {
        let remove = |name: &str| json!({"removeVolumeOptions": {"name": name}});
        let both = patched(&add(json!({})), &remove("x"));
        const ORDER: &str = "spec.domain.devices.disks[1].bootOrder";
        let cases: Vec<(&str, Value, &[&str])> = vec![
            ("none", json!([]), &[]),
            ("add one", json!([add(json!({}))]), &[]),
            (
                "add a data volume",
                json!([add(
                    json!({"volumeSource": {"persistentVolumeClaim": null, "dataVolume": {"name": "d"}}})
                )]),
                &[],
            ),
            ("remove one", json!([remove("data")]), &[]),
            ("remove one that is not there", json!([remove("x")]), &[]),
            ("remove one twice", json!([remove("x"), remove("x")]), &[FIELD]),
            ("add and remove", json!([add(json!({})), remove("new")]), &[]),
            ("add one twice", json!([add(json!({})), add(json!({}))]), &[FIELD]),
            ("both in one", json!([both]), &[FIELD]),
            ("neither", json!([{}]), &[FIELD]),
            ("a disk on sata", json!([add(json!({"disk": {"disk": {"bus": "sata"}}}))]), &[FIELD]),
            ("boot order 0", json!([add(json!({"disk": {"bootOrder": 0}}))]), &[ORDER]),
            ("another of the same name", json!([add(json!({"name": "root"}))]), &[FIELD]),
            (
                "the same again",
                json!([add(
                    json!({"name": "data", "volumeSource": {"persistentVolumeClaim": null, "dataVolume": {"name": "d", "hotpluggable": true}}})
                )]),
                &[],
            ),
            (
                "no source",
                json!([add(json!({"volumeSource": {"persistentVolumeClaim": null}}))]),
                &["spec.template.spec.volumes[2]"],
            ),
        ];
        for (case, requests, expected) in cases {
            assert_eq!(found(&World::default(), &requests, false), expected, "{case}");
        }
    }

    #[test]
    fn requests_are_tried_on_the_running_instance() {
        let instance = |patch: Value| {
            let base = json!({"metadata": {"name": "vm", "namespace": "default"}, "spec": spec()});
            let mut world = World::default();
            world.objects.vmis.push(shared(patched(&base, &patch)));
            world
        };
        let requests = json!([add(json!({}))]);
        let other = json!([{"name": "new", "dataVolume": {"name": "x"}}]);
        let migrating = json!({"status": {"migrationState": {"startTimestamp": "2026-01-01T00:00:00Z"}}});
        let migrated = json!({"status": {"migrationState": {
            "startTimestamp": "2026-01-01T00:00:00Z", "endTimestamp": "2026-01-01T00:01:00Z",
        }}});
        let deleted =
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"volumes": other}});
        let conflict = json!({"spec": {"volumes": other}});
        let cases: Vec<(&str, Value, bool, &[&str])> = vec![
            ("running", json!({}), true, &[]),
            ("another of the same name", conflict.clone(), true, &[FIELD]),
            ("not ready", conflict, false, &[]),
            ("being deleted", deleted, true, &[]),
            ("migrating", migrating, true, &["spec"]),
            ("migrated", migrated, true, &[]),
        ];
        for (case, patch, ready, expected) in cases {
            assert_eq!(found(&instance(patch), &requests, ready), expected, "{case}");
        }
    }
}
