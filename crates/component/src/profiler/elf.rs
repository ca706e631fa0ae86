//! What a profiler needs of a program's file: where its code is, the tables of callers, and which build it is.

use std::fmt::Write;
use std::io;

/// No table is larger; a file that says so is broken.
const LARGEST: u64 = 256 << 20;
const HEADER: usize = 64;
const LOADED: u32 = 1;
const EXECUTABLE: u32 = 1;

/// A part of a file that is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    offset: u64,
    address: u64,
    length: u64,
}

/// A section and where it is meant to be in memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) address: u64,
    pub(super) bytes: Vec<u8>,
}

/// How callers are found: `.eh_frame_hdr` and `.eh_frame`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) index: Section,
    pub(super) frames: Section,
}

/// What is in a program's file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) code: Vec<Code>,
    pub(super) tables: Tables,
    /// In hexadecimal digits; empty if it has none.
    pub(super) build_id: String,
}

impl Image {
    /// Reads a file for little-endian machines of 64 bits, of which `read` gives so many bytes from somewhere.
    pub(super) fn read(read: impl Fn(u64, usize) -> io::Result<Vec<u8>>) -> io::Result<Self> {
        let header = Fields(read(0, HEADER)?);
        if !header.0.starts_with(b"\x7fELF\x02\x01") {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "is not a program for this machine"));
        }
        let table = |offset: u64, size: u16, count: u16| -> io::Result<Vec<Fields>> {
            let bytes = read(offset, usize::from(size) * usize::from(count))?;
            Ok(bytes.chunks_exact(usize::from(size).max(1)).map(|entry| Fields(entry.to_vec())).collect())
        };
        let segments = table(header.long(32), header.short(54), header.short(56))?;
        let sections = table(header.long(40), header.short(58), header.short(60))?;
        let content = |section: &Fields| -> io::Result<Section> {
            let length = section.long(32);
            if length > LARGEST {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "has a section without end"));
            }
            Ok(Section { address: section.long(16), bytes: read(section.long(24), length as usize)? })
        };
        let names =
            sections.get(usize::from(header.short(62))).map(&content).transpose()?.unwrap_or_default();
        let named = |name: &str| -> io::Result<Section> {
            let section = sections.iter().find(|section| {
                let text = names.bytes.get(section.word(0) as usize..).unwrap_or_default();
                text.split(|byte| *byte == 0).next() == Some(name.as_bytes())
            });
            Ok(section.map(&content).transpose()?.unwrap_or_default())
        };
        let code = segments
            .iter()
            .filter(|segment| segment.word(0) == LOADED && segment.word(4) & EXECUTABLE != 0)
            .map(|segment| Code {
                offset: segment.long(8),
                address: segment.long(16),
                length: segment.long(32),
            })
            .collect();
        Ok(Self {
            code,
            tables: Tables { index: named(".eh_frame_hdr")?, frames: named(".eh_frame")? },
            build_id: build_id(&named(".note.gnu.build-id")?.bytes),
        })
    }

    /// By how much code is elsewhere than its file says, when what is at an offset of the file is at `start`.
    pub(super) fn moved(&self, offset: u64, start: u64) -> Option<u64> {
        let holds = |code: &&Code| {
            code.offset < offset.saturating_add(1 << 12) && offset < code.offset.saturating_add(code.length)
        };
        let code = self.code.iter().find(holds)?;
        Some(start.wrapping_sub(code.address.wrapping_sub(code.offset).wrapping_add(offset)))
    }
}

/// The identifier in a note, after its sizes, kind and owner.
fn build_id(note: &[u8]) -> String {
    let digits = note.get(16..).unwrap_or_default();
    digits.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// An entry of a table; what is beyond its end is zero.
struct Fields(Vec<u8>);

impl Fields {
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    fn short(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    fn long(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, read};
    use std::os::unix::fs::FileExt;

    use super::*;

    fn part(bytes: &[u8], offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let end = usize::try_from(offset).ok().and_then(|start| Some((start, start.checked_add(length)?)));
        let found = end.and_then(|(start, end)| bytes.get(start..end));
        found.map(<[u8]>::to_vec).ok_or(io::ErrorKind::UnexpectedEof.into())
    }

    #[test]
    fn this_program_has_code_and_tables() {
        let file = File::open("/proc/self/exe").unwrap();
        let image = Image::read(|offset, length| {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes)
        })
        .unwrap();
        assert!(!image.code.is_empty() && !image.tables.index.bytes.is_empty());
        assert!(image.tables.frames.bytes.len() > image.tables.index.bytes.len());
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let program = read("/proc/self/exe").unwrap();
        for length in [0, 3, 64, 100, 4096, program.len() / 2] {
            assert!(Image::read(|at, size| part(&program[..length], at, size)).is_err(), "{length}");
        }
        let mut broken = program[..4096].to_vec();
        for at in 16..64 {
            let right = std::mem::replace(&mut broken[at], 0xff);
            let _ = Image::read(|at, size| part(&broken, at, size.min(4096)));
            broken[at] = right;
        }
        assert!(Image::read(|_, _| Ok(b"#!/bin/sh\n".to_vec())).is_err());
    }

    #[test]
    fn code_is_moved_as_a_whole() {
        let image = Image {
            code: vec![
                Code { offset: 0x1000, address: 0x1000, length: 0x800 },
                Code { offset: 0x9276c0, address: 0xb286c0, length: 0x243_efc8 },
            ],
            ..Image::default()
        };
        // As a linker lays it out, at its own place and at another one.
        assert_eq!(image.moved(0x92_7000, 0xb2_8000), Some(0));
        assert_eq!(image.moved(0x92_7000, 0x7f00_00b2_8000), Some(0x7f00_0000_0000));
        assert_eq!(image.moved(0x1000, 0x5000), Some(0x4000));
        assert_eq!(image.moved(0x8000, 0x5000), None);
    }

    #[test]
    fn builds_have_identifiers() {
        let note = b"\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0\x0a\xff\x01";
        assert_eq!((build_id(note).as_str(), build_id(b"short").as_str()), ("0aff01", ""));
    }
}
