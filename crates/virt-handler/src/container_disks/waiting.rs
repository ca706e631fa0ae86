//! Waits for files to appear in a folder without looking at it all the time.

use std::io;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use kubevirt_host::inside::Inside;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

/// How often to look on a host that has no watches left.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Waits until all names are there, or for so long. Whoever comes next finds out what is still missing.
pub fn until_there(folder: &Inside, names: &[&str], patience: Duration) -> io::Result<()> {
    let missing = || names.iter().any(|name| folder.beneath(name).is_err());
    if !missing() {
        return Ok(());
    }
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok().filter(|watch| {
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        inotify::add_watch(watch, folder.path(), flags).is_ok()
    });
    let end = Instant::now() + patience;
    while missing() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let Some(watch) = &watch else {
            std::thread::sleep(left.min(LOOK_AGAIN));
            continue;
        };
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(watch, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut events = [MaybeUninit::uninit(); 1024];
        while rustix::io::read(watch, &mut events).is_ok_and(|(read, _)| !read.is_empty()) {}
    }
    Ok(())
}
