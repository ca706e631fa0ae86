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

/// How often to look where the system tells nothing: there may be only so many watches.
const LOOK: Duration = Duration::from_secs(1);

/// News of a folder, or of the nearest one above it that there is.
pub struct News {
    /// None if there are too many already.
    inotify: Option<AsyncFd<OwnedFd>>,
}

impl News {
    /// All that happens in a folder from now on. What is looked at after this is not missed.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let inotify = match inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) {
            Ok(inotify) => inotify,
            Err(Errno::MFILE | Errno::NFILE) => return Ok(Self { inotify: None }),
            Err(error) => return Err(error.into()),
        };
        match watch(&inotify, folder) {
            Ok(()) => {
                // SAFETY: an `OwnedFd` is the same open file until it is dropped, and only we have it.
                let inotify = unsafe { AsyncFd::register(inotify) }.map_err(io::Error::from)?;
                Ok(Self { inotify: Some(inotify) })
            }
            Err(Errno::NOSPC) => Ok(Self { inotify: None }),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until something has happened.
    pub async fn next(&mut self) -> io::Result<()> {
        let Some(inotify) = &mut self.inotify else {
            tokio::time::sleep(LOOK).await;
            return Ok(());
        };
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
        let mut news = News::of(&deep).unwrap();
        std::fs::create_dir_all(&deep).unwrap();
        news.next().await.unwrap();
        let mut news = News::of(&deep).unwrap();
        std::fs::write(folder.path().join("a/b/beside"), "").unwrap();
        std::fs::rename(folder.path().join("a/b/beside"), &file).unwrap();
        news.next().await.unwrap();
        let mut news = News::of(&deep).unwrap();
        std::fs::remove_file(&file).unwrap();
        news.next().await.unwrap();
    }
}
