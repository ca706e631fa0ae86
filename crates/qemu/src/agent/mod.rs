//! The agent inside of the guest: what it tells of its system, and what it does there for us.

mod accounts;
mod client;
mod error;
mod exec;
mod file;
mod freeze;
mod info;
mod system;
mod wire;

pub use client::{Agent, DEFAULT_PATIENCE};
pub use error::AgentError;
pub use exec::{Exec, ExecStatus};
pub use file::FileHandle;
pub use freeze::FreezeStatus;
pub use info::{Info, OsInfo, SupportedCommand, TimeZone, User};
pub use system::{Address, Disk, Filesystem, Interface};
