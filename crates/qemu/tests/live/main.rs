//! Everything against a real QEMU, emulated, each test with a QEMU of its own and an end in sight.
#![expect(clippy::unwrap_used, reason = "a test may end that way")]

mod common;
mod devices;
mod disks;
mod display;
mod host;
mod jobs;
mod migration;
mod power;
mod process;
