//! Numbers in byte slices; what lies outside of a slice reads as zero.

/// The big-endian number of four bytes at an offset.
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// The big-endian number of eight bytes at an offset.
pub fn be64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_be_bytes)
}
