//! The socket by which virt-handler finds this process, and with it the files of its container.

use std::fs;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::io::Errno;

use crate::signals;

/// How often to look whether the socket is still there, on a host that has no watches left.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Listens on a socket until a signal says to stop or someone removes the socket, which is another way to say it.
pub fn listen_until_stopped(path: &Path) -> Result<(), String> {
    let stop = signals::stop().map_err(|error| format!("cannot wait for signals: {error}"))?;
    let folder = folder(path);
    fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let removals = watch(folder);
    let socket = Socket::bind(path)?;
    socket
        .serve(&stop, removals.as_ref())
        .map_err(|error| format!("cannot go on with {}: {error}", path.display()))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Watches a folder for files that go; none if the user's watches are used up, which nobody here can change.
fn watch(folder: &Path) -> Option<OwnedFd> {
    use inotify::{CreateFlags, WatchFlags};
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    let gone = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    inotify::add_watch(&watch, folder, gone).ok()?;
    Some(watch)
}

struct Socket {
    path: PathBuf,
    listener: UnixListener,
    /// Device and number of the file, for another process may put its own in its place.
    identity: (u64, u64),
}

impl Socket {
    fn bind(path: &Path) -> Result<Self, String> {
        let problem = |error| format!("cannot listen on {}: {error}", path.display());
        remove_stale(path)?;
        let listener = UnixListener::bind(path).map_err(problem)?;
        listener.set_nonblocking(true).map_err(problem)?;
        let identity = identity(path).map_err(problem)?;
        Ok(Self { path: path.into(), listener, identity })
    }

    fn is_there(&self) -> bool {
        identity(&self.path).is_ok_and(|identity| identity == self.identity)
    }

    fn serve(&self, stop: &OwnedFd, removals: Option<&OwnedFd>) -> io::Result<()> {
        let timeout = if removals.is_some() { None } else { Some(&LOOK_AGAIN) };
        while self.is_there() {
            let mut sources =
                vec![PollFd::new(stop, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
            sources.extend(removals.map(|removals| PollFd::new(removals, PollFlags::IN)));
            match poll(&mut sources, timeout) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if !sources[0].revents().is_empty() {
                return self.remove();
            }
            self.hang_up_on_all()?;
            if let Some(removals) = removals {
                drain(removals)?;
            }
        }
        eprintln!("container-disk: {} was removed", self.path.display());
        Ok(())
    }

    /// A caller only wants to know who listens; taking its call keeps the queue from filling up.
    fn hang_up_on_all(&self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn remove(&self) -> io::Result<()> {
        if self.is_there() { fs::remove_file(&self.path) } else { Ok(()) }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Removes the socket of a process that ended without doing it, such as this container before it was restarted.
fn remove_stale(path: &Path) -> Result<(), String> {
    let Ok(file) = fs::symlink_metadata(path) else { return Ok(()) };
    if !file.file_type().is_socket() {
        return Err(format!("cannot listen on {}: it is there and is not a socket", path.display()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path)
            .map_err(|error| format!("cannot remove the old {}: {error}", path.display())),
        _ => Err(format!("cannot listen on {}: another process does", path.display())),
    }
}

fn drain(watch: &OwnedFd) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 1024];
    loop {
        match rustix::io::read(watch, &mut buffer) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
