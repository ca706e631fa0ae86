//! Folders that look like a kernel's, for tests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::testing::Folder;

/// A folder that goes with its test.
pub struct Tree(Folder);

impl Tree {
    pub fn new() -> Self {
        Self(Folder::new())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str, text: &str) {
        fs::write(self.parent_of(name), text).unwrap();
    }

    pub fn link(&self, name: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.parent_of(name)).unwrap();
    }

    fn parent_of(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}
