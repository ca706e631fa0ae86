//! What a machine boots from if its VMI does not say.

use crate::domain::disk::{Disk, DiskKind};
use crate::domain::host_device::HostDevice;
use crate::domain::network::Interface;

/// The first disk that the machine starts with, or else the first CD-ROM, boots, if nothing else is to.
///
/// Firmware boots only from what has a place in the boot order.
pub(super) fn choose(disks: &mut [Disk], interfaces: &[Interface], devices: &[HostDevice]) {
    let chosen = disks.iter().map(|disk| disk.boot_index);
    let chosen = chosen.chain(interfaces.iter().map(|interface| interface.boot_index));
    let mut chosen = chosen.chain(devices.iter().map(|device| device.boot_index));
    if chosen.any(|index| index.is_some()) {
        return;
    }
    let mut candidates: Vec<_> = disks.iter_mut().filter(|disk| !disk.hotplugged).collect();
    let is_cdrom = |disk: &Disk| matches!(disk.kind, DiskKind::Cdrom { .. });
    let first = candidates.iter().position(|disk| !is_cdrom(disk)).unwrap_or(0);
    if let Some(disk) = candidates.get_mut(first) {
        disk.boot_index = Some(1);
    }
}
