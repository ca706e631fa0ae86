//! Runs work inside another network namespace, on a thread of its own.

use std::{fs::File, io, os::fd::AsFd, path::Path, sync::Arc, thread};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::sync::oneshot;

/// A network namespace, kept alive while this value is.
#[derive(Debug, Clone)]
pub struct NetNs(Arc<File>);

impl NetNs {
    /// The namespace of a process.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        Self::at(Path::new(&format!("/proc/{pid}/ns/net")))
    }

    /// The namespace that a file stands for.
    pub fn at(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self::from)
    }

    /// The namespace of the calling thread.
    pub fn current() -> io::Result<Self> {
        Self::at(Path::new("/proc/thread-self/ns/net"))
    }

    /// Runs `work` inside the namespace. It may block: it has a thread of its own, which never does anything else,
    /// so that no other work can end up in the wrong namespace.
    pub async fn run<T, F>(&self, work: F) -> io::Result<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let file = Arc::clone(&self.0);
        let (sender, receiver) = oneshot::channel();
        thread::Builder::new().name("netns".to_owned()).spawn(move || {
            let entered = move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network));
            let result = entered.map_err(io::Error::from).map(|()| work());
            // Nobody waits any more: there is nobody to tell.
            let _ = sender.send(result);
        })?;
        receiver.await.unwrap_or_else(|_| Err(io::Error::other("the work in the network namespace panicked")))
    }
}

impl From<File> for NetNs {
    fn from(file: File) -> Self {
        Self(Arc::new(file))
    }
}
