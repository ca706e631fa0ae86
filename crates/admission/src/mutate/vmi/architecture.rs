//! The architecture of the guest, and what depends on it.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::ClusterConfig;

/// Names the architecture of the cluster where none is named.
pub fn set(config: &ClusterConfig, spec: &mut VirtualMachineInstanceSpec) {
    if of(spec).is_empty() {
        spec.architecture = Some(config.default_architecture().to_owned());
    }
}

/// The architecture that is named, or nothing.
pub fn of(spec: &VirtualMachineInstanceSpec) -> &str {
    spec.architecture.as_deref().unwrap_or_default()
}

/// Whether the guest is for `arm64`.
pub fn is_arm64(spec: &VirtualMachineInstanceSpec) -> bool {
    of(spec) == "arm64"
}

/// Whether the guest is for `s390x`.
pub fn is_s390x(spec: &VirtualMachineInstanceSpec) -> bool {
    of(spec) == "s390x"
}
