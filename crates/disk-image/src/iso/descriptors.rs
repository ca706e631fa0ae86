//! Descriptors of an image: its label, its size and where its root is.

use super::names::wide;
use super::records::{both16, both32, record};
use super::view::Kind;
use super::{IsoError, SECTOR};

/// Time that is not set.
const NO_TIME: &[u8; 17] = b"0000000000000000\0";
/// Says that a descriptor's names are in units of 16 bits.
const JOLIET: &[u8; 3] = b"%/E";

/// What a descriptor tells.
pub struct Volume<'a> {
    pub label: &'a str,
    pub sectors: u32,
    pub table_size: u32,
    /// Path tables, little end and big end first.
    pub tables: [u32; 2],
    /// Place and length of the root folder.
    pub root: (u32, u32),
}

impl Volume<'_> {
    /// The descriptor of one set of names.
    pub fn descriptor(&self, kind: Kind) -> Result<Vec<u8>, IsoError> {
        let mut bytes = vec![0; SECTOR as usize];
        let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
        let text = |text: &str, room: usize| match kind {
            Kind::Primary => fill(text.as_bytes(), b" ", room),
            Kind::Joliet => fill(&wide(text), b"\0 ", room),
        };
        put(0, if kind == Kind::Primary { b"\x01CD001\x01" } else { b"\x02CD001\x01" });
        put(8, &text("", 32));
        put(40, &self.label(kind)?);
        put(80, &both32(self.sectors));
        if kind == Kind::Joliet {
            put(88, JOLIET);
        }
        put(120, &both16(1));
        put(124, &both16(1));
        put(128, &both16(SECTOR as u16));
        put(132, &both32(self.table_size));
        put(140, &self.tables[0].to_le_bytes());
        put(148, &self.tables[1].to_be_bytes());
        put(156, &record(&[0], self.root, true, &[]));
        // Volume set, publisher, preparer and application, then three names of files.
        for (at, room) in [(190, 128), (318, 128), (446, 128), (574, 128), (702, 37), (739, 37), (776, 37)] {
            put(at, &text("", room));
        }
        for at in [813, 830, 847, 864] {
            put(at, NO_TIME);
        }
        put(881, &[1]);
        Ok(bytes)
    }

    fn label(&self, kind: Kind) -> Result<Vec<u8>, IsoError> {
        let wrong = || IsoError::Label(self.label.into());
        let is_ascii = self.label.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if self.label.is_empty() || self.label.len() > 32 || (!is_ascii && wide(self.label).len() > 32) {
            return Err(wrong());
        }
        Ok(match kind {
            Kind::Primary => fill(self.label.as_bytes(), b" ", 32),
            // Half of it fits; readers know that the rest is in the other descriptor.
            Kind::Joliet => fill(&wide(self.label), b"\0 ", 32),
        })
    }
}

fn fill(text: &[u8], space: &[u8], room: usize) -> Vec<u8> {
    text.iter().copied().chain(space.iter().copied().cycle()).take(room).collect()
}

/// The descriptor after the last one.
pub fn end() -> Vec<u8> {
    let mut bytes = vec![0; SECTOR as usize];
    bytes[..7].copy_from_slice(b"\xffCD001\x01");
    bytes
}
