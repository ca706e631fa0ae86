//! Images made here, as QEMU's and libarchive's programs see them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod creation;
mod folder;
mod isos;
mod metrics;
mod probing;
mod programs;
