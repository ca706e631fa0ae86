//! Carries out requests to plug and unplug volumes, in the machine's template and in its running instance.

use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::{AddVolumeOptions, VolumeRequest};
use kubevirt_api::vmi::disks::Disk;
use kubevirt_api::vmi::volumes::{DataVolumeRef, PersistentVolumeClaimVolumeSource, Volume};
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

/// Carries out what is requested. The status drops a request once the template has it.
pub fn apply(vm: &mut VirtualMachine, mut vmi: Option<&mut VirtualMachineInstance>) {
    let requests = vm.status.as_ref().and_then(|status| status.volume_requests.clone()).unwrap_or_default();
    for request in requests {
        one(&request, vm.spec.template.spec.get_or_insert_default());
        if let Some(vmi) = vmi.as_deref_mut() {
            one(&request, &mut vmi.spec);
        }
    }
}

fn one(request: &VolumeRequest, spec: &mut VirtualMachineInstanceSpec) {
    if let Some(add) = &request.add_volume_options {
        let exists = spec.volumes.iter().flatten().any(|volume| volume.name == add.name);
        if !exists {
            spec.volumes.get_or_insert_default().push(volume(add));
            let disk = Disk { name: add.name.clone(), ..add.disk.clone() };
            spec.domain.devices.disks.get_or_insert_default().push(disk);
        }
    } else if let Some(remove) = &request.remove_volume_options {
        if let Some(volumes) = &mut spec.volumes {
            volumes.retain(|volume| volume.name != remove.name);
        }
        if let Some(disks) = &mut spec.domain.devices.disks {
            disks.retain(|disk| disk.name != remove.name);
        }
    }
}

fn volume(add: &AddVolumeOptions) -> Volume {
    let claim = add.volume_source.persistent_volume_claim.clone();
    let data_volume = add.volume_source.data_volume.clone().filter(|_| claim.is_none());
    Volume {
        name: add.name.clone(),
        persistent_volume_claim: claim
            .map(|claim| PersistentVolumeClaimVolumeSource { hotpluggable: Some(true), ..claim }),
        data_volume: data_volume.map(|source| DataVolumeRef { hotpluggable: Some(true), ..source }),
        ..Volume::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::vm::testing::{machine, read};

    #[test]
    fn volumes_are_added_and_removed_on_both_sides() {
        let add = json!({ "addVolumeOptions": {
            "name": "v", "disk": { "name": "x", "disk": { "bus": "scsi" } },
            "volumeSource": { "persistentVolumeClaim": { "claimName": "c" } },
        } });
        let spec = json!({ "domain": { "devices": {} } });
        let mut vm = machine(json!({
            "spec": { "template": { "spec": spec } }, "status": { "volumeRequests": [add, add] },
        }));
        let mut vmi: VirtualMachineInstance = read(json!({ "spec": spec }));
        apply(&mut vm, Some(&mut vmi));
        let claim = json!({ "claimName": "c", "hotpluggable": true });
        for spec in [json!(vm.spec.template.spec), json!(vmi.spec)] {
            assert_eq!(spec["volumes"], json!([{ "name": "v", "persistentVolumeClaim": claim }]));
            assert_eq!(
                spec["domain"]["devices"]["disks"],
                json!([{ "name": "v", "disk": { "bus": "scsi" } }])
            );
        }
        vm.status = read(json!({ "volumeRequests": [{ "removeVolumeOptions": { "name": "v" } }] }));
        apply(&mut vm, Some(&mut vmi));
        assert_eq!(vmi.spec.volumes, Some(vec![]));
        assert_eq!(vm.spec.template.spec.unwrap().domain.devices.disks, Some(vec![]));
    }
}
