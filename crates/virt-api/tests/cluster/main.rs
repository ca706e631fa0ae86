//! virt-api's webhooks and subresources on a real API server.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod aggregated;
mod certificates;
mod evictions;
mod fixture;
mod hooks;
mod server;
mod subresources;
mod verdicts;
