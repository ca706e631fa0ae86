//! The disk through which a guest reads metrics of its host, before the first metrics are there.

use std::os::unix::fs::FileExt;
use std::path::Path;

use kubevirt_disk_image::{ImageError, create};

/// Length of the disk.
const SIZE: u64 = 256 << 10;

/// Makes the disk with no metrics on it, unless it is there.
pub fn make(path: &Path) -> Result<(), ImageError> {
    let error = |source| ImageError::io("write", path, source);
    create(path, 0o640, |file| {
        file.set_len(SIZE).map_err(error)?;
        file.write_all_at(&content(b"<metrics></metrics>\n"), 0).map_err(error)
    })
    .map(|_| ())
}

/// The start of the disk for a document: a mark, whether it is being written, a checksum and the length.
fn content(document: &[u8]) -> Vec<u8> {
    let checksum = document.iter().fold(0_u32, |sum, byte| sum.wrapping_add(u32::from(*byte)));
    let mut bytes = b"mvbd".to_vec();
    for number in [0, checksum, document.len() as u32] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(document);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_starts_with_a_header() {
        let bytes = content(b"ab");
        assert_eq!(bytes, b"mvbd\0\0\0\0\0\0\0\xc3\0\0\0\x02ab");
    }
}
