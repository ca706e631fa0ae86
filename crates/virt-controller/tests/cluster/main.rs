//! Controllers against a real API server: tests play the part of the kubelet and of the node's handler.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod controllers;
mod instances;
mod kubelet;
mod nodes;
mod pools;
mod recovery;
mod replica_sets;
mod vm;
mod writers;
