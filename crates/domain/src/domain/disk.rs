//! Disks, the images behind them and the buses they hang on.

use serde::{Deserialize, Serialize};

use crate::pci::Address;

/// A disk, CD-ROM drive or LUN of the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disk {
    /// Name of the disk and its volume.
    pub name: String,
    /// Name the guest is likely to give it, such as `vda`.
    pub target: String,
    /// What the guest sees.
    pub kind: DiskKind,
    /// What it hangs on.
    pub bus: DiskBus,
    /// Where its bytes are; none for an empty CD-ROM drive.
    pub image: Option<Image>,
    /// The guest cannot write.
    pub read_only: bool,
    /// Place in the boot order, from 1.
    pub boot_index: Option<u32>,
    /// Serial number the guest reads.
    pub serial: Option<String>,
    /// Use of the host's page cache.
    pub cache: Cache,
    /// How requests are submitted, if not QEMU's choice.
    pub io: Option<Io>,
    /// Space that the guest frees is given back.
    pub discard: bool,
    /// Sector sizes.
    pub block_size: Option<BlockSize>,
    /// Other machines write it too.
    pub shareable: bool,
    /// What a failed request does.
    pub error_policy: ErrorPolicy,
    /// It was added while the machine ran.
    pub hotplugged: bool,
    /// Bytes that it has, where the volume tells.
    #[serde(default)]
    pub size: Option<u64>,
    /// Bytes that it may come to have.
    #[serde(default)]
    pub room: Option<u64>,
}

/// What the guest sees of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DiskKind {
    /// A hard disk.
    Disk,
    /// A CD-ROM drive.
    Cdrom {
        /// The tray starts open.
        tray_open: bool,
    },
    /// A SCSI device whose commands reach the host's.
    Lun {
        /// The guest may make persistent reservations.
        reservation: bool,
    },
}

/// What a disk hangs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DiskBus {
    /// A virtio device of its own.
    Virtio {
        /// Where it sits.
        address: Address,
        /// Number of request queues, if not QEMU's choice.
        queues: Option<u32>,
        /// IO threads that serve it, by number; several need queues mapped to them.
        #[serde(default)]
        io_threads: Vec<u32>,
    },
    /// A port of a SATA controller, counted over all of them.
    Sata {
        /// Number of the port.
        port: u32,
    },
    /// A unit of the virtio SCSI controller.
    Scsi {
        /// Logical unit number.
        unit: u32,
    },
    /// A port of the USB controller.
    Usb,
}

/// An image and the images under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// File or block device.
    pub location: Location,
    /// How bytes are laid out in it.
    pub format: ImageFormat,
    /// What shows through where this image holds nothing.
    pub backing: Option<Box<Image>>,
    /// Where the bytes are if this image only tracks which changed.
    pub data: Option<Location>,
}

/// File or block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Location {
    /// Path of a regular file.
    File(String),
    /// Path of a block device.
    Block(String),
}

/// How bytes are laid out in an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ImageFormat {
    /// As the guest sees them.
    #[default]
    Raw,
    /// QEMU's copy-on-write format.
    Qcow2,
}

/// Use of the host's page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cache {
    /// Not used.
    #[default]
    None,
    /// Used, and each write waits for the disk.
    Writethrough,
    /// Used for writes too.
    Writeback,
}

/// How requests are submitted to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Io {
    /// Linux AIO.
    Native,
    /// A pool of threads.
    Threads,
}

/// Sector sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BlockSize {
    /// Smallest unit that can be addressed.
    pub logical: u32,
    /// Smallest unit that is written at once.
    pub physical: u32,
    /// Smallest unit that can be freed, if not QEMU's choice.
    pub discard: Option<u32>,
}

/// What a failed request does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ErrorPolicy {
    /// The machine pauses.
    #[default]
    Stop,
    /// Nothing.
    Ignore,
    /// The guest is told.
    Report,
    /// The machine pauses if space ran out, otherwise the guest is told.
    Enospace,
}

impl Disk {
    /// Whether the guest may make persistent reservations.
    pub fn reserves(&self) -> bool {
        matches!(self.kind, DiskKind::Lun { reservation: true })
    }

    /// Whether it is a CD-ROM drive.
    pub fn is_cdrom(&self) -> bool {
        matches!(self.kind, DiskKind::Cdrom { .. })
    }
}

impl Location {
    /// The path, whatever it is.
    pub fn path(&self) -> &str {
        match self {
            Self::File(path) | Self::Block(path) => path,
        }
    }
}

impl Image {
    /// A raw image.
    pub fn raw(location: Location) -> Self {
        Self { location, format: ImageFormat::Raw, backing: None, data: None }
    }

    /// A qcow2 image in a file.
    pub fn qcow2(path: String) -> Self {
        Self { location: Location::File(path), format: ImageFormat::Qcow2, backing: None, data: None }
    }
}
