//! Writes the UUID of a machine from before UUIDs were stored into its template, so that it never changes.

use kubevirt_admission::mutate::vmi::firmware::uuid_by_name;
use kubevirt_api::vm::VirtualMachine;

/// Keeps the UUID that the machine's name stands for, unless it has its own.
pub fn keep_uuid(vm: &mut VirtualMachine) {
    let name = vm.metadata.name.as_deref().unwrap_or_default();
    let uuid = uuid_by_name(name).to_string();
    let firmware = vm.spec.template.spec.get_or_insert_default().domain.firmware.get_or_insert_default();
    if firmware.uuid.as_deref().unwrap_or_default().is_empty() {
        firmware.uuid = Some(uuid);
    }
}
