//! What virt-handler does to a real cluster.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod instances;
mod node;
