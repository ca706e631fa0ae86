//! A small Linux guest: what can only be seen with somebody at home.
#![expect(clippy::unwrap_used, reason = "a test may end that way")]

mod agent;
mod devices;
mod guest;
