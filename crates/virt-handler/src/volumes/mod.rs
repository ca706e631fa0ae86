//! Volumes of a pod as virt-handler makes them ready: what is mounted into it, and images that must be made as root.

pub(crate) mod bind;
mod images;

pub(crate) use images::make as make_images;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VolumeStatus;

/// Empty folder of a pod that container disks are mounted in.
pub(crate) const CONTAINER_DISKS: &str = "container-disks";
/// Empty folder of a pod that hotplugged volumes are mounted in.
pub(crate) const HOTPLUG_DISKS: &str = "hotplug-disks";

/// What the status says of each volume.
pub(crate) fn statuses(vmi: &VirtualMachineInstance) -> &[VolumeStatus] {
    let statuses = vmi.status.as_ref().and_then(|status| status.volume_status.as_deref());
    statuses.unwrap_or_default()
}

/// What the status says of a volume.
pub(crate) fn status<'a>(vmi: &'a VirtualMachineInstance, volume: &str) -> Option<&'a VolumeStatus> {
    statuses(vmi).iter().find(|status| status.name == volume)
}

/// Whether a volume's claim is a block device.
pub(crate) fn is_block(status: &VolumeStatus) -> bool {
    let info = status.persistent_volume_claim_info.as_ref();
    info.is_some_and(|info| info.volume_mode.as_deref() == Some("Block"))
}
