//! The one system call that makes a thread run before all others.
#![expect(unsafe_code, reason = "rustix has no sched_setscheduler")]

use std::io;

/// Gives a thread a place in the first-come-first-served real-time queue.
pub fn first_in_first_out(thread: i32, priority: i32) -> io::Result<()> {
    // SAFETY: all bits of the structure may be zero; on some systems it has fields that are not used here.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the structure outlives the call, which only reads it.
    let result = unsafe { libc::sched_setscheduler(thread, libc::SCHED_FIFO, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
