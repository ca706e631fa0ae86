//! Runs one virtual machine: the program of every VM's pod.
//!
//! A handler asks for the machine over a socket ([`server`]) and is told what becomes of it ([`notify`]). In
//! between, [`Launcher`] starts QEMU, follows it and does to it what is asked.

mod agent;
pub mod arguments;
mod backup;
mod board;
mod dump;
mod error;
mod guest;
mod host;
mod launcher;
mod lifecycle;
mod live;
mod migration;
mod notify;
mod power;
pub mod programs;
mod query;
mod run;
mod running;
mod security;
mod server;
mod start;
mod stats;
#[cfg(test)]
mod tests;
pub mod volumes;
mod watch;

pub use arguments::Arguments;
pub use error::CommandError;
pub use launcher::Launcher;
pub use run::run;
