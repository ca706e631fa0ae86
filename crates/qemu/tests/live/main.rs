//! Everything against a real QEMU, emulated, each test with a QEMU of its own and an end in sight.
#![expect(clippy::unwrap_used, reason = "a test may end that way")]

mod common;
mod power;
mod process;
