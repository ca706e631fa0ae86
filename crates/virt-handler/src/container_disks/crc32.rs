//! The checksum by which KubeVirt tells container disks apart: CRC-32 with IEEE's polynomial.

use std::io::{self, Read};

use kubevirt_host::inside::Inside;
use rustix::fs::OFlags;

const POLYNOMIAL: u32 = 0xedb8_8320;

/// What each byte does to the sum, and what it does when up to seven others follow it.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut place = 1;
    while place < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before: u32 = tables[place - 1][byte];
            tables[place][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        place += 1;
    }
    tables
}

/// The checksum of a file.
pub fn of(file: &Inside) -> io::Result<u32> {
    let mut file = file.open(OFlags::RDONLY)?;
    let mut buffer = vec![0; 1 << 20];
    let mut sum = u32::MAX;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(!sum),
            count => sum = add(sum, &buffer[..count]),
        }
    }
}

fn add(mut sum: u32, bytes: &[u8]) -> u32 {
    let mut eights = bytes.chunks_exact(8);
    for eight in &mut eights {
        let first = sum ^ u32::from_le_bytes([eight[0], eight[1], eight[2], eight[3]]);
        sum = 0;
        for (index, byte) in first.to_le_bytes().iter().chain(&eight[4..]).enumerate() {
            sum ^= TABLES[7 - index][usize::from(*byte)];
        }
    }
    let single = |sum: u32, byte: &u8| sum >> 8 ^ TABLES[0][usize::from(sum as u8 ^ byte)];
    eights.remainder().iter().fold(sum, single)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_sum_that_everybody_computes() {
        for (text, expected) in [
            ("", 0),
            ("a", 0xe8b7_be43),
            ("123456789", 0xcbf4_3926),
            ("The quick brown fox jumps over the lazy dog", 0x414f_a339),
        ] {
            assert_eq!(!add(u32::MAX, text.as_bytes()), expected, "{text}");
            let (a, b) = text.as_bytes().split_at(text.len() / 3);
            assert_eq!(!add(add(u32::MAX, a), b), expected, "{text}");
        }
    }
}
