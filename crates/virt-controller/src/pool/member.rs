//! A machine of a pool, made from its template and its number.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kubevirt_api::names::{finalizers, labels};
use kubevirt_api::pool::{PoolNameGeneration, VirtualMachinePool};
use kubevirt_api::vm::{VirtualMachine, VirtualMachineSpec};
use kubevirt_api::vmi::volumes::Volume;

use crate::owned::controller_reference;

/// What the machine of this number is called.
pub fn name(pool: &VirtualMachinePool, index: usize) -> String {
    format!("{}-{index}", pool.name_any())
}

/// The number of the machine of this name.
pub fn index(name: &str) -> Option<usize> {
    name.rsplit('-').next()?.parse().ok()
}

/// The machine of this number as the template has it now.
pub fn create(pool: &VirtualMachinePool, index: usize, revision: &str) -> VirtualMachine {
    let mut vm = VirtualMachine::new(&name(pool, index), VirtualMachineSpec::default());
    vm.metadata.namespace = pool.namespace();
    vm.metadata.owner_references = Some(vec![controller_reference(pool)]);
    vm.metadata.finalizers = Some(vec![finalizers::POOL.to_owned()]);
    shape(&mut vm, pool, index, revision);
    vm
}

/// The machine brought in line with the template. What the guest knows itself by stays.
pub fn update(
    seen: &VirtualMachine,
    pool: &VirtualMachinePool,
    index: usize,
    revision: &str,
) -> VirtualMachine {
    let mut vm = seen.clone();
    shape(&mut vm, pool, index, revision);
    let firmware = |vm: &VirtualMachine| vm.spec.template.spec.as_ref()?.domain.firmware.clone();
    if let Some(old) = firmware(seen) {
        let template = &mut vm.spec.template;
        let firmware = template.spec.get_or_insert_default().domain.firmware.get_or_insert_default();
        firmware.uuid = old.uuid.or(firmware.uuid.take());
        firmware.serial = old.serial.or(firmware.serial.take());
    }
    vm
}

fn shape(vm: &mut VirtualMachine, pool: &VirtualMachinePool, index: usize, revision: &str) {
    let template = &pool.spec.virtual_machine_template;
    let meta = template.metadata.clone().unwrap_or_default();
    vm.metadata.labels = meta.labels;
    vm.metadata.annotations = meta.annotations;
    vm.spec = numbered(template.spec.clone().unwrap_or_default(), pool, index);
    mark(vm.metadata.labels.get_or_insert_default(), revision);
    let template = &mut vm.spec.template;
    mark(template.metadata.get_or_insert_default().labels.get_or_insert_default(), revision);
}

fn mark(labels: &mut BTreeMap<String, String>, revision: &str) {
    labels.insert(labels::POOL_REVISION_NAME.to_owned(), revision.to_owned());
}

/// The specification with the number in every name that must not be shared.
fn numbered(mut spec: VirtualMachineSpec, pool: &VirtualMachinePool, index: usize) -> VirtualMachineSpec {
    let mut own_disks = BTreeMap::new();
    for template in spec.data_volume_templates.iter_mut().flatten() {
        let Some(name) = template.metadata.as_mut().and_then(|meta| meta.name.as_mut()) else { continue };
        let numbered = format!("{name}-{index}");
        own_disks.insert(std::mem::replace(name, numbered.clone()), numbered);
    }
    let naming = pool.spec.name_generation.clone().unwrap_or_default();
    let instance = spec.template.spec.as_mut();
    for volume in instance.into_iter().flat_map(|spec| spec.volumes.iter_mut().flatten()) {
        number_volume(volume, &own_disks, &naming, index);
    }
    spec
}

fn number_volume(
    volume: &mut Volume,
    own_disks: &BTreeMap<String, String>,
    naming: &PoolNameGeneration,
    index: usize,
) {
    let rename = |name: &mut String| {
        if let Some(numbered) = own_disks.get(name) {
            name.clone_from(numbered);
        }
    };
    let append = |name: &mut String| name.push_str(&format!("-{index}"));
    if let Some(claim) = &mut volume.persistent_volume_claim {
        rename(&mut claim.claim_name);
    }
    if let Some(data) = &mut volume.data_volume {
        rename(&mut data.name);
    }
    if naming.append_index_to_config_map_refs == Some(true)
        && let Some(map) = &mut volume.config_map
    {
        append(map.name.get_or_insert_default());
    }
    if naming.append_index_to_secret_refs == Some(true) {
        if let Some(name) = volume.secret.as_mut().and_then(|secret| secret.secret_name.as_mut()) {
            append(name);
        }
        let no_cloud = volume
            .cloud_init_no_cloud
            .iter_mut()
            .flat_map(|it| [it.secret_ref.as_mut(), it.network_data_secret_ref.as_mut()]);
        let drive = volume
            .cloud_init_config_drive
            .iter_mut()
            .flat_map(|it| [it.secret_ref.as_mut(), it.network_data_secret_ref.as_mut()]);
        for reference in no_cloud.chain(drive).flatten() {
            append(&mut reference.name);
        }
    }
}
