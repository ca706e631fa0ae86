//! Files, and how to see that they are others.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use super::{NotUsable, Policy};

/// What was seen, to be compared with what is seen later.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Seen {
    files: Vec<Option<Identity>>,
    pub(super) authorities: String,
    pub(super) policy: Policy,
}

/// What tells a file from another of the same name.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    length: u64,
    modified: Option<SystemTime>,
}

impl Seen {
    /// Adds a file: the one that links lead to.
    pub(super) fn file(&mut self, path: &Path) {
        let identity = std::fs::metadata(path).ok().map(|data| Identity {
            device: data.dev(),
            inode: data.ino(),
            length: data.len(),
            modified: data.modified().ok(),
        });
        self.files.push(identity);
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, NotUsable> {
    std::fs::read(path).map_err(|error| NotUsable::File(path.to_owned(), error))
}
