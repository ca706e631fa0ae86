//! Launchers with a real QEMU.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod handler;
#[path = "../../../qemu/tests/guest/initramfs.rs"]
mod initramfs;
mod migration;
mod node;
mod proxy;
