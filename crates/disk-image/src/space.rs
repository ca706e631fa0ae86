//! How large an image may be on a file system.

use std::path::Path;

use crate::error::ImageError;

const MIB: u64 = 1 << 20;

/// How much less than asked an image may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes that must stay free.
    pub reserve: u64,
    /// Percent that may be missing.
    pub tolerated_percent: u8,
}

/// The size that an image gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// What was asked for.
    Whole(u64),
    /// Less, but as much as may be missing.
    Smaller(u64),
    /// There is not enough space.
    TooSmall {
        /// Bytes that could be had.
        available: u64,
    },
}

/// The size of an image for which `wanted` bytes are asked where `free` bytes are.
pub fn fit(wanted: u64, free: u64, allowance: Allowance) -> Fit {
    let available = free.saturating_sub(allowance.reserve);
    if wanted <= available {
        return Fit::Whole(wanted);
    }
    let kept = u128::from(100_u8.saturating_sub(allowance.tolerated_percent));
    let least = u128::from(wanted) * kept / 100;
    let size = align_down(available);
    if size > 0 && u128::from(size) >= least { Fit::Smaller(size) } else { Fit::TooSmall { available } }
}

/// The largest whole number of MiB in a size; images of other sizes trouble some guests and tools.
pub fn align_down(size: u64) -> u64 {
    size - size % MIB
}

/// Bytes that a user without privileges can still write to the file system of a path.
pub fn free_space(path: &Path) -> Result<u64, ImageError> {
    let stat = rustix::fs::statvfs(path).map_err(|source| ImageError::io("look at", path, source.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_gets_what_it_asks_for_or_what_may_be_missing() {
        let allowance = Allowance { reserve: MIB, tolerated_percent: 10 };
        let none = Allowance { reserve: 0, tolerated_percent: 0 };
        let cases = [
            (100 * MIB, 101 * MIB, allowance, Fit::Whole(100 * MIB)),
            (100 * MIB, 101 * MIB - 1, allowance, Fit::Smaller(99 * MIB)),
            (100 * MIB, 91 * MIB, allowance, Fit::Smaller(90 * MIB)),
            (100 * MIB, 91 * MIB - 1, allowance, Fit::TooSmall { available: 90 * MIB - 1 }),
            (100 * MIB, 0, allowance, Fit::TooSmall { available: 0 }),
            (100, 100, none, Fit::Whole(100)),
            (100, 99, none, Fit::TooSmall { available: 99 }),
            (u64::MAX, u64::MAX - 1, none, Fit::TooSmall { available: u64::MAX - 1 }),
        ];
        for (wanted, free, allowance, expected) in cases {
            assert_eq!(fit(wanted, free, allowance), expected, "{wanted} of {free}");
        }
    }
}
