//! One QEMU process: start it, speak with its monitor, move it elsewhere.
//!
//! [`Process`] starts QEMU and notices its end. [`Machine`] is what one does to a running QEMU, over [`qmp`].
//! [`migration`] moves it to another QEMU.
//!
//! Nothing here polls while nothing happens, and every request has a deadline.

mod lines;
pub mod machine;
pub mod migration;
pub mod process;
pub mod qmp;
mod race;

pub use machine::Machine;
pub use process::Process;
pub use qmp::Qmp;
