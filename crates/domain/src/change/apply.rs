//! What a change that was made makes of the running domain.

use super::Change;
use crate::domain::Domain;
use crate::domain::disk::{Disk, DiskBus};

pub(super) fn apply(change: &Change, domain: &mut Domain) {
    match change {
        Change::DetachDisk(gone) => {
            domain.disks.retain(|disk| disk.name != gone.name);
            if !domain.disks.iter().any(Disk::reserves) {
                domain.reservations = None;
            }
        }
        Change::DetachInterface(gone) => domain.interfaces.retain(|interface| interface.name != gone.name),
        Change::DetachHostDevice(gone) => domain.host_devices.retain(|device| device.id() != gone.id()),
        Change::ChangeMedium(drive) => {
            if let Some(disk) = domain.disks.iter_mut().find(|disk| disk.name == drive.name) {
                *disk = Disk::clone(drive);
            }
        }
        Change::AttachDisk { disk, reservations } => {
            domain.io_threads = domain.io_threads.max(last_io_thread(disk));
            if domain.reservations.is_none() {
                domain.reservations.clone_from(reservations);
            }
            domain.disks.push(Disk::clone(disk));
        }
        Change::AttachInterface(interface) => domain.interfaces.push(interface.as_ref().clone()),
        Change::AttachHostDevice(device) => domain.host_devices.push(device.as_ref().clone()),
        Change::SetLink { interface, up } => {
            for card in domain.interfaces.iter_mut().filter(|card| card.name == *interface) {
                card.link_up = *up;
            }
        }
        Change::ResizeDisk { disk: name, size } => {
            for disk in domain.disks.iter_mut().filter(|disk| disk.name == *name) {
                disk.size = Some(*size);
            }
        }
        Change::PlugSockets { sockets, pinning } => {
            domain.cpu.topology.sockets = *sockets;
            domain.pinning.clone_from(pinning);
        }
        Change::RequestMemory { bytes } => {
            if let Some(hotplug) = &mut domain.memory.hotplug {
                hotplug.requested = *bytes;
            }
        }
    }
}

/// The highest number of the IO threads that serve a disk.
pub(super) fn last_io_thread(disk: &Disk) -> u32 {
    match &disk.bus {
        DiskBus::Virtio { io_threads, .. } => io_threads.iter().copied().max().unwrap_or(0),
        _ => 0,
    }
}
