//! A file that becomes readable when the program is told to stop.
#![expect(unsafe_code, reason = "the standard library has no signals")]

use std::io::{Error, Result};
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

/// Takes `SIGTERM` and `SIGINT` out of their usual way, which for the first process of a container is to be ignored.
pub fn stop() -> Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` fills the set before anything reads it, and all calls only use it while they run.
    let fd = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
        if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) != 0 {
            return Err(Error::last_os_error());
        }
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC)
    };
    if fd < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the file was just opened, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
