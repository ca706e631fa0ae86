//! Whether a file can be read and written around the page cache.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, StatxFlags, statx};

/// Whether direct I/O works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectIo {
    /// It does.
    Works {
        /// What addresses in memory, and what offsets, must be multiples of; before Linux 6.1 nobody says.
        alignment: Option<(u32, u32)>,
    },
    /// The file system has none.
    Missing,
}

/// Tries to open a file for direct I/O. One that is not there yet is made for the attempt and removed again.
pub fn direct_io(path: &Path) -> io::Result<DirectIo> {
    match attempt(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        result => return result,
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let result = attempt(path);
    std::fs::remove_file(path)?;
    result
}

fn attempt(path: &Path) -> io::Result<DirectIo> {
    let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path);
    match direct {
        Ok(file) => Ok(judged(alignment(&file))),
        // If the file cannot be opened otherwise either, then that is the error.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            File::open(path).map(|_| DirectIo::Missing)
        }
        Err(error) => Err(error),
    }
}

fn alignment(file: &File) -> Option<(u32, u32)> {
    let facts = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let told = StatxFlags::from_bits_retain(facts.stx_mask).contains(StatxFlags::DIOALIGN);
    told.then_some((facts.stx_dio_mem_align, facts.stx_dio_offset_align))
}

/// A file system may let a file be opened so and then use its cache all the same; it tells by an alignment of 0.
fn judged(alignment: Option<(u32, u32)>) -> DirectIo {
    match alignment {
        Some((0, _) | (_, 0)) => DirectIo::Missing,
        alignment => DirectIo::Works { alignment },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn believes_the_kernel() {
        for (alignment, expected) in [
            (None, DirectIo::Works { alignment: None }),
            (Some((4, 512)), DirectIo::Works { alignment: Some((4, 512)) }),
            (Some((0, 0)), DirectIo::Missing),
        ] {
            assert_eq!(judged(alignment), expected);
        }
    }

    #[test]
    fn tries_a_file_and_one_to_come() {
        let folder = Folder::of(&[("disk.img", "kept")]);
        let (here, to_come) = (folder.path().join("disk.img"), folder.path().join("to-come.img"));
        let found = direct_io(&here).unwrap();
        println!("{found:?}");
        assert_eq!(direct_io(&to_come).unwrap(), found);
        assert!(!to_come.exists());
        assert_eq!(std::fs::read_to_string(here).unwrap(), "kept");
        assert_eq!(direct_io(&folder.path().join("no/disk.img")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn finds_a_file_system_without() {
        assert_eq!(direct_io(Path::new("/proc/self/status")).unwrap(), DirectIo::Missing);
    }
}
