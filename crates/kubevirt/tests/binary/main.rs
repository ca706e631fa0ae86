//! The binary as users, pipelines and pods call it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod admit;
mod install_manifests;
mod launcher;
mod metrics;
mod programs;
mod render;

/// The binary under test.
const BINARY: &str = env!("CARGO_BIN_EXE_kubevirt");
