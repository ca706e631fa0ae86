//! Seeing that something happens to a file, or that it comes into being.

use std::fs;
use std::io::{self, PipeReader};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

/// How often to look where the system tells nothing: a user may have only so many watches.
const LOOK: Duration = Duration::from_secs(1);

/// A watch on a path, whether there is a file or not.
#[derive(Debug)]
pub(super) struct Watch {
    path: PathBuf,
    /// None if the user has too many already.
    inotify: Option<OwnedFd>,
    folder: Option<i32>,
    file: Option<i32>,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// Something may be different.
    Changed,
    /// There is room in the output.
    Room,
    /// It is time to end.
    Stop,
    /// Nothing until the time was over.
    Nothing,
}

impl Watch {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let inotify = match inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) {
            Ok(inotify) => Some(inotify),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOSYS) => None,
            Err(error) => return Err(error.into()),
        };
        let path = std::path::absolute(path)?;
        let mut watch = Self { path, inotify, folder: None, file: None };
        watch.renew()?;
        Ok(watch)
    }

    /// Forgets what happened and sees to it that all that follows is seen: who looks at the file only after this
    /// misses nothing.
    pub(super) fn renew(&mut self) -> io::Result<()> {
        let Some(inotify) = self.inotify.as_ref().map(AsFd::as_fd) else { return Ok(()) };
        forget(inotify)?;
        let changes = WatchFlags::MODIFY | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
        let folder = watch_folder(inotify, &self.path);
        let file = folder.and_then(|folder| {
            replace(inotify, &mut self.folder, folder);
            inotify::add_watch(inotify, &self.path, changes)
        });
        match file {
            Ok(file) => replace(inotify, &mut self.file, file),
            // Whoever has the old file open may still write to it.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            // Too many watches, or a folder that may be entered but not read.
            Err(Errno::NOSPC | Errno::ACCESS) => self.inotify = None,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Waits for a change of the file or for the end.
    pub(super) fn changed(&self, stop: &PipeReader) -> io::Result<Happened> {
        self.wait(&[(stop.as_fd(), PollFlags::IN, Happened::Stop)])
    }

    /// Waits for a change of the file or for room in an output.
    pub(super) fn room(&self, output: BorrowedFd<'_>) -> io::Result<Happened> {
        self.wait(&[(output, PollFlags::OUT, Happened::Room)])
    }

    fn wait(&self, others: &[(BorrowedFd<'_>, PollFlags, Happened)]) -> io::Result<Happened> {
        let Some(inotify) = &self.inotify else {
            let happened = first(others, Some(LOOK))?;
            return Ok(if happened == Happened::Nothing { Happened::Changed } else { happened });
        };
        let mut all = others.to_vec();
        all.push((inotify.as_fd(), PollFlags::IN, Happened::Changed));
        first(&all, None)
    }
}

/// Waits for the end, but only so long: what comes in many small pieces is better taken in a few larger ones.
pub(super) fn rest(stop: &PipeReader, time: Duration) -> io::Result<Happened> {
    first(&[(stop.as_fd(), PollFlags::IN, Happened::Stop)], Some(time))
}

/// Whether there is room in an output now.
pub(super) fn has_room(output: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(first(&[(output, PollFlags::OUT, Happened::Room)], Some(Duration::ZERO))? == Happened::Room)
}

/// The first of all that happens.
fn first(all: &[(BorrowedFd<'_>, PollFlags, Happened)], time: Option<Duration>) -> io::Result<Happened> {
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    let mut fds: Vec<PollFd<'_>> =
        all.iter().map(|(fd, flags, _)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
    loop {
        match poll(&mut fds, time.as_ref()) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let happened = fds.iter().zip(all).find(|(fd, _)| !fd.revents().is_empty());
    Ok(happened.map_or(Happened::Nothing, |(_, (_, _, what))| *what))
}

/// Takes all that is there to be told.
fn forget(inotify: BorrowedFd<'_>) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(inotify, &mut buffer);
    loop {
        match reader.next() {
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Watches the folder of a path, or the nearest that there is.
fn watch_folder(inotify: BorrowedFd<'_>, path: &Path) -> Result<i32, Errno> {
    let news = WatchFlags::CREATE
        | WatchFlags::MOVED_TO
        | WatchFlags::MOVE_SELF
        | WatchFlags::DELETE_SELF
        | WatchFlags::ONLYDIR;
    loop {
        let folder = nearest(path);
        match inotify::add_watch(inotify, folder, news) {
            // The next folder may have come just before we began to watch for it.
            Ok(watch) if nearest(path) == folder => return Ok(watch),
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The nearest folder above a path that there is.
fn nearest(path: &Path) -> &Path {
    let mut above = path.ancestors().skip(1);
    above.find(|folder| fs::metadata(folder).is_ok_and(|told| told.is_dir())).unwrap_or(Path::new("/"))
}

/// Lets go of a watch that another took the place of.
fn replace(inotify: BorrowedFd<'_>, old: &mut Option<i32>, new: i32) {
    if let Some(old) = old.replace(new).filter(|old| *old != new) {
        // The system has done so itself where the file is gone.
        let _ = inotify::remove_watch(inotify, old);
    }
}
