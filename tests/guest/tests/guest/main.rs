//! The guest in a real QEMU, one at a time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod boot;
mod cloud_init;
mod devices;
mod vm;
