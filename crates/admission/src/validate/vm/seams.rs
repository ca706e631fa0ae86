//! What other modules contribute to the rules of a machine.

use kubevirt_api::vm::status::AddVolumeOptions;
use kubevirt_api::vm::{VirtualMachine, VirtualMachineSpec};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::{Context, Path, Problems};

/// The instance that the machine makes: its template with the instance type, the preference and the defaults.
pub fn expanded(_cx: &Context<'_>, vm: &VirtualMachine) -> Result<VirtualMachineInstanceSpec, Problems> {
    Ok(vm.spec.template.spec.clone().unwrap_or_default())
}

/// The rules for networks that hold only for new machines; their paths start with `spec`.
pub fn check_new_network(_cx: &Context<'_>, _vmi: &VirtualMachineInstanceSpec, _problems: &mut Problems) {}

/// The rules for `dataVolumeTemplates` of the specification at `path`.
pub fn check_data_volume_templates(
    _cx: &Context<'_>,
    _path: &Path<'_>,
    _spec: &VirtualMachineSpec,
    _problems: &mut Problems,
) {
}

/// The rules for the storage of a machine.
pub fn check_storage(
    _cx: &Context<'_>,
    _new: &VirtualMachine,
    _old: Option<&VirtualMachine>,
    _problems: &mut Problems,
) {
}

/// The rules for the disk of a volume that is to be hotplugged; everything is about the field at `path`.
pub fn check_hotplug_disk(_path: &Path<'_>, _options: &AddVolumeOptions, _problems: &mut Problems) {}
