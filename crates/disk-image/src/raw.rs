//! Raw images.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, OFlags};

use crate::error::ImageError;
use crate::place::{Outcome, create};

/// Whether space is taken before it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Only what is written takes space.
    Sparse,
    /// All of it is taken at once.
    Full,
}

/// Makes a raw image of zeros unless something is there already.
pub fn create_raw(path: &Path, size: u64, allocation: Allocation) -> Result<Outcome, ImageError> {
    create(path, 0o660, |file| extend(path, file, 0, size, allocation))
}

/// Makes a raw image larger; one that is as large already stays as it is.
pub fn grow_raw(path: &Path, size: u64, allocation: Allocation) -> Result<Outcome, ImageError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(path)
        .map_err(|source| ImageError::io("open", path, source))?;
    let metadata = file.metadata().map_err(|source| ImageError::io("look at", path, source))?;
    if !metadata.is_file() {
        return Err(ImageError::NotAFile(path.into()));
    }
    if metadata.size() >= size {
        return Ok(Outcome::Kept);
    }
    extend(path, &file, metadata.size(), size, allocation)?;
    Ok(Outcome::Made)
}

fn extend(path: &Path, file: &File, old: u64, size: u64, allocation: Allocation) -> Result<(), ImageError> {
    let failed = |source| match i64::try_from(size) {
        Ok(_) => ImageError::io("extend", path, source),
        Err(_) => ImageError::Size { path: path.into(), size, what: "no file can be that large" },
    };
    file.set_len(size).map_err(failed)?;
    if allocation == Allocation::Sparse {
        return Ok(());
    }
    let undo = |error| {
        // Half of an extension is of no use to anybody.
        let _ = file.set_len(old);
        error
    };
    match rustix::fs::fallocate(file, FallocateFlags::empty(), old, size - old) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP) => write_zeros(file, old, size).map_err(failed).map_err(undo),
        Err(source) => Err(undo(failed(source.into()))),
    }
}

fn write_zeros(file: &File, from: u64, to: u64) -> std::io::Result<()> {
    let zeros = vec![0; 256 << 10];
    let mut at = from;
    while at < to {
        let length = (to - at).min(zeros.len() as u64) as usize;
        file.write_all_at(&zeros[..length], at)?;
        at += length as u64;
    }
    Ok(())
}
