//! The memory of a process.

use std::path::Path;

use crate::read::{self, ReadError};

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// What it has in memory.
    pub resident: u64,
    /// The same, where what it shares with others counts by its share.
    pub proportional: u64,
    /// What nobody else uses.
    pub private: u64,
    /// What was swapped out, by its share.
    pub swapped: u64,
}

/// What a process uses. The kernel looks at all of its pages for this.
pub fn of(process: u32) -> Result<Usage, ReadError> {
    read::parsed(Path::new(&format!("/proc/{process}/smaps_rollup")), parse)
}

fn parse(text: &str) -> Option<Usage> {
    let bytes = |name| {
        let kibibytes: u64 = read::field(text, name)?.strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024)
    };
    Some(Usage {
        resident: bytes("Rss")?,
        proportional: bytes("Pss")?,
        private: bytes("Private_Clean")?.checked_add(bytes("Private_Dirty")?)?,
        swapped: bytes("SwapPss").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_sum() {
        let text = "55e0-7ffd ---p 00000000 00:00 0    [rollup]\nRss:      1492 kB\nPss:       804 kB\n\
            Pss_Anon:   52 kB\nPrivate_Clean:  100 kB\nPrivate_Dirty:  20 kB\nSwapPss:  4 kB\nLocked: 0 kB\n";
        let expected =
            Usage { resident: 1492 << 10, proportional: 804 << 10, private: 120 << 10, swapped: 4 << 10 };
        assert_eq!(parse(text), Some(expected));
        for broken in
            ["", "Rss: 1 kB\n", &text.replace("804", "x"), &text.replace("804", "99999999999999999999")]
        {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn reads_this_process() {
        let usage = of(std::process::id()).unwrap();
        println!("{usage:?}");
        assert!(usage.proportional > 0 && usage.resident >= usage.private);
        assert!(matches!(of(0), Err(ReadError::File { .. })));
    }
}
