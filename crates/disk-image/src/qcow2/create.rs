//! Makes qcow2 images that hold nothing yet.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::header::{BACKING_FORMAT, LONGEST_NAME, MAGIC, l1_entries};
use crate::error::ImageError;
use crate::place::{Outcome, create};
use crate::probe::{Format, ImageInfo, probe};

const CLUSTER_BITS: u32 = 16;
const CLUSTER: u64 = 1 << CLUSTER_BITS;
/// Reference counts of 16 bits.
const REFCOUNT_ORDER: u32 = 4;
const HEADER_LENGTH: usize = 104;
/// The clusters: header, table of reference counts, reference counts, and then the table of clusters.
const REFCOUNT_TABLE: u64 = 1;
const REFCOUNTS: u64 = 2;
const L1: u64 = 3;
/// The reference counts that are written at once cover 2 GiB; the tables of any image that is allowed here are
/// much smaller.
const LARGEST: u64 = 1 << 50;

/// The image that shows through where an overlay holds nothing.
#[derive(Clone, Copy, Debug)]
pub struct Backing<'a> {
    /// Its absolute path.
    pub path: &'a str,
    /// How bytes are laid out in it.
    pub format: Format,
}

/// Makes an empty qcow2 image unless the same one is there already.
///
/// With a `backing` it is an overlay. Sizes are rounded up to a sector of 512 bytes.
pub fn create_qcow2(path: &Path, size: u64, backing: Option<Backing<'_>>) -> Result<Outcome, ImageError> {
    let size = round_up(path, size)?;
    let header = header(path, size, backing)?;
    let outcome = create(path, 0o640, |file| {
        write(file, &header, size).map_err(|source| ImageError::io("write", path, source))
    })?;
    if outcome == Outcome::Kept {
        check_same(path, &probe(path)?, size, backing)?;
    }
    Ok(outcome)
}

fn round_up(path: &Path, size: u64) -> Result<u64, ImageError> {
    let wrong = |what| ImageError::Size { path: path.into(), size, what };
    if size == 0 {
        return Err(wrong("an image cannot be empty"));
    }
    size.checked_next_multiple_of(512)
        .filter(|size| *size <= LARGEST)
        .ok_or_else(|| wrong("no image can be larger than 1 PiB"))
}

fn check_same(
    path: &Path,
    info: &ImageInfo,
    size: u64,
    backing: Option<Backing<'_>>,
) -> Result<(), ImageError> {
    let different = |what: String| Err(ImageError::different(path, what));
    let Some(qcow2) = &info.qcow2 else { return different("it is not a qcow2 image".into()) };
    if info.virtual_size != size {
        return different(format!("it has {} bytes instead of {size}", info.virtual_size));
    }
    if qcow2.external_data || qcow2.encrypted {
        return different("it was not made here".into());
    }
    match (&qcow2.backing_file, backing) {
        (None, None) => Ok(()),
        (Some(name), Some(backing)) if name == backing.path => match &qcow2.backing_format {
            Some(format) if format == backing.format.name() => Ok(()),
            format => {
                different(format!("its backing file is {format:?} instead of {}", backing.format.name()))
            }
        },
        (name, _) => different(format!("its backing file is {name:?}")),
    }
}

/// The first bytes of an image of this size.
fn header(path: &Path, size: u64, backing: Option<Backing<'_>>) -> Result<Vec<u8>, ImageError> {
    let mut extensions = Vec::new();
    let mut name = (0_u64, "");
    if let Some(backing) = backing {
        // A name with a colon before the first slash would be a protocol for QEMU.
        if !backing.path.starts_with('/') || backing.path.len() > LONGEST_NAME {
            let what = format!("a backing file named {:?}", backing.path);
            return Err(ImageError::Feature { path: path.into(), what });
        }
        let format = backing.format.name().as_bytes();
        extensions.extend(BACKING_FORMAT.to_be_bytes());
        extensions.extend((format.len() as u32).to_be_bytes());
        extensions.extend(format);
        extensions.resize(extensions.len().next_multiple_of(8), 0);
        // The end of the extensions is eight zeros.
        extensions.extend([0; 8]);
        name = ((HEADER_LENGTH + extensions.len()) as u64, backing.path);
    } else {
        extensions.extend([0; 8]);
    }
    let l1 = l1_entries(size, CLUSTER_BITS, false) as u32;
    let mut bytes = Vec::with_capacity(HEADER_LENGTH + extensions.len() + name.1.len());
    bytes.extend(MAGIC);
    bytes.extend(3_u32.to_be_bytes());
    bytes.extend(name.0.to_be_bytes());
    bytes.extend((name.1.len() as u32).to_be_bytes());
    bytes.extend(CLUSTER_BITS.to_be_bytes());
    bytes.extend(size.to_be_bytes());
    bytes.extend(0_u32.to_be_bytes()); // Not encrypted.
    bytes.extend(l1.to_be_bytes());
    bytes.extend((L1 * CLUSTER).to_be_bytes());
    bytes.extend((REFCOUNT_TABLE * CLUSTER).to_be_bytes());
    bytes.extend(1_u32.to_be_bytes()); // Clusters of the table of reference counts.
    bytes.extend([0; 12]); // No snapshots.
    bytes.extend([0; 24]); // No incompatible, compatible or automatically cleared features.
    bytes.extend(REFCOUNT_ORDER.to_be_bytes());
    bytes.extend((HEADER_LENGTH as u32).to_be_bytes());
    bytes.extend(extensions);
    bytes.extend(name.1.as_bytes());
    Ok(bytes)
}

fn write(file: &File, header: &[u8], size: u64) -> std::io::Result<()> {
    let l1_clusters = (l1_entries(size, CLUSTER_BITS, false) * 8).div_ceil(CLUSTER);
    let clusters = L1 + l1_clusters;
    // What is not written reads as zero, and zero means that nothing is there.
    file.set_len(clusters * CLUSTER)?;
    file.write_all_at(header, 0)?;
    file.write_all_at(&(REFCOUNTS * CLUSTER).to_be_bytes(), REFCOUNT_TABLE * CLUSTER)?;
    let counts: Vec<u8> = (0..clusters).flat_map(|_| 1_u16.to_be_bytes()).collect();
    file.write_all_at(&counts, REFCOUNTS * CLUSTER)
}
