//! What a disk's own settings come to: kind, cache, IO, sector sizes and error policy.

use kubevirt_api::vmi::disks::{
    self as api, BlockSize as BlockSizeSpec, DiskErrorPolicy, DriverCache, DriverIo, TrayState,
};
use kubevirt_api::vmi::volumes::Volume;

use super::Conversion;
use crate::domain::Architecture;
use crate::domain::disk::{BlockSize, Cache, DiskKind, ErrorPolicy, Image, Io, Location};
use crate::facts::VolumeFacts;

pub(super) fn kind(c: &mut Conversion<'_>, field: &str, disk: &api::Disk) -> (DiskKind, bool) {
    if let Some(lun) = &disk.lun {
        let kind = DiskKind::Lun { reservation: lun.reservation == Some(true) };
        return (kind, lun.readonly == Some(true));
    }
    let Some(cdrom) = &disk.cdrom else {
        return (DiskKind::Disk, disk.disk.as_ref().is_some_and(|disk| disk.readonly == Some(true)));
    };
    let tray_open = match &cdrom.tray {
        Some(TrayState::Open) => true,
        Some(TrayState::Other(other)) if !other.is_empty() => {
            c.unsupported(format!("{field}.cdrom.tray"), format_args!("{other:?} is not known"));
            false
        }
        _ => false,
    };
    // The VMI may say otherwise, but no guest writes to such a drive.
    (DiskKind::Cdrom { tray_open }, true)
}

/// Whether the cluster wants to know which blocks of a volume change. Only what outlives the machine is backed up.
pub(super) fn is_followed(c: &Conversion<'_>, volume: &Volume) -> bool {
    c.vmi.tracks_blocks() && volume.outlives_machine()
}

/// A layer that tracks which blocks changed; the bytes stay where they are.
pub(super) fn tracked(c: &mut Conversion<'_>, field: &str, disk: &api::Disk, image: Image) -> Image {
    if image.backing.is_some() || image != Image::raw(image.location.clone()) {
        c.unsupported(format!("{field}.changedBlockTracking"), "only claims and host disks can be tracked");
    }
    Image { data: Some(image.location), ..Image::qcow2(c.layout.changed_blocks(&disk.name)) }
}

pub(super) fn cache(c: &mut Conversion<'_>, field: &str, disk: &api::Disk, facts: &VolumeFacts) -> Cache {
    let shareable = disk.shareable == Some(true);
    let asked = disk.cache.clone().filter(|cache| !cache.is_empty());
    let cache = match asked {
        None if shareable || facts.direct_io => Cache::None,
        None => Cache::Writethrough,
        Some(DriverCache::None) => Cache::None,
        Some(DriverCache::Writethrough) => Cache::Writethrough,
        Some(DriverCache::Writeback) => Cache::Writeback,
        Some(DriverCache::Other(other)) => {
            c.unsupported(format!("{field}.cache"), format_args!("{other:?} is not known"));
            Cache::None
        }
    };
    if cache == Cache::None && !facts.direct_io {
        c.unsupported(format!("{field}.cache"), "the volume's file system cannot go around the page cache");
    } else if cache != Cache::None && shareable {
        c.unsupported(format!("{field}.cache"), "a shareable disk must not use the page cache");
    }
    cache
}

pub(super) fn io(
    c: &mut Conversion<'_>,
    field: &str,
    disk: &api::Disk,
    facts: &VolumeFacts,
    image: Option<&Image>,
    cache: Cache,
) -> Option<Io> {
    let io = match disk.io.clone().filter(|io| !io.is_empty()) {
        Some(DriverIo::Native) => Some(Io::Native),
        Some(DriverIo::Threads) => Some(Io::Threads),
        Some(DriverIo::Other(other)) => {
            c.unsupported(format!("{field}.io"), format_args!("{other:?} is not known"));
            None
        }
        // Asynchronous requests never wait only on space that is there already.
        None => {
            let ready = facts.preallocated || matches!(image?.location, Location::Block(_));
            (ready && cache == Cache::None).then_some(Io::Native)
        }
    };
    if io == Some(Io::Native) && cache != Cache::None {
        c.unsupported(format!("{field}.io"), "native IO needs cache none");
    }
    io
}

pub(super) fn block_size(
    c: &mut Conversion<'_>,
    field: &str,
    size: &BlockSizeSpec,
    facts: &VolumeFacts,
) -> Option<BlockSize> {
    if let Some(custom) = &size.custom {
        let most = if c.architecture == Architecture::S390x { 4096 } else { 2 << 20 };
        let number =
            |value: Option<i64>| value.and_then(|value| u32::try_from(value).ok()).filter(|it| *it > 0);
        let (logical, physical) = (number(custom.logical), number(custom.physical));
        let (logical, physical) = (logical.or(physical).unwrap_or(512), physical.or(logical).unwrap_or(512));
        if !logical.is_power_of_two() || !physical.is_power_of_two() || logical > physical || physical > most
        {
            let reason = format_args!("sizes are powers of two up to {most}, logical not above physical");
            c.unsupported(format!("{field}.blockSize.custom"), reason);
        }
        let discard = custom.discard_granularity.and_then(|size| u32::try_from(size).ok());
        return Some(BlockSize { logical, physical, discard });
    }
    let matches = size.match_volume.as_ref().is_some_and(|state| state.enabled.unwrap_or(true));
    if matches && facts.block_size.is_none() {
        c.unsupported(
            format!("{field}.blockSize.matchVolume"),
            "the sector sizes of the volume are not known",
        );
    }
    facts.block_size.filter(|_| matches)
}

pub(super) fn error_policy(c: &mut Conversion<'_>, field: &str, disk: &api::Disk) -> ErrorPolicy {
    match &disk.error_policy {
        None | Some(DiskErrorPolicy::Stop) => ErrorPolicy::Stop,
        Some(DiskErrorPolicy::Ignore) => ErrorPolicy::Ignore,
        Some(DiskErrorPolicy::Report) => ErrorPolicy::Report,
        Some(DiskErrorPolicy::Enospace) => ErrorPolicy::Enospace,
        Some(DiskErrorPolicy::Other(other)) => {
            if !other.is_empty() {
                c.unsupported(format!("{field}.errorPolicy"), format_args!("{other:?} is not known"));
            }
            ErrorPolicy::Stop
        }
    }
}
