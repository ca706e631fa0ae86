//! Disks: what the guest sees of a volume, and on which bus.

use std::collections::BTreeMap;

use kubevirt_api::vmi::disks::{self as api, DiskBus as ApiBus};
use kubevirt_api::vmi::status::{VolumePhase, VolumeStatus};
use kubevirt_api::vmi::volumes::Volume;

use super::disk_options::{block_size, cache, error_policy, io, is_followed, kind, tracked};
use super::io_threads::IoThreads;
use super::targets::targets;
use super::{Conversion, text, volumes};
use crate::domain::Architecture;
use crate::domain::disk::{Disk, DiskBus, DiskKind, Location};
use crate::domain::target::name_of;
use crate::pci::Role;

/// SATA ports of the board's own controller, and of each further one.
pub(super) const PORTS_PER_SATA: u32 = 6;
/// SATA controllers beyond the board's own.
pub(super) const MAX_FURTHER_SATA: u32 = 8;

/// The bus a disk asks for, or the architecture's default.
pub(super) fn bus(c: &Conversion<'_>, disk: &api::Disk) -> ApiBus {
    let asked = match (&disk.disk, &disk.lun, &disk.cdrom) {
        (Some(disk), _, _) => disk.bus.clone(),
        (_, Some(lun), _) => lun.bus.clone(),
        (_, _, Some(cdrom)) => cdrom.bus.clone(),
        _ => None,
    };
    asked.filter(|bus| !bus.is_empty()).unwrap_or(match (c.architecture, &disk.cdrom) {
        (Architecture::Amd64, _) => ApiBus::Sata,
        (_, Some(_)) => ApiBus::Scsi,
        _ => ApiBus::Virtio,
    })
}

/// Socket of the host's service for persistent reservations, if a LUN may make them.
pub(super) fn reservations(c: &Conversion<'_>) -> Option<String> {
    let mut luns = c.spec.devices.disks.iter().flatten().filter_map(|disk| disk.lun.as_ref());
    luns.any(|lun| lun.reservation == Some(true)).then(|| c.layout.reservations.clone())
}

/// All disks that the machine has now.
pub(super) fn convert(c: &mut Conversion<'_>, io_threads: &IoThreads) -> Vec<Disk> {
    let all = c.spec.devices.disks.as_deref().unwrap_or_default();
    let known = c.vmi.status.as_ref().and_then(|status| status.volume_status.as_deref()).unwrap_or_default();
    let mut places = Places { targets: targets(c, all, known), virtio: 0, sata: 0, io_threads };
    let mut disks = Vec::new();
    for (index, disk) in all.iter().enumerate() {
        let volume =
            c.vmi.spec.volumes.iter().flatten().enumerate().find(|(_, volume)| volume.name == disk.name);
        let status = known.iter().find(|status| status.name == disk.name);
        let field = format!("spec.domain.devices.disks[{index}]");
        let bus = places.bus(c, &field, disk);
        let is_cdrom = disk.cdrom.is_some();
        match volume {
            None if !is_cdrom => c.unsupported(&*field, format_args!("there is no volume {:?}", disk.name)),
            Some((_, volume)) if !is_attached(volume, status) && !is_cdrom => {}
            _ => {
                let volume = volume.filter(|(_, volume)| is_attached(volume, status));
                disks.extend(one(c, &field, disk, volume, status, bus, &places));
            }
        }
    }
    disks
}

/// Whether a volume is there already; one that is added while the machine runs is there once it is mounted.
fn is_attached(volume: &Volume, status: Option<&VolumeStatus>) -> bool {
    let claim = volume.persistent_volume_claim.as_ref().and_then(|claim| claim.hotpluggable);
    let hotpluggable = claim.or(volume.data_volume.as_ref().and_then(|data| data.hotpluggable)) == Some(true);
    match status {
        Some(status) if status.hotplug_volume.is_some() => {
            matches!(status.phase, Some(VolumePhase::MountedToPod | VolumePhase::Ready))
        }
        _ => !hotpluggable,
    }
}

fn one(
    c: &mut Conversion<'_>,
    field: &str,
    disk: &api::Disk,
    volume: Option<(usize, &Volume)>,
    status: Option<&VolumeStatus>,
    bus: Option<DiskBus>,
    places: &Places<'_>,
) -> Option<Disk> {
    let hotplugged = status.is_some_and(|status| status.hotplug_volume.is_some());
    let facts = c.host.volumes.get(&disk.name).cloned().unwrap_or_default();
    let (kind, read_only) = kind(c, field, disk);
    let mut image = match volume {
        Some((index, volume)) => Some(volumes::image(c, index, volume, &facts, hotplugged)?),
        None => None,
    };
    let is_metrics = volume.is_some_and(|(_, volume)| volume.downward_metrics.is_some());
    let read_only = read_only || is_metrics || read_only_claim(c, volume, kind, bus.as_ref());
    let is_written = kind == DiskKind::Disk && !read_only;
    if disk.changed_block_tracking == Some(true)
        || is_written && volume.is_some_and(|(_, volume)| is_followed(c, volume))
    {
        image = image.map(|image| tracked(c, field, disk, image));
    }
    if let (DiskKind::Lun { .. }, Some(image)) = (kind, &image)
        && !matches!(image.location, Location::Block(_))
    {
        c.unsupported(format!("{field}.lun"), "only a block device can be passed through as a LUN");
    }
    let cache = cache(c, field, disk, &facts);
    let passes_discard = !matches!(kind, DiskKind::Cdrom { .. });
    Some(Disk {
        name: disk.name.clone(),
        target: places
            .targets
            .get(&disk.name)
            .map(|(prefix, index)| name_of(prefix, *index))
            .unwrap_or_default(),
        kind,
        bus: bus?,
        read_only,
        boot_index: disk.boot_order.and_then(|order| u32::try_from(order).ok()),
        serial: text(&disk.serial),
        cache,
        io: io(c, field, disk, &facts, image.as_ref(), cache),
        discard: passes_discard && facts.discard,
        block_size: disk.block_size.as_ref().and_then(|size| block_size(c, field, size, &facts)),
        shareable: disk.shareable == Some(true),
        error_policy: error_policy(c, field, disk),
        hotplugged,
        size: facts.size,
        room: facts.room,
        image,
    })
}

/// Whether the claim is mounted so that nobody can write; SATA disks cannot tell that to a guest.
fn read_only_claim(
    c: &mut Conversion<'_>,
    volume: Option<(usize, &Volume)>,
    kind: DiskKind,
    bus: Option<&DiskBus>,
) -> bool {
    let Some((index, volume)) = volume else { return false };
    let is = volume.persistent_volume_claim.as_ref().is_some_and(|claim| claim.read_only == Some(true));
    if is && kind == DiskKind::Disk && matches!(bus, Some(DiskBus::Sata { .. })) {
        let field = format!("spec.volumes[{index}].persistentVolumeClaim.readOnly");
        c.unsupported(field, "a SATA disk cannot be read-only");
    }
    is
}

/// Which places on the buses are taken.
struct Places<'a> {
    targets: BTreeMap<String, (&'static str, u32)>,
    virtio: u32,
    sata: u32,
    io_threads: &'a IoThreads,
}

impl Places<'_> {
    fn bus(&mut self, c: &mut Conversion<'_>, field: &str, disk: &api::Disk) -> Option<DiskBus> {
        let is_lun = disk.lun.is_some();
        match bus(c, disk) {
            ApiBus::Virtio => {
                let role = Role::Disk(self.virtio);
                self.virtio += 1;
                if is_lun || disk.cdrom.is_some() {
                    c.unsupported(field, "a virtio disk can be neither a LUN nor a CD-ROM drive: use scsi");
                }
                let multi = c.spec.devices.block_multi_queue;
                let io_threads = self.io_threads.disks.get(&disk.name).cloned().unwrap_or_default();
                let spread = io_threads.len().min(1024) as u32;
                let on_pci = c.architecture != Architecture::S390x;
                let usual = if multi == Some(false) { 1 } else { c.queues(1024) };
                let queues = (multi.is_some() || on_pci || spread > 1).then(|| usual.max(spread));
                Some(DiskBus::Virtio { address: c.place(field, role), queues, io_threads })
            }
            ApiBus::Sata => {
                let port = self.sata;
                self.sata += 1;
                if is_lun || c.architecture == Architecture::S390x {
                    c.unsupported(field, "it cannot be on the sata bus: use scsi");
                } else if port >= PORTS_PER_SATA * (1 + MAX_FURTHER_SATA) {
                    c.unsupported(field, "there is no free SATA port");
                } else if disk.disk.as_ref().is_some_and(|disk| disk.readonly == Some(true)) {
                    c.unsupported(format!("{field}.disk.readonly"), "a SATA disk cannot be read-only");
                }
                Some(DiskBus::Sata { port })
            }
            ApiBus::Scsi => Some(DiskBus::Scsi { unit: self.targets.get(&disk.name)?.1 }),
            ApiBus::Usb if is_lun || c.architecture == Architecture::S390x => {
                c.unsupported(field, "it cannot be on the usb bus: use scsi");
                None
            }
            ApiBus::Usb => Some(DiskBus::Usb),
            ApiBus::Other(other) => {
                c.unsupported(field, format_args!("the bus {other:?} is not known"));
                None
            }
        }
    }
}
