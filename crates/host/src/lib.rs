//! What a launcher asks of the machine it runs on, and does to its processes. Knows nothing of Kubernetes.
//!
//! Each module reads one thing. What it reads is turned into plain types by a function of the text alone.

pub mod cgroup;
pub mod code;
pub mod cpus;
pub mod device;
pub mod device_rules;
pub mod files;
pub mod inside;
pub mod kvm;
pub mod locking;
pub mod memory;
pub mod mounts;
pub mod numa;
pub mod orphans;
pub mod process;
mod read;
mod realtime;
pub mod storage;
#[cfg(test)]
mod testing;
pub mod threads;

pub use read::ReadError;
