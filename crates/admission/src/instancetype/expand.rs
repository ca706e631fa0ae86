//! Expands a VM: its instance, or the VM itself, with its instance type and preference written out.

use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec, VmiTemplate};

use super::apply;
use super::find::{self, FoundInstancetype, FoundPreference};
use super::reference::Role;
use crate::{Objects, Path, Problem, Problems};

/// The instance type and the preference of a VM, both of which have to exist.
pub fn referred(
    objects: &dyn Objects,
    vm: &VirtualMachine,
) -> Result<(Option<FoundInstancetype>, Option<FoundPreference>), Problems> {
    let mut problems = Problems::default();
    let instancetype = present(find::instancetype(objects, vm), &mut problems);
    let preference = present(find::preference(objects, vm), &mut problems);
    problems.into_result()?;
    Ok((instancetype, preference))
}

fn present<T>(found: Result<Option<T>, Problem>, problems: &mut Problems) -> Option<T> {
    found.unwrap_or_else(|problem| {
        problems.add(problem.reason, &Path::new(&problem.field), problem.message);
        None
    })
}

/// The template of a VM with instance type and preference applied.
pub fn template(objects: &dyn Objects, vm: &VirtualMachine) -> Result<VmiTemplate, Problems> {
    let (instancetype, preference) = referred(objects, vm)?;
    apply::template(vm, instancetype.as_deref(), preference.as_deref())
}

/// Applies the instance type and the preference of a VM to the instance made from it, and notes their names in
/// its annotations.
///
/// The devices that come by themselves have to be there already, so that the preference reaches them too; which
/// ones come is [`attach_by_preference`]'s to say before.
pub fn into_instance(
    objects: &dyn Objects,
    vm: &VirtualMachine,
    instance: &mut VirtualMachineInstance,
) -> Problems {
    let (instancetype, preference) = match referred(objects, vm) {
        Ok((None, None)) => return Problems::default(),
        Ok(found) => found,
        Err(problems) => return problems,
    };
    let annotations = &mut instance.metadata.annotations;
    for role in Role::ALL {
        role.annotate(vm, annotations);
    }
    let path = Path::new("spec");
    apply::apply(&path, instancetype.as_deref(), preference.as_deref(), &mut instance.spec, annotations)
}

/// A VM with everything that it refers to written into it, and without the references.
///
/// `devices` adds the disks and the interface that come by themselves, before anything is applied; `defaults` fills
/// in what is still open at the end.
pub fn into_vm(
    objects: &dyn Objects,
    vm: &VirtualMachine,
    devices: impl FnOnce(&mut VirtualMachineInstanceSpec) -> Problems,
    defaults: impl FnOnce(&mut VirtualMachineInstanceSpec) -> Problems,
) -> Result<VirtualMachine, Problems> {
    let mut vm = vm.clone();
    if Role::ALL.iter().all(|role| role.matcher(&vm).is_none()) {
        return Ok(vm);
    }
    let (instancetype, preference) = referred(objects, &vm)?;
    let spec = vm.spec.template.spec.get_or_insert_default();
    let annotations = &mut vm.spec.template.metadata.get_or_insert_default().annotations;
    devices(spec).into_result()?;
    let path = Path::new("spec.template.spec");
    apply::apply(&path, instancetype.as_deref(), preference.as_deref(), spec, annotations).into_result()?;
    defaults(spec).into_result()?;
    for role in Role::ALL {
        role.refer(&mut vm, None);
    }
    if let Some(status) = &mut vm.status {
        (status.instancetype_ref, status.preference_ref) = (None, None);
    }
    Ok(vm)
}

/// Decides by the preference of a VM which devices come by themselves to its instance.
pub fn attach_by_preference(
    objects: &dyn Objects,
    vm: &VirtualMachine,
    spec: &mut VirtualMachineInstanceSpec,
) -> Problems {
    let mut problems = Problems::default();
    if let Some(preference) = present(find::preference(objects, vm), &mut problems) {
        apply::attach_devices(&preference, spec);
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::KnownObjects;
    use crate::testing::{assert_fields, patched, read, shared};

    fn objects() -> KnownObjects {
        KnownObjects {
            cluster_instancetypes: vec![shared(json!({
                "metadata": { "name": "i" },
                "spec": { "cpu": { "guest": 2 }, "memory": { "guest": "1Gi" } },
            }))],
            preferences: vec![shared(json!({
                "metadata": { "name": "p", "namespace": "default" },
                "spec": {
                    "devices": { "preferredAutoattachPodInterface": false, "preferredDiskBus": "scsi" },
                    "annotations": { "note": "preferred" },
                },
            }))],
            ..KnownObjects::default()
        }
    }

    fn vm(patch: Value) -> VirtualMachine {
        let base = json!({
            "metadata": { "name": "vm", "namespace": "default" },
            "spec": {
                "instancetype": { "name": "i" },
                "preference": { "name": "p", "kind": "VirtualMachinePreference" },
                "template": { "spec": { "domain": { "devices": { "disks": [{ "name": "d" }] } } } },
            },
            "status": { "created": true, "instancetypeRef": { "name": "i" }, "preferenceRef": { "name": "p" } },
        });
        read(patched(&base, &patch))
    }

    fn instance(vm: &VirtualMachine) -> VirtualMachineInstance {
        let mut instance = VirtualMachineInstance::new("vm", vm.spec.template.spec.clone().unwrap());
        instance.metadata.annotations =
            vm.spec.template.metadata.clone().and_then(|metadata| metadata.annotations);
        instance
    }

    #[test]
    fn an_instance_says_what_it_was_made_from() {
        let vm = vm(json!({}));
        let mut instance = instance(&vm);
        assert_fields("applied", &into_instance(&objects(), &vm, &mut instance), &[]);
        let instance = json!(instance);
        assert_eq!(
            instance["metadata"]["annotations"],
            json!({
                "kubevirt.io/cluster-instancetype-name": "i",
                "kubevirt.io/preference-name": "p",
                "note": "preferred",
            })
        );
        assert_eq!(instance["spec"]["domain"]["cpu"], json!({ "sockets": 2, "cores": 1, "threads": 1 }));
        assert_eq!(instance["spec"]["domain"]["devices"]["disks"][0]["disk"]["bus"], "scsi");
        assert_eq!(instance["spec"], json!(template(&objects(), &vm).unwrap())["spec"]);
    }

    #[test]
    fn an_instance_of_a_plain_vm_stays_as_it_is() {
        let vm = vm(json!({ "spec": { "instancetype": null, "preference": null } }));
        let mut instance = instance(&vm);
        let before = instance.clone();
        assert_fields("plain", &into_instance(&objects(), &vm, &mut instance), &[]);
        assert_eq!(instance, before);
        assert_eq!(template(&objects(), &vm).unwrap(), vm.spec.template);
    }

    #[test]
    fn everything_that_is_missing_or_conflicts_is_told() {
        let missing =
            vm(json!({ "spec": { "instancetype": { "name": "x" }, "preference": { "name": "y" } } }));
        let both = ["spec.instancetype", "spec.preference"];
        assert_fields("instance", &into_instance(&objects(), &missing, &mut instance(&missing)), &both);
        assert_fields("template", &template(&objects(), &missing).unwrap_err(), &both);
        let mut spec = VirtualMachineInstanceSpec::default();
        assert_fields(
            "devices",
            &attach_by_preference(&objects(), &missing, &mut spec),
            &["spec.preference"],
        );

        let sized =
            vm(json!({ "spec": { "template": { "spec": { "domain": { "memory": { "guest": "1Gi" } } } } } }));
        let problems = into_instance(&objects(), &sized, &mut instance(&sized));
        assert_fields("instance", &problems, &["spec.domain.memory.guest"]);
        let problems = template(&objects(), &sized).unwrap_err();
        assert_fields("template", &problems, &["spec.template.spec.domain.memory.guest"]);
    }

    #[test]
    fn a_preference_says_which_devices_come_by_themselves() {
        let vm = vm(json!({}));
        let mut spec = VirtualMachineInstanceSpec::default();
        assert_fields("attached", &attach_by_preference(&objects(), &vm, &mut spec), &[]);
        assert_eq!(spec.domain.devices.autoattach_pod_interface, Some(false));
    }

    fn nothing(_: &mut VirtualMachineInstanceSpec) -> Problems {
        Problems::default()
    }

    #[test]
    fn an_expanded_vm_refers_to_nothing() {
        let add_disk = |spec: &mut VirtualMachineInstanceSpec| {
            spec.domain.devices.disks.get_or_insert_default().push(read(json!({ "name": "added" })));
            Problems::default()
        };
        let add_hostname = |spec: &mut VirtualMachineInstanceSpec| {
            spec.hostname = Some("late".into());
            Problems::default()
        };
        let expanded = json!(into_vm(&objects(), &vm(json!({})), add_disk, add_hostname).unwrap());
        assert_eq!(expanded["status"], json!({ "created": true }));
        assert!(
            expanded["spec"].get("instancetype").is_none() && expanded["spec"].get("preference").is_none()
        );
        let spec = &expanded["spec"]["template"]["spec"];
        assert_eq!(spec["domain"]["memory"], json!({ "guest": "1Gi" }));
        assert_eq!(
            spec["domain"]["devices"]["disks"][1],
            json!({ "name": "added", "disk": { "bus": "scsi" } })
        );
        assert_eq!(spec["hostname"], "late");
    }

    #[test]
    fn a_vm_that_refers_to_nothing_is_not_touched() {
        let plain = vm(json!({ "spec": { "instancetype": null, "preference": null } }));
        let fails = |_: &mut VirtualMachineInstanceSpec| -> Problems { unreachable!() };
        assert_eq!(into_vm(&objects(), &plain, fails, fails).unwrap(), plain);
    }

    #[test]
    fn a_vm_that_cannot_be_completed_is_not_expanded() {
        let fails = |_: &mut VirtualMachineInstanceSpec| {
            let mut problems = Problems::default();
            problems.invalid(&Path::new("x"), "no");
            problems
        };
        let vm = vm(json!({}));
        assert_fields("devices", &into_vm(&objects(), &vm, fails, nothing).unwrap_err(), &["x"]);
        assert_fields("defaults", &into_vm(&objects(), &vm, nothing, fails).unwrap_err(), &["x"]);
    }
}
