//! What the storage under a volume can do.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use kubevirt_domain::domain::disk::BlockSize;
use kubevirt_domain::facts::VolumeFacts;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// What is known of a volume whose image or device is at `path`, with the image that shows through, if any.
///
/// `format` is left open; `discard` is what the caller knows about it.
pub fn volume_facts(path: &Path, backing: Option<&Path>, discard: bool) -> io::Result<VolumeFacts> {
    let metadata = fs::metadata(path)?;
    let block = metadata.file_type().is_block_device();
    let direct = |path: &Path| direct_io(path);
    Ok(VolumeFacts {
        block,
        format: None,
        direct_io: direct(path)? && backing.map_or(Ok(true), direct)?,
        preallocated: !block && is_full(path, &metadata),
        discard,
        block_size: block_size(backing.unwrap_or(path)),
    })
}

/// Whether a file or device can be read around the page cache.
pub fn direct_io(path: &Path) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(_) => Ok(true),
        Err(Errno::INVAL) => Ok(false),
        Err(source) => Err(source.into()),
    }
}

/// Whether all space of an image is taken already.
fn is_full(path: &Path, metadata: &fs::Metadata) -> bool {
    let allocated = metadata.blocks() * 512;
    // A raw image that starts like a qcow2 image would be taken for a sparse one, which does no harm.
    allocated >= metadata.len() && kubevirt_disk_image::probe(path).is_ok_and(|info| info.preallocated())
}

/// Sector sizes of a device, or those that suit the file system of a file.
fn block_size(path: &Path) -> Option<BlockSize> {
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.file_type().is_block_device() {
        let size = u32::try_from(rustix::fs::fstatfs(&file).ok()?.f_bsize).ok()?;
        return (size > 0).then_some(BlockSize { logical: size, physical: size, discard: Some(size) });
    }
    let logical = rustix::fs::ioctl_blksszget(&file).unwrap_or_default();
    let physical = rustix::fs::ioctl_blkpbszget(&file).unwrap_or_default();
    settle(logical, physical, discard_granularity(metadata.rdev()))
}

fn discard_granularity(device: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/queue/discard_granularity"))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or_default()
}

/// Sector sizes from what a device says; what it leaves out is as the rest.
fn settle(logical: u32, physical: u32, discard: u32) -> Option<BlockSize> {
    let (logical, physical) = match (logical, physical) {
        (0, 0) => return None,
        (0, physical) => (physical, physical),
        (logical, 0) => (logical, logical),
        both => both,
    };
    let discard = if discard.is_multiple_of(logical) { discard } else { physical };
    Some(BlockSize { logical, physical, discard: Some(discard) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sector_sizes_that_a_device_leaves_out_are_as_the_rest() {
        let cases = [
            ((512, 4096, 0), Some((512, 4096, 0))),
            ((512, 4096, 65536), Some((512, 4096, 65536))),
            ((4096, 4096, 512), Some((4096, 4096, 4096))),
            ((0, 4096, 0), Some((4096, 4096, 0))),
            ((512, 0, 0), Some((512, 512, 0))),
            ((0, 0, 512), None),
        ];
        for ((logical, physical, discard), expected) in cases {
            let expected = expected.map(|(logical, physical, discard): (u32, u32, u32)| BlockSize {
                logical,
                physical,
                discard: Some(discard),
            });
            assert_eq!(settle(logical, physical, discard), expected);
        }
    }
}
