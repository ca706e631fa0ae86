//! Launchers with a real QEMU.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod handler;
mod migration;
mod node;
mod proxy;
