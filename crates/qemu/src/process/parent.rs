//! QEMU does not outlive us, however we end.

#![expect(
    unsafe_code,
    reason = "only the child itself, between fork and exec, can say what our end means to it"
)]

use std::io;

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use tokio::process::Command;

/// Has the system kill the child when the thread that starts it ends. In a pod its first process takes all others with
/// it anyway; elsewhere nobody would ever end a QEMU whose launcher was killed.
pub(super) fn die_with_us(command: &mut Command) {
    let us = getpid();
    let last_will = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // We may have ended before the system knew what to do then.
        if getppid() == Some(us) { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
    };
    // SAFETY: the closure makes system calls only and takes no memory and no lock, as is required after a fork.
    unsafe { command.pre_exec(last_will) };
}
