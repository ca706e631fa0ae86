//! Block devices, and the units in which storage is written.

use std::fs::File;
use std::io::{self, Error, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{ioctl_blkpbszget, ioctl_blksszget, major, minor, statvfs};

/// Units of storage, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Smallest that can be addressed.
    pub logical: u32,
    /// Smallest that is written at once.
    pub physical: u32,
    /// Smallest that can be freed; 0 if nothing can.
    pub discard: u32,
}

/// A block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its bytes.
    pub size: u64,
    /// Its units.
    pub sizes: BlockSizes,
}

/// Whether there is a block device.
pub fn is_block_device(path: &Path) -> io::Result<bool> {
    Ok(std::fs::metadata(path)?.file_type().is_block_device())
}

/// Asks a block device for its size and units.
pub fn block_device(path: &Path) -> io::Result<BlockDevice> {
    let mut device = File::open(path)?;
    let file = device.metadata()?;
    if !file.file_type().is_block_device() {
        return Err(Error::new(ErrorKind::InvalidInput, format!("{} is not a block device", path.display())));
    }
    let (logical, physical) = (ioctl_blksszget(&device)?, ioctl_blkpbszget(&device)?);
    let size = device.seek(SeekFrom::End(0))?;
    let sizes = consistent(logical, physical, discard_granularity(file.rdev()))
        .ok_or_else(|| Error::other(format!("{} has no block size", path.display())))?;
    Ok(BlockDevice { size, sizes })
}

/// The units of a file: those of its file system, which knows only one.
pub fn file_block_sizes(path: &Path) -> io::Result<BlockSizes> {
    let size = statvfs(path)?.f_bsize;
    let size =
        u32::try_from(size).map_err(|_| Error::other(format!("a block of {size} bytes is too large")))?;
    Ok(BlockSizes { logical: size, physical: size, discard: size })
}

/// A partition has no queue of its own; what its disk could free is then not known.
fn discard_granularity(device: u64) -> u32 {
    let path = format!("/sys/dev/block/{}:{}/queue/discard_granularity", major(device), minor(device));
    std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Mends what drivers get wrong: one of two sizes missing, freed units that are not whole blocks.
fn consistent(logical: u32, physical: u32, discard: u32) -> Option<BlockSizes> {
    let (logical, physical) = match (logical, physical) {
        (0, 0) => return None,
        (0, size) | (size, 0) => (size, size),
        both => both,
    };
    let discard = if discard.is_multiple_of(logical) { discard } else { physical };
    Some(BlockSizes { logical, physical, discard })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn mends_sizes() {
        let sizes = |logical, physical, discard| Some(BlockSizes { logical, physical, discard });
        for (logical, physical, discard, expected) in [
            (512, 4096, 4096, sizes(512, 4096, 4096)),
            (512, 512, 0, sizes(512, 512, 0)),
            (0, 4096, 0, sizes(4096, 4096, 0)),
            (512, 0, 512, sizes(512, 512, 512)),
            (4096, 4096, 512, sizes(4096, 4096, 4096)),
            (0, 0, 512, None),
        ] {
            assert_eq!(consistent(logical, physical, discard), expected);
        }
    }

    #[test]
    fn asks_a_file_system() {
        let folder = Folder::of(&[("disk.img", "")]);
        let file = folder.path().join("disk.img");
        let sizes = file_block_sizes(&file).unwrap();
        assert!(sizes.logical.is_power_of_two() && sizes.physical == sizes.logical, "{sizes:?}");
        assert!(!is_block_device(&file).unwrap());
        assert_eq!(block_device(&file).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(is_block_device(&folder.path().join("no")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    /// Any device will do that this process may open and that has something in it.
    #[test]
    fn asks_a_real_device() {
        for entry in std::fs::read_dir("/sys/class/block").into_iter().flatten().flatten() {
            let path = Path::new("/dev").join(entry.file_name());
            let sectors = || std::fs::read_to_string(entry.path().join("size")).unwrap_or_default();
            let before = sectors();
            let Ok(found) = block_device(&path) else { continue };
            println!("{}: {found:?}", path.display());
            // Others may change a device meanwhile.
            if sectors() == before {
                assert_eq!(found.size, before.trim().parse::<u64>().unwrap() * 512);
            }
            assert!(found.sizes.physical >= found.sizes.logical && found.sizes.logical >= 512);
            assert!(is_block_device(&path).unwrap());
        }
    }
}
