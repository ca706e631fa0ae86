//! Disks that come and go, their media and their sizes.

use super::{Change, Plan};
use crate::domain::disk::{Disk, DiskBus, Image};

/// Takes out disks that were plugged in and are wanted no more.
pub(super) fn detach(plan: &mut Plan<'_>) {
    for disk in plan.after.disks.clone() {
        let wanted = plan.wanted.disks.iter().find(|wanted| wanted.name == disk.name);
        if wanted.is_some_and(|wanted| !is_another(&disk, wanted)) {
            continue;
        }
        if disk.hotplugged && is_pluggable(&disk) {
            if let DiskBus::Virtio { address, .. } = disk.bus {
                plan.room.leave(address);
            }
            plan.push(Change::DetachDisk(Box::new(disk)));
            continue;
        }
        let name = format!("disks.{}", disk.name);
        if disk.hotplugged && disk.is_cdrom() && disk.image.is_some() {
            // The volume can go even though its drive stays.
            plan.push(Change::ChangeMedium(Box::new(Disk { image: None, hotplugged: false, ..disk })));
        }
        plan.needs_restart(name, "it was there when the machine started");
    }
}

/// Changes the media of CD-ROM drives, as far as they were or will be put in while the machine runs.
pub(super) fn media(plan: &mut Plan<'_>) {
    for wanted in &plan.wanted.disks {
        let Some(running) = plan.after.disks.iter().find(|disk| disk.name == wanted.name) else { continue };
        if is_same(running.image.as_ref(), wanted.image.as_ref()) {
            continue;
        }
        let loose = |disk: &Disk| disk.hotplugged || disk.image.is_none();
        if running.is_cdrom() && wanted.is_cdrom() && loose(running) && loose(wanted) {
            let drive = Disk {
                image: wanted.image.clone(),
                cache: wanted.cache,
                io: wanted.io,
                size: wanted.size,
                room: wanted.room,
                hotplugged: wanted.hotplugged,
                ..running.clone()
            };
            plan.push(Change::ChangeMedium(Box::new(drive)));
        } else {
            let reason = "the volume behind a disk cannot change while the machine runs";
            plan.needs_restart(format!("disks.{}.image", wanted.name), reason);
        }
    }
}

/// Puts in disks that are new.
pub(super) fn attach(plan: &mut Plan<'_>) {
    for disk in &plan.wanted.disks {
        if plan.after.disks.iter().any(|running| running.name == disk.name) {
            continue;
        }
        match placed(plan, disk) {
            Ok(disk) => {
                let reservations = plan.wanted.reservations.clone().filter(|_| disk.reserves());
                plan.push(Change::AttachDisk { disk: Box::new(disk), reservations });
            }
            Err(reason) => plan.needs_restart(format!("disks.{}", disk.name), reason),
        }
    }
}

/// Lets disks grow with their volumes; what a volume lost is not taken from a guest.
pub(super) fn resize(plan: &mut Plan<'_>) {
    for wanted in &plan.wanted.disks {
        let Some(running) = plan.after.disks.iter().find(|disk| disk.name == wanted.name) else { continue };
        if let (Some(had), Some(size)) = (running.size, wanted.room)
            && size > had
            && !running.read_only
        {
            plan.push(Change::ResizeDisk { disk: wanted.name.clone(), size });
        }
    }
}

fn is_pluggable(disk: &Disk) -> bool {
    matches!(disk.bus, DiskBus::Virtio { .. } | DiskBus::Scsi { .. })
}

/// Whether a disk was taken out and another of its name put in since we last looked.
fn is_another(running: &Disk, wanted: &Disk) -> bool {
    let loose = |disk: &Disk| disk.hotplugged && is_pluggable(disk) && !disk.is_cdrom();
    let same_bus = std::mem::discriminant(&running.bus) == std::mem::discriminant(&wanted.bus);
    let same_image = is_same(running.image.as_ref(), wanted.image.as_ref());
    loose(running) && loose(wanted) && !(same_bus && same_image)
}

/// A new disk in a place that the machine has for it.
fn placed(plan: &mut Plan<'_>, disk: &Disk) -> Result<Disk, &'static str> {
    if !disk.hotplugged {
        return Err("only a hotplugged volume can be added while the machine runs");
    }
    let scsi = match &disk.bus {
        DiskBus::Virtio { .. } => None,
        DiskBus::Scsi { unit } if plan.after.devices.scsi.is_some() => Some(*unit),
        DiskBus::Scsi { .. } => return Err("the machine has no SCSI controller"),
        DiskBus::Sata { .. } | DiskBus::Usb => return Err("only virtio and scsi disks can be added"),
    };
    let (target, unit) =
        plan.room.take_target(&disk.target, scsi).ok_or("there is no free unit on its bus")?;
    let bus = match &disk.bus {
        DiskBus::Virtio { address, queues, io_threads } => {
            let fixed = plan.wanted.pci.fixed.contains(address);
            let address = plan.room.take(*address, fixed).ok_or("there is no free place for it")?;
            DiskBus::Virtio { address, queues: *queues, io_threads: io_threads.clone() }
        }
        _ => DiskBus::Scsi { unit },
    };
    Ok(Disk { bus, target, ..disk.clone() })
}

/// Whether two images are the same bytes; where a container disk is mounted depends on its place in the VMI.
pub(super) fn is_same(one: Option<&Image>, other: Option<&Image>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            (&one.location, one.format, &one.data) == (&other.location, other.format, &other.data)
                && one.backing.is_some() == other.backing.is_some()
        }
        _ => false,
    }
}
