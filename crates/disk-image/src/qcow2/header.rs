//! The header of a qcow2 image, read with distrust.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::bytes::{be32, be64};
use crate::error::ImageError;
use crate::probe::Qcow2Info;

/// Enough bytes for a header, its extensions and the name of a backing file.
pub const HEADER_ROOM: usize = 64 << 10;
pub const MAGIC: [u8; 4] = *b"QFI\xfb";
/// Marks the extension that holds the format of the backing file.
pub const BACKING_FORMAT: u32 = 0xe279_2aca;
/// Longest name of a backing file.
pub const LONGEST_NAME: usize = 1023;
/// Largest table of the first level that QEMU loads.
const LARGEST_L1: u64 = 32 << 20;
/// Largest table of reference counts that QEMU loads.
const LARGEST_REFCOUNTS: u64 = 8 << 20;

const DIRTY: u64 = 1;
const CORRUPT: u64 = 1 << 1;
const EXTERNAL_DATA: u64 = 1 << 2;
const COMPRESSION: u64 = 1 << 3;
const EXTENDED_L2: u64 = 1 << 4;

/// What of a header is needed here.
#[derive(Clone, Debug)]
pub struct Header {
    pub version: u32,
    pub cluster_bits: u32,
    pub virtual_size: u64,
    pub l1_offset: u64,
    pub l1_entries: u32,
    pub snapshots: u32,
    backing_file: Option<String>,
    backing_format: Option<String>,
    encrypted: bool,
    features: u64,
}

/// Whether an image that starts so is qcow2.
pub fn is_qcow2(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

/// Number of entries that the first table needs for an image of this size.
pub fn l1_entries(size: u64, cluster_bits: u32, extended: bool) -> u64 {
    let entry_bits = if extended { 4 } else { 3 };
    size.div_ceil(1 << (2 * cluster_bits - entry_bits))
}

impl Header {
    /// Reads a header and checks that it makes sense for a file of this length.
    pub fn parse(path: &Path, start: &[u8], file_size: u64) -> Result<Self, ImageError> {
        let corrupt = |what: &str| ImageError::corrupt(path, what);
        let version = be32(start, 4);
        if !(2..=3).contains(&version) {
            let what = format!("qcow2 version {version}");
            return Err(ImageError::Feature { path: path.into(), what });
        }
        let least = if version == 2 { 72 } else { 104 };
        if start.len() < least {
            return Err(ImageError::truncated(path, "the qcow2 header is not whole"));
        }
        let (features, length) = if version == 2 { (0, 72) } else { (be64(start, 72), be32(start, 100)) };
        let cluster_bits = be32(start, 20);
        if !(9..=21).contains(&cluster_bits) {
            return Err(corrupt("the cluster size is not between 512 bytes and 2 MiB"));
        }
        if (length as usize) < least || u64::from(length) > 1 << cluster_bits {
            return Err(corrupt("the length of the header is wrong"));
        }
        check_features(path, features)?;
        let header = Self {
            version,
            cluster_bits,
            virtual_size: be64(start, 24),
            l1_offset: be64(start, 40),
            l1_entries: be32(start, 36),
            snapshots: be32(start, 60),
            backing_file: backing_file(path, start, 1 << cluster_bits)?,
            backing_format: backing_format(start, length as usize),
            encrypted: be32(start, 32) != 0,
            features,
        };
        header.check_places(path, start, file_size)?;
        Ok(header)
    }

    fn check_places(&self, path: &Path, start: &[u8], file_size: u64) -> Result<(), ImageError> {
        let cluster = 1_u64 << self.cluster_bits;
        let refcounts = (be64(start, 48), u64::from(be32(start, 56)) << self.cluster_bits);
        let l1 = (self.l1_offset, u64::from(self.l1_entries) * 8);
        for (what, (offset, size), most) in
            [("cluster", l1, LARGEST_L1), ("reference count", refcounts, LARGEST_REFCOUNTS)]
        {
            if !offset.is_multiple_of(cluster) || (offset == 0 && size > 0) {
                return Err(ImageError::corrupt(path, format!("the {what} table is at a wrong place")));
            }
            if size > most {
                return Err(ImageError::corrupt(path, format!("the {what} table is too large")));
            }
            if offset.checked_add(size).is_none_or(|end| end > file_size) {
                let what = format!("the {what} table is beyond the end of the file");
                return Err(ImageError::truncated(path, what));
            }
        }
        let needed = l1_entries(self.virtual_size, self.cluster_bits, self.features & EXTENDED_L2 != 0);
        if u64::from(self.l1_entries) < needed {
            return Err(ImageError::corrupt(path, "the cluster table is too small for the image's size"));
        }
        Ok(())
    }

    pub fn has_unusual_tables(&self) -> bool {
        self.features & EXTENDED_L2 != 0
    }

    pub fn into_info(self) -> Qcow2Info {
        Qcow2Info {
            version: self.version,
            cluster_bits: self.cluster_bits,
            backing_file: self.backing_file,
            backing_format: self.backing_format,
            encrypted: self.encrypted,
            external_data: self.features & EXTERNAL_DATA != 0,
            dirty: self.features & DIRTY != 0,
            snapshots: self.snapshots,
        }
    }
}

fn check_features(path: &Path, features: u64) -> Result<(), ImageError> {
    if features & CORRUPT != 0 {
        return Err(ImageError::corrupt(
            path,
            "QEMU has marked it as corrupt; repair it with qemu-img check",
        ));
    }
    let unknown = features & !(DIRTY | EXTERNAL_DATA | COMPRESSION | EXTENDED_L2);
    if unknown != 0 {
        let what = format!("unknown qcow2 features ({unknown:#x})");
        return Err(ImageError::Feature { path: path.into(), what });
    }
    Ok(())
}

fn backing_file(path: &Path, start: &[u8], cluster: u64) -> Result<Option<String>, ImageError> {
    let (offset, length) = (be64(start, 8), be32(start, 16) as usize);
    if offset == 0 {
        return Ok(None);
    }
    let corrupt = || ImageError::corrupt(path, "the name of its backing file is at a wrong place");
    if length > LONGEST_NAME || offset > cluster {
        return Err(corrupt());
    }
    let name = start.get(offset as usize..offset as usize + length).ok_or_else(corrupt)?;
    Ok(Some(String::from_utf8_lossy(name).into_owned()))
}

fn backing_format(start: &[u8], header_length: usize) -> Option<String> {
    let mut at = header_length;
    loop {
        let kind = start.get(at..at + 4).map(|_| be32(start, at))?;
        let length = start.get(at + 4..at + 8).map(|_| be32(start, at + 4))? as usize;
        if kind == 0 {
            return None;
        }
        let data = start.get(at + 8..(at + 8).checked_add(length)?)?;
        if kind == BACKING_FORMAT {
            return Some(String::from_utf8_lossy(data).into_owned());
        }
        at = (at + 8 + length).next_multiple_of(8);
    }
}

/// Checks that each table of clusters lies within the file, which tells most images that were cut off.
pub fn check_tables(path: &Path, file: &File, header: &Header, file_size: u64) -> Result<(), ImageError> {
    const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
    let cluster = 1_u64 << header.cluster_bits;
    let end = header.l1_offset + u64::from(header.l1_entries) * 8;
    let mut buffer = vec![0; 64 << 10];
    let mut at = header.l1_offset;
    while at < end {
        let length = (end - at).min(buffer.len() as u64) as usize;
        let entries = &mut buffer[..length];
        file.read_exact_at(entries, at).map_err(|source| ImageError::io("read", path, source))?;
        for entry in entries.chunks_exact(8) {
            let table = be64(entry, 0) & OFFSET;
            if !table.is_multiple_of(cluster) {
                return Err(ImageError::corrupt(path, "a table of clusters is at a wrong place"));
            }
            if table != 0 && table.saturating_add(cluster) > file_size {
                return Err(ImageError::truncated(path, "a table of clusters is beyond the end of the file"));
            }
        }
        at += length as u64;
    }
    Ok(())
}
