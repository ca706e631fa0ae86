//! Makes qcow2 images larger.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::header::{HEADER_ROOM, Header, is_qcow2, l1_entries};
use crate::error::ImageError;
use crate::place::Outcome;

/// Makes a qcow2 image larger that nobody has open; one that is as large already stays as it is.
///
/// Only as far as the clusters go that its first table has already: an image made here can grow to the next 4 TiB.
pub fn grow_qcow2(path: &Path, size: u64) -> Result<Outcome, ImageError> {
    let failed = |doing: &'static str| move |source| ImageError::io(doing, path, source);
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed("open"))?;
    let length = file.metadata().map_err(failed("look at"))?.len();
    let mut start = Vec::new();
    (&file).take(HEADER_ROOM as u64).read_to_end(&mut start).map_err(failed("read"))?;
    if !is_qcow2(&start) {
        return Err(ImageError::different(path, "it is not a qcow2 image"));
    }
    let header = Header::parse(path, &start, length)?;
    let wrong = |what| ImageError::Size { path: path.into(), size, what };
    let size = size.checked_next_multiple_of(512).ok_or_else(|| wrong("it is too large"))?;
    if size <= header.virtual_size {
        return Ok(Outcome::Kept);
    }
    if header.snapshots > 0 || header.has_unusual_tables() {
        return Err(wrong("images with snapshots or subclusters cannot grow here; use qemu-img resize"));
    }
    let per_cluster = (1_u64 << header.cluster_bits) / 8;
    let room = u64::from(header.l1_entries).next_multiple_of(per_cluster);
    let needed = l1_entries(size, header.cluster_bits, false);
    if needed > room {
        return Err(wrong("its tables have no room for that; use qemu-img resize"));
    }
    if needed > u64::from(header.l1_entries) {
        let new = vec![0; (needed - u64::from(header.l1_entries)) as usize * 8];
        let at = header.l1_offset + u64::from(header.l1_entries) * 8;
        file.write_all_at(&new, at).map_err(failed("write"))?;
        file.write_all_at(&(needed as u32).to_be_bytes(), 36).map_err(failed("write"))?;
    }
    file.write_all_at(&size.to_be_bytes(), 24).map_err(failed("write"))?;
    Ok(Outcome::Made)
}
