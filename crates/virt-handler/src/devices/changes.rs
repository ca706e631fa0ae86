//! Names that come and go in folders, as the kernel tells of them.
#![expect(unsafe_code, reason = "tokio wants a promise that what it waits for stays open")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

/// Watches folders.
pub struct Changes {
    queue: AsyncFd<OwnedFd>,
    folders: BTreeMap<i32, PathBuf>,
}

impl Changes {
    /// Watches nothing yet.
    pub fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // SAFETY: the queue is owned, so it stays the same and open for as long as it is registered.
        let queue = unsafe { AsyncFd::register(queue) }?;
        Ok(Self { queue, folders: BTreeMap::new() })
    }

    /// Watches a folder from now on, if it is there; again is no harm.
    pub fn watch(&mut self, folder: &Path) -> io::Result<()> {
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        match inotify::add_watch(&self.queue, folder, flags) {
            Ok(watch) => {
                self.folders.insert(watch, folder.to_owned());
                Ok(())
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for names to come or go and says which.
    pub async fn next(&mut self) -> io::Result<Vec<PathBuf>> {
        loop {
            let mut ready = self.queue.readable().await?;
            let changed = read(ready.get_inner(), &mut self.folders);
            match changed {
                Ok(paths) if !paths.is_empty() => return Ok(paths),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) => return Err(error),
            }
        }
    }
}

fn read(queue: &OwnedFd, folders: &mut BTreeMap<i32, PathBuf>) -> io::Result<Vec<PathBuf>> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
    let mut reader = inotify::Reader::new(queue, &mut buffer);
    let mut changed = Vec::new();
    loop {
        let event = match reader.next() {
            Ok(event) => event,
            Err(Errno::AGAIN) if !changed.is_empty() => return Ok(changed),
            Err(error) => return Err(error.into()),
        };
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            // Nobody knows what was lost: everything may have changed.
            changed.extend(folders.values().cloned());
        } else if event.events().contains(ReadFlags::IGNORED) {
            changed.extend(folders.remove(&event.wd()));
        } else if let (Some(folder), Some(name)) = (folders.get(&event.wd()), event.file_name()) {
            changed.push(folder.join(OsStr::from_bytes(name.to_bytes())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::testing::Tree;

    #[tokio::test]
    async fn tells_what_came_and_went() {
        let tree = Tree::new();
        tree.file("there/old", "");
        let folder = tree.path().join("there");
        let mut changes = Changes::new().unwrap();
        changes.watch(&tree.path().join("missing")).unwrap();
        changes.watch(&folder).unwrap();
        changes.watch(&folder).unwrap();

        tree.file("there/new", "");
        assert_eq!(changes.next().await.unwrap(), [folder.join("new")]);
        std::fs::remove_file(folder.join("old")).unwrap();
        std::fs::rename(folder.join("new"), folder.join("newer")).unwrap();
        let mut seen = Vec::new();
        while !seen.contains(&folder.join("newer")) {
            seen.extend(changes.next().await.unwrap());
        }
        assert_eq!(seen, [folder.join("old"), folder.join("new"), folder.join("newer")]);
        std::fs::remove_dir_all(&folder).unwrap();
        let mut seen = Vec::new();
        while !seen.contains(&folder) {
            seen.extend(changes.next().await.unwrap());
        }
    }
}
