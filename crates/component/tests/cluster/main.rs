//! What daemons share, against a real API server.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod configuration;
mod events;
mod flags;
mod leader;
mod watch;
