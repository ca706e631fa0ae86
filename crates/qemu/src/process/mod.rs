//! The QEMU process itself: started paused, watched, ended, its last words kept.

mod exit;
mod launch;
mod parent;
pub mod program;
mod tail;
mod watch;

pub use exit::Exit;
pub use launch::{Launch, StartError};
pub use watch::Process;
