//! Hearing of changes in folders from the kernel.

use std::io;
use std::path::PathBuf;

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use tokio::net::unix::pipe::Receiver;

/// Changes in folders since this was made.
pub(super) struct Changes {
    /// The kernel's queue is no pipe, but is read like one.
    queue: Receiver,
}

impl Changes {
    /// Watches the names in folders: mounted Secrets change by a rename of a link.
    pub(super) fn of(folders: &[PathBuf]) -> io::Result<Self> {
        let queue = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let what = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ONLYDIR;
        for folder in folders {
            add_watch(&queue, folder, what)?;
        }
        Ok(Self { queue: Receiver::from_owned_fd_unchecked(queue)? })
    }

    /// Waits for the next change, and takes all that has happened until then.
    pub(super) async fn next(&mut self) {
        let mut space = [0; 4096];
        let mut changed = false;
        while !changed && self.queue.readable().await.is_ok() {
            while self.queue.try_read(&mut space).is_ok_and(|length| length > 0) {
                changed = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_swapped_link_is_heard() {
        let folder = std::env::temp_dir().join(format!("kubevirt-changes-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut changes = Changes::of(std::slice::from_ref(&folder)).unwrap();
        assert!(timeout(Duration::from_millis(50), changes.next()).await.is_err());
        std::os::unix::fs::symlink("one", folder.join("..tmp")).unwrap();
        std::fs::rename(folder.join("..tmp"), folder.join("..data")).unwrap();
        timeout(Duration::from_secs(30), changes.next()).await.unwrap();
        assert!(timeout(Duration::from_millis(50), changes.next()).await.is_err());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(Changes::of(&[folder]).is_err());
    }
}
