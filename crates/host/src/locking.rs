//! Whether a program that this process starts may keep its memory from being swapped.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::read::{self, ReadError};

/// How much memory may be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lockable {
    /// As much as one likes.
    All,
    /// So many bytes.
    UpTo(u64),
}

/// `CAP_IPC_LOCK`.
const CAPABILITY: u32 = 14;

impl Lockable {
    /// What programs that this process starts may lock.
    pub fn of_children() -> Result<Self, ReadError> {
        let capable = read::parsed(Path::new("/proc/self/status"), children_are_capable)?;
        Ok(Self::decide(capable, getrlimit(Resource::Memlock).current))
    }

    /// Whether so many bytes may be locked.
    pub fn allows(self, bytes: u64) -> bool {
        match self {
            Self::All => true,
            Self::UpTo(limit) => bytes <= limit,
        }
    }

    fn decide(capable: bool, limit: Option<u64>) -> Self {
        match limit {
            Some(limit) if !capable => Self::UpTo(limit),
            _ => Self::All,
        }
    }
}

/// Root's programs get all that is not forbidden; those of others only what is in the ambient set.
fn children_are_capable(status: &str) -> Option<bool> {
    let effective_user = read::field(status, "Uid")?.split_whitespace().nth(1)?;
    let set = if effective_user == "0" { "CapBnd" } else { "CapAmb" };
    let bits = u64::from_str_radix(read::field(status, set)?, 16).ok()?;
    Some(bits >> CAPABILITY & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_a_program_keeps() {
        let status = |user: u32, bounding: &str, ambient: &str| {
            format!(
                "Uid:\t{user}\t{user}\t{user}\t{user}\nCapEff:\t4000\nCapBnd:\t{bounding}\nCapAmb:\t{ambient}\n"
            )
        };
        for (text, expected) in [
            (status(0, "000001ffffffffff", "0"), Some(true)),
            (status(0, "0000000000000400", "0"), Some(false)),
            (status(107, "000001ffffffffff", "0000000000000000"), Some(false)),
            (status(107, "000001ffffffffff", "0000000000004000"), Some(true)),
            (status(107, "1ff", "not a number"), None),
            (String::new(), None),
        ] {
            assert_eq!(children_are_capable(&text), expected, "{text}");
        }
    }

    #[test]
    fn needs_a_right_or_a_limit() {
        assert_eq!(Lockable::decide(true, Some(64)), Lockable::All);
        assert_eq!(Lockable::decide(false, None), Lockable::All);
        let limited = Lockable::decide(false, Some(64));
        assert!(limited.allows(64) && !limited.allows(65));
        println!("{:?}", Lockable::of_children().unwrap());
    }
}
