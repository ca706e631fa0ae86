//! Disks, file systems and IO threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::open_enum::open_enum;
use crate::vmi::features::FeatureState;

/// A guest block device; the volume of the same name holds its data.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disk {
    /// Name of the volume to attach; must be a DNS label and unique among the disks.
    pub name: String,
    /// Present the volume as a hard disk, which is the default; excludes lun and cdrom.
    pub disk: Option<DiskTarget>,
    /// Pass the volume through as a SCSI LUN, so the guest can issue raw SCSI commands.
    pub lun: Option<LunTarget>,
    /// Present the volume as a CD-ROM drive; excludes disk and lun.
    pub cdrom: Option<CdRomTarget>,
    /// Boot priority from 1, lowest first, unique across disks and interfaces; unlisted devices are not
    /// tried.
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub boot_order: Option<i64>,
    /// Serial number the guest sees, at most 256 letters, digits or any of `_.+-`.
    pub serial: Option<String>,
    /// True to give this disk an I/O thread of its own; virtio bus only, false if unset.
    #[serde(rename = "dedicatedIOThread")]
    pub dedicated_io_thread: Option<bool>,
    /// Host cache: none, writethrough or writeback; none if unset and O_DIRECT works, else writethrough.
    pub cache: Option<DriverCache>,
    /// QEMU I/O mode: `native` or `threads`; chosen from the storage and cache mode if unset.
    pub io: Option<DriverIo>,
    /// Free-form tag passed to the guest, with the disk's address, in config drive metadata.
    pub tag: Option<String>,
    /// Sector sizes reported to the guest; left to QEMU if unset.
    pub block_size: Option<BlockSize>,
    /// True to let several machines write the disk at once; turns host caching off, false if unset.
    pub shareable: Option<bool>,
    /// Reaction to I/O errors: stop, ignore, report or enospace; stop, which pauses the guest, if unset.
    pub error_policy: Option<DiskErrorPolicy>,
    /// True if writes are tracked for incremental backup; managed by KubeVirt, false if unset.
    pub changed_block_tracking: Option<bool>,
}

/// Settings of a volume shown as a hard disk.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskTarget {
    /// virtio, sata, scsi or usb; if unset the architecture decides, sata on amd64 and virtio on arm64.
    pub bus: Option<DiskBus>,
    /// Refuse guest writes; false if unset, and not possible on the sata bus.
    pub readonly: Option<bool>,
    /// Guest PCI address to place the disk at, such as 0000:81:01.0; virtio bus only.
    pub pci_address: Option<String>,
}

/// Settings of a volume passed through as a LUN.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LunTarget {
    /// virtio, sata or scsi; if unset the architecture decides, and scsi is the usual choice.
    pub bus: Option<DiskBus>,
    /// Refuse guest writes; false if unset.
    pub readonly: Option<bool>,
    /// True to let the guest use SCSI persistent reservations, as cluster software needs; false if unset.
    pub reservation: Option<bool>,
}

/// Settings of a volume shown as a CD-ROM drive.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CdRomTarget {
    /// sata, scsi or usb; virtio is refused, and the default depends on the architecture (sata on amd64).
    pub bus: Option<DiskBus>,
    /// Refuse guest writes; true if unset.
    pub readonly: Option<bool>,
    /// Initial tray position, `open` or `closed`; closed if unset.
    pub tray: Option<TrayState>,
}

/// Sector sizes of a disk; use a custom size or match the volume, not both.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockSize {
    /// Fixed sizes chosen by hand.
    pub custom: Option<CustomBlockSize>,
    /// Report the sizes of the underlying storage instead; enabled merely by being present.
    pub match_volume: Option<FeatureState>,
}

/// Sector sizes in bytes, as reported to the guest.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomBlockSize {
    /// Logical size in bytes: a power of 2 from 512 to 2097152, not above physical; 512 on sata.
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub logical: Option<i64>,
    /// Physical size in bytes: a power of 2 from 512 to 2097152, not below logical.
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub physical: Option<i64>,
    /// Smallest unit in bytes the guest may discard; must be a multiple of the logical size.
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub discard_granularity: Option<i64>,
}

/// A directory shared with the guest; the volume of the same name holds its data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Filesystem {
    /// Name of the volume to share, which is also the tag the guest mounts it by.
    pub name: String,
    /// Share over virtiofs, the only supported transport; an empty object is enough.
    pub virtiofs: FilesystemVirtiofs,
}

/// Selects virtiofs; it takes no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilesystemVirtiofs {}

/// Settings of the I/O threads that serve the disks.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskIoThreads {
    /// Number of threads in the pool, at least 1; required by the supplementalPool policy.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub supplemental_pool_thread_count: Option<i32>,
}

open_enum! {
    /// Bus a disk is attached to: virtio, sata, scsi or usb.
    pub enum DiskBus {
        Scsi = "scsi",
        Sata = "sata",
        Virtio = "virtio",
        Usb = "usb",
    }
}

open_enum! {
    /// Position of a CD-ROM tray: `open` or `closed`.
    pub enum TrayState {
        Open = "open",
        Closed = "closed",
    }
}

open_enum! {
    /// Host page cache use: none bypasses it, writethrough is safest with it, writeback is fastest.
    pub enum DriverCache {
        None = "none",
        Writethrough = "writethrough",
        Writeback = "writeback",
    }
}

open_enum! {
    /// How QEMU submits disk I/O: `native` (Linux AIO) or `threads` (a thread pool).
    pub enum DriverIo {
        Threads = "threads",
        Native = "native",
    }
}

open_enum! {
    /// Reaction to a disk I/O error: pause, ignore, report to the guest, or pause only when space runs out.
    pub enum DiskErrorPolicy {
        Stop = "stop",
        Ignore = "ignore",
        Report = "report",
        Enospace = "enospace",
    }
}

open_enum! {
    /// How disks are spread over I/O threads: shared, auto or supplementalPool.
    pub enum IoThreadsPolicy {
        Shared = "shared",
        Auto = "auto",
        SupplementalPool = "supplementalPool",
    }
}
