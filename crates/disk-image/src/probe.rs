//! What an image is, by its header; no other file is ever opened on its word.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::error::ImageError;
use crate::{foreign, qcow2};

/// How bytes are laid out in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As the guest sees them.
    Raw,
    /// QEMU's copy-on-write format, version 2 or 3.
    Qcow2,
}

impl Format {
    /// The name QEMU has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }
}

/// What an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageInfo {
    /// How bytes are laid out.
    pub format: Format,
    /// Size the guest sees, in bytes.
    pub virtual_size: u64,
    /// Length of the file or device.
    pub file_size: u64,
    /// Bytes of the file system that it takes; all of a block device.
    pub allocated: u64,
    /// It is a block device.
    pub block: bool,
    /// What else a qcow2 header says.
    pub qcow2: Option<Qcow2Info>,
}

/// What a qcow2 header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qcow2Info {
    /// Version of the format, 2 or 3.
    pub version: u32,
    /// A cluster is 2 to the power of this many bytes.
    pub cluster_bits: u32,
    /// File that shows through where this image holds nothing.
    pub backing_file: Option<String>,
    /// Format of that file, if it is written down.
    pub backing_format: Option<String>,
    /// The bytes are encrypted.
    pub encrypted: bool,
    /// The bytes are in a file of their own.
    pub external_data: bool,
    /// The image was not closed well; QEMU repairs it when it opens it.
    pub dirty: bool,
    /// Number of snapshots inside.
    pub snapshots: u32,
}

impl ImageInfo {
    /// All of its space is taken already.
    pub fn preallocated(&self) -> bool {
        self.virtual_size <= self.allocated
    }

    /// An error unless all bytes are in this file, in the clear.
    ///
    /// An image from outside that names another file could otherwise have a guest read any file of the host.
    pub fn self_contained(&self, path: &Path) -> Result<(), ImageError> {
        let Some(qcow2) = &self.qcow2 else { return Ok(()) };
        if let Some(name) = &qcow2.backing_file {
            return Err(ImageError::Reference { path: path.into(), name: name.clone() });
        }
        if qcow2.external_data {
            return Err(ImageError::Reference { path: path.into(), name: "external data file".into() });
        }
        if qcow2.encrypted {
            return Err(ImageError::Encrypted(path.into()));
        }
        Ok(())
    }
}

/// Tells what an image is by its header.
pub fn probe(path: &Path) -> Result<ImageInfo, ImageError> {
    // A FIFO in place of an image must not stop us.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())
        .map(File::from)
        .map_err(|source| ImageError::io("open", path, source.into()))?;
    let read = |source| ImageError::io("read", path, source);
    let metadata = file.metadata().map_err(read)?;
    let block = metadata.file_type().is_block_device();
    if !block && !metadata.is_file() {
        return Err(ImageError::NotAFile(path.into()));
    }
    let file_size = if block { length_of_device(&file).map_err(read)? } else { metadata.len() };
    let mut start = Vec::with_capacity(qcow2::HEADER_ROOM);
    (&file).take(qcow2::HEADER_ROOM as u64).read_to_end(&mut start).map_err(read)?;
    if let Some(format) = foreign::format(&start) {
        return Err(ImageError::Format { path: path.into(), format });
    }
    let allocated = if block { file_size } else { metadata.blocks() * 512 };
    let raw =
        ImageInfo { format: Format::Raw, virtual_size: file_size, file_size, allocated, block, qcow2: None };
    if !qcow2::is_qcow2(&start) {
        if file_size == 0 {
            return Err(ImageError::truncated(path, "it is empty"));
        }
        return Ok(raw);
    }
    let header = qcow2::Header::parse(path, &start, file_size)?;
    qcow2::check_tables(path, &file, &header, file_size)?;
    Ok(ImageInfo {
        format: Format::Qcow2,
        virtual_size: header.virtual_size,
        qcow2: Some(header.into_info()),
        ..raw
    })
}

fn length_of_device(mut device: &File) -> io::Result<u64> {
    use std::io::{Seek, SeekFrom};
    let length = device.seek(SeekFrom::End(0))?;
    device.rewind()?;
    Ok(length)
}
