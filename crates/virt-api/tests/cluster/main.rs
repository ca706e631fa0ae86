//! virt-api's webhooks on a real API server.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod certificates;
mod evictions;
mod fixture;
mod hooks;
mod server;
mod verdicts;
