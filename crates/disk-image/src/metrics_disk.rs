//! The disk through which a guest reads metrics of its host, as vhostmd lays it out.
//!
//! A header says whether the disk is being written, how long the document behind it is and what its bytes add up to. So
//! a guest that reads just then sees that it has to read again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::ImageError;
use crate::place::create;

/// Length of the disk.
const SIZE: usize = 256 << 10;

/// What is kept free of documents: more than the header needs, as readers expect.
const RESERVED: usize = 24;

/// What every such disk begins with.
const MARK: &[u8; 4] = b"mvbd";

/// Length of the header.
const HEADER: usize = 16;

/// What is on the disk before the first metrics are.
const NOTHING: &str = "<metrics></metrics>\n";

/// Makes the disk with no metrics on it, unless it is there.
pub fn create_metrics_disk(path: &Path) -> Result<(), ImageError> {
    let error = |source| ImageError::io("write", path, source);
    create(path, 0o640, |file| {
        file.set_len(SIZE as u64).map_err(error)?;
        write_metrics(file, NOTHING).map_err(error)
    })
    .map(|_| ())
}

/// Puts a document on a disk that is there.
///
/// It is not synced: whoever has the disk open on this host sees it at once, and with the host it is of no use to
/// anybody.
pub fn write_metrics(disk: &File, document: &str) -> io::Result<()> {
    let body = document.as_bytes();
    disk.write_all_at(&header(true, body)?, 0)?;
    disk.write_all_at(body, HEADER as u64)?;
    disk.write_all_at(&header(false, body)?, 0)
}

/// The document on a disk; none while it is being written.
pub fn read_metrics(disk: &File) -> io::Result<Option<String>> {
    let mut header = [0; HEADER];
    disk.read_exact_at(&mut header, 0)?;
    let (mark, numbers) = header.split_at(MARK.len());
    let mut numbers = numbers.chunks_exact(4).map(number);
    let (locked, sum, length) = (numbers.next(), numbers.next(), numbers.next());
    if mark != MARK {
        return Err(wrong("it is no disk with metrics"));
    }
    if locked != Some(0) {
        return Ok(None);
    }
    let length = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
    if length > SIZE - RESERVED {
        return Err(wrong("its document is longer than the disk"));
    }
    let mut body = vec![0; length];
    disk.read_exact_at(&mut body, HEADER as u64)?;
    if sum != Some(checksum(&body)) {
        return Err(wrong("its checksum does not fit"));
    }
    String::from_utf8(body).map(Some).map_err(|_| wrong("its document is no text"))
}

fn header(locked: bool, body: &[u8]) -> io::Result<[u8; HEADER]> {
    if body.len() > SIZE - RESERVED {
        return Err(wrong("the document is longer than the disk"));
    }
    let length = u32::try_from(body.len()).map_err(|_| wrong("the document is longer than the disk"))?;
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(MARK);
    for (place, number) in [(4, u32::from(locked)), (8, checksum(body)), (12, length)] {
        header[place..place + 4].copy_from_slice(&number.to_be_bytes());
    }
    Ok(header)
}

fn checksum(body: &[u8]) -> u32 {
    body.iter().fold(0, |sum: u32, byte| sum.wrapping_add(u32::from(*byte)))
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_starts_with_a_header() {
        for (locked, body, expected) in [
            (false, "ab", *b"mvbd\0\0\0\0\0\0\0\xc3\0\0\0\x02"),
            (true, "ab", *b"mvbd\0\0\0\x01\0\0\0\xc3\0\0\0\x02"),
            (false, "", *b"mvbd\0\0\0\0\0\0\0\0\0\0\0\0"),
            (false, "\u{ff}\u{ff}\u{ff}", *b"mvbd\0\0\0\0\0\0\x04\x86\0\0\0\x06"),
        ] {
            assert_eq!(header(locked, body.as_bytes()).unwrap(), expected, "{body}");
        }
    }

    #[test]
    fn only_what_fits_is_written() {
        assert!(header(false, &vec![b'a'; SIZE - RESERVED]).is_ok());
        assert!(header(false, &vec![b'a'; SIZE - RESERVED + 1]).is_err());
    }
}
