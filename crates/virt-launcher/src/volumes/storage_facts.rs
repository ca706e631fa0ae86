//! What the storage under a volume can do.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use kubevirt_domain::domain::disk::BlockSize;
use kubevirt_domain::facts::VolumeFacts;
use kubevirt_host::storage::{self, BlockSizes, DirectIo};

/// What is known of a volume whose image or device is at `path`, with the image that shows through, if any.
///
/// `format` is left open; `discard` is what the caller knows about it.
pub fn volume_facts(path: &Path, backing: Option<&Path>, discard: bool) -> io::Result<VolumeFacts> {
    let metadata = fs::metadata(path)?;
    let block = metadata.file_type().is_block_device();
    // A layer over an image has the size of the image, which does not grow under a guest.
    let size = match (backing, block) {
        (Some(_), _) => None,
        (None, true) => Some(storage::block_device(path)?.size),
        (None, false) => Some(metadata.len()),
    };
    Ok(VolumeFacts {
        block,
        format: None,
        direct_io: direct(path)? && backing.map_or(Ok(true), direct)?,
        preallocated: !block && is_full(path, &metadata),
        discard,
        block_size: block_size(backing.unwrap_or(path)),
        size,
        room: size,
    })
}

fn direct(path: &Path) -> io::Result<bool> {
    storage::direct_io(path).map(|direct| direct != DirectIo::Missing)
}

/// Whether all space of an image is taken already.
fn is_full(path: &Path, metadata: &fs::Metadata) -> bool {
    let allocated = metadata.blocks() * 512;
    // A raw image that starts like a qcow2 image would be taken for a sparse one, which does no harm.
    allocated >= metadata.len() && kubevirt_disk_image::probe(path).is_ok_and(|info| info.preallocated())
}

/// Sector sizes of a device, or those that suit the file system of a file.
fn block_size(path: &Path) -> Option<BlockSize> {
    let sizes = match storage::is_block_device(path).ok()? {
        true => storage::block_device(path).ok()?.sizes,
        false => storage::file_block_sizes(path).ok()?,
    };
    settle(sizes)
}

/// Sector sizes from what a device says; what it leaves out is as the rest.
fn settle(BlockSizes { logical, physical, discard }: BlockSizes) -> Option<BlockSize> {
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
            assert_eq!(settle(BlockSizes { logical, physical, discard }), expected);
        }
    }
}
