//! Records of folders and their Rock Ridge fields.

use super::SECTOR;

/// Midnight of 1 January 1970: years since 1900, month, day.
const TIME: [u8; 7] = [70, 1, 1, 0, 0, 0, 0];
const IS_FOLDER: u8 = 2;
/// A record has an even length that fits a byte.
const LONGEST: usize = 254;

/// A number in both byte orders.
pub fn both16(number: u16) -> [u8; 4] {
    let (low, high) = (number.to_le_bytes(), number.to_be_bytes());
    [low[0], low[1], high[0], high[1]]
}

/// A number in both byte orders.
pub fn both32(number: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// A record of a folder: a file or folder, where it is and how long.
pub fn record(identifier: &[u8], place: (u32, u32), is_folder: bool, fields: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 2];
    bytes.extend(both32(place.0));
    bytes.extend(both32(place.1));
    bytes.extend(TIME);
    bytes.push(if is_folder { IS_FOLDER } else { 0 });
    bytes.extend([0; 2]);
    bytes.extend(both16(1));
    bytes.push(identifier.len() as u8);
    bytes.extend(identifier);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes.extend(fields);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes[0] = bytes.len() as u8;
    bytes
}

/// Adds a record to a folder; no record crosses the end of a sector.
pub fn push(folder: &mut Vec<u8>, record: &[u8]) {
    let sector = SECTOR as usize;
    if folder.len() % sector + record.len() > sector {
        folder.resize(folder.len().next_multiple_of(sector), 0);
    }
    folder.extend(record);
}

/// Says that there are Rock Ridge fields; for the first record of the root.
pub fn rock_ridge() -> Vec<u8> {
    let id = b"RRIP_1991A";
    let mut bytes = b"SP\x07\x01\xbe\xef\x00".to_vec();
    bytes.extend(b"ER");
    bytes.extend([8 + id.len() as u8, 1, id.len() as u8, 0, 0, 1]);
    bytes.extend(id);
    bytes
}

/// Kind, permissions, owner and time.
pub fn attributes(mode: u32, links: u32) -> Vec<u8> {
    let mut bytes = b"PX\x24\x01".to_vec();
    for number in [mode, links, 0, 0] {
        bytes.extend(both32(number));
    }
    bytes.extend(b"TF\x0c\x01\x02");
    bytes.extend(TIME);
    bytes
}

/// Fields of a name that does not fit into a record go on elsewhere.
pub struct Overflow {
    sector: u32,
    pub bytes: Vec<u8>,
}

impl Overflow {
    pub fn at(sector: u32) -> Self {
        Self { sector, bytes: Vec::new() }
    }

    fn push(&mut self, fields: &[u8]) -> Vec<u8> {
        push(&mut self.bytes, fields);
        let start = self.bytes.len() - fields.len();
        let (sector, offset) = (start / SECTOR as usize, start % SECTOR as usize);
        let mut bytes = b"CE\x1c\x01".to_vec();
        for number in [self.sector + sector as u32, offset as u32, fields.len() as u32] {
            bytes.extend(both32(number));
        }
        bytes
    }
}

/// The real name, for a record in which `used` bytes are taken.
pub fn name(name: &str, used: usize, overflow: &mut Overflow) -> Vec<u8> {
    const CONTINUES: u8 = 1;
    let field = |part: &[u8], flags: u8| {
        let mut bytes = b"NM".to_vec();
        bytes.extend([5 + part.len() as u8, 1, flags]);
        bytes.extend(part);
        bytes
    };
    let name = name.as_bytes();
    let room = LONGEST.saturating_sub(used + 5);
    if name.len() <= room {
        return field(name, 0);
    }
    let (first, rest) = name.split_at(room.saturating_sub(28));
    let mut bytes = field(first, CONTINUES);
    bytes.extend(overflow.push(&field(rest, 0)));
    bytes
}
