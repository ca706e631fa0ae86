//! Room in a file system.

use std::io;
use std::path::Path;

use rustix::fs::statvfs;

/// Room in a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub total: u64,
    /// What an ordinary user can still fill.
    pub available: u64,
}

/// The room in the file system that a path is on.
pub fn space(path: &Path) -> io::Result<Space> {
    let facts = statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(facts.f_frsize);
    Ok(Space { total: bytes(facts.f_blocks), available: bytes(facts.f_bavail) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_of_this_host() {
        let found = space(&std::env::temp_dir()).unwrap();
        println!("{found:?}");
        assert!(found.total >= found.available && found.total > 0);
        assert!(space(Path::new("/no/such/path")).is_err());
    }
}
