//! One QEMU process: start it, speak with its monitor and its guest's agent, move it elsewhere.
//!
//! [`Process`] starts QEMU and notices its end. [`Machine`] is what one does to a running QEMU, over [`qmp`].
//! [`migration`] moves it to another QEMU. [`agent`] speaks with the guest itself.
//!
//! Nothing here polls while nothing happens, and every request has a deadline.

pub mod agent;
mod lines;
pub mod machine;
pub mod migration;
pub mod process;
pub mod qmp;
mod race;

pub use agent::Agent;
pub use machine::Machine;
pub use process::Process;
pub use qmp::Qmp;
