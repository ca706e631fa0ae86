//! Both phases in real network namespaces: a pod, the world outside, and a guest at the other end of the tap.
//!
//! The namespaces have no names: they are gone with the test, however it ends.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bridge;
mod dhcp;
mod ground;
mod guest;
mod launcher;
mod masquerade;
mod rules;
