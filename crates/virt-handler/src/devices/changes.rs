//! Names that come and go in folders, as the kernel tells of them.
#![expect(unsafe_code, reason = "tokio wants a promise that what it waits for stays open")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tracing::warn;

/// How often to look where the kernel does not tell: there are only so many queues and watches.
const LOOK: Duration = Duration::from_secs(5);

/// Watches folders.
pub struct Changes {
    /// None if the kernel has no more to give.
    queue: Option<AsyncFd<OwnedFd>>,
    /// Folders by the number of their watch.
    watched: BTreeMap<i32, PathBuf>,
    /// Folders that the kernel does not tell of.
    unwatched: BTreeSet<PathBuf>,
}

impl Changes {
    /// Watches nothing yet.
    pub fn new() -> Self {
        Self { queue: queue(), watched: BTreeMap::new(), unwatched: BTreeSet::new() }
    }

    /// Watches a folder from now on, if it is there; again is no harm. Where the kernel does not tell of it, it counts
    /// as changed now and then.
    pub fn watch(&mut self, folder: &Path) {
        let watch = match &self.queue {
            Some(queue) => add(queue, folder),
            None => Err(Errno::MFILE),
        };
        match watch {
            Ok(watch) => {
                self.watched.insert(watch, folder.to_owned());
                self.unwatched.remove(folder);
            }
            Err(Errno::NOENT | Errno::NOTDIR) => {
                self.unwatched.remove(folder);
            }
            Err(error) => {
                if self.unwatched.insert(folder.to_owned()) {
                    warn!(folder = %folder.display(), "nobody tells of devices, so they are looked for: {error}");
                }
            }
        }
    }

    /// Waits for names to come or go and says which.
    pub async fn next(&mut self) -> Vec<PathBuf> {
        let look = async {
            if self.unwatched.is_empty() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(LOOK).await;
        };
        let told = async {
            match &self.queue {
                Some(queue) => told(queue, &mut self.watched).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            told = told => match told {
                Ok(paths) => paths,
                Err(error) => self.start_again(&error),
            },
            () = look => self.look_again(),
        }
    }

    /// A queue that cannot be read is of no use: all folders are watched anew.
    fn start_again(&mut self, error: &io::Error) -> Vec<PathBuf> {
        warn!("nobody tells of devices any more: {error}");
        self.queue = None;
        self.unwatched.extend(std::mem::take(&mut self.watched).into_values());
        self.look_again()
    }

    /// Nobody knows what has changed in folders that are not watched. Maybe they can be by now.
    fn look_again(&mut self) -> Vec<PathBuf> {
        if self.queue.is_none() {
            self.queue = queue();
        }
        let folders: Vec<PathBuf> = self.unwatched.iter().cloned().collect();
        for folder in &folders {
            self.watch(folder);
        }
        folders
    }
}

/// Where the kernel tells, if it does.
fn queue() -> Option<AsyncFd<OwnedFd>> {
    let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    // SAFETY: the queue is owned, so it stays the same and open for as long as it is registered.
    unsafe { AsyncFd::register(queue) }.ok()
}

fn add(queue: &AsyncFd<OwnedFd>, folder: &Path) -> Result<i32, Errno> {
    let flags = WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::ONLYDIR;
    inotify::add_watch(queue, folder, flags)
}

async fn told(queue: &AsyncFd<OwnedFd>, folders: &mut BTreeMap<i32, PathBuf>) -> io::Result<Vec<PathBuf>> {
    loop {
        let mut ready = queue.readable().await?;
        match read(ready.get_inner(), folders) {
            Ok(paths) if !paths.is_empty() => return Ok(paths),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
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
        let mut changes = Changes::new();
        changes.watch(&tree.path().join("missing"));
        changes.watch(&folder);
        changes.watch(&folder);

        tree.file("there/new", "");
        assert_eq!(changes.next().await, [folder.join("new")]);
        std::fs::remove_file(folder.join("old")).unwrap();
        std::fs::rename(folder.join("new"), folder.join("newer")).unwrap();
        let mut seen = Vec::new();
        while !seen.contains(&folder.join("newer")) {
            seen.extend(changes.next().await);
        }
        assert_eq!(seen, [folder.join("old"), folder.join("new"), folder.join("newer")]);
        std::fs::remove_dir_all(&folder).unwrap();
        let mut seen = Vec::new();
        while !seen.contains(&folder) {
            seen.extend(changes.next().await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn looks_where_nobody_tells_and_is_told_again_later() {
        let tree = Tree::new();
        tree.file("there/old", "");
        let folder = tree.path().join("there");
        let all = vec![folder.clone()];
        // The kernel had no queue to give.
        let mut changes = Changes { queue: None, ..Changes::new() };
        changes.watch(&folder);
        assert_eq!(changes.next().await, all, "it may have changed");
        tree.file("there/new", "");
        assert_eq!(changes.next().await, [folder.join("new")], "there is a queue by now");
        // The queue breaks.
        assert_eq!(changes.start_again(&io::ErrorKind::Other.into()), all);
        std::fs::remove_file(folder.join("new")).unwrap();
        assert_eq!(changes.next().await, [folder.join("new")]);
    }
}
