//! The machine type, and whether devices can be plugged into it while it runs.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use super::architecture;
use crate::ClusterConfig;

/// Names the machine type of the architecture where none is named.
pub fn set(config: &ClusterConfig, spec: &mut VirtualMachineInstanceSpec) {
    let default = config.machine_type(architecture::of(spec));
    let machine = spec.domain.machine.get_or_insert_default();
    if machine.type_.as_deref().unwrap_or_default().is_empty() {
        machine.type_ = Some(default.to_owned());
    }
}

/// Whether the machine has a PCIe bus with ports to plug devices into.
pub fn has_pcie_ports(spec: &VirtualMachineInstanceSpec) -> bool {
    let type_ = spec.domain.machine.as_ref().map(|machine| machine.type_.as_deref().unwrap_or_default());
    matches!(architecture::of(spec), "amd64" | "arm64" | "")
        && type_.is_none_or(|type_| type_.contains("q35") || type_.starts_with("virt"))
}
