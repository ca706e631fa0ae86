//! Waiting for something to appear in a folder, told by the system and not by looking again and again.
#![expect(unsafe_code, reason = "tokio cannot check what a file descriptor does; ours is plainly owned")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

/// How often to look where the system tells nothing, for there may be only so many watches and open files.
const LOOK: Duration = Duration::from_secs(1);

/// News of a folder, or of the nearest one above it that there is.
pub struct News {
    /// None if the system has no more to give.
    inotify: Option<AsyncFd<OwnedFd>>,
}

impl News {
    /// All that happens in a folder from now on. What is looked at after this is not missed, at the latest a moment
    /// later.
    pub fn of(folder: &Path) -> Self {
        let inotify = watched(folder);
        if let Err(error) = &inotify {
            tracing::debug!(folder = %folder.display(), %error, "nobody tells what happens in a folder");
        }
        Self { inotify: inotify.ok() }
    }

    /// Waits until something has happened, or may have.
    pub async fn next(&mut self) {
        let told = match &mut self.inotify {
            Some(inotify) => told(inotify).await.is_ok(),
            None => false,
        };
        if !told {
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn watched(folder: &Path) -> io::Result<AsyncFd<OwnedFd>> {
    let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    watch(&inotify, folder)?;
    // SAFETY: an `OwnedFd` is the same open file until it is dropped, and only we have it.
    unsafe { AsyncFd::register(inotify) }.map_err(io::Error::from)
}

async fn told(inotify: &mut AsyncFd<OwnedFd>) -> io::Result<()> {
    loop {
        let mut ready = inotify.readable_mut().await?;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(ready.get_inner(), &mut buffer);
        match reader.next() {
            Ok(_) => return Ok(()),
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Watches a folder, or the nearest one above it.
fn watch(inotify: &OwnedFd, folder: &Path) -> Result<(), Errno> {
    let news = WatchFlags::CREATE
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR;
    loop {
        let nearest = nearest(folder);
        match inotify::add_watch(inotify, nearest, news) {
            // The next folder may have come just before we began to watch for it.
            Ok(_) if self::nearest(folder) == nearest => return Ok(()),
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn nearest(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[tokio::test]
    async fn files_and_folders_are_told_of() {
        let folder = Folder::new();
        let (deep, file) = (folder.path().join("a/b"), folder.path().join("a/b/file"));
        let mut news = News::of(&deep);
        std::fs::create_dir_all(&deep).unwrap();
        news.next().await;
        let mut news = News::of(&deep);
        std::fs::write(folder.path().join("a/b/beside"), "").unwrap();
        std::fs::rename(folder.path().join("a/b/beside"), &file).unwrap();
        news.next().await;
        let mut news = News::of(&deep);
        std::fs::remove_file(&file).unwrap();
        news.next().await;
    }
}
