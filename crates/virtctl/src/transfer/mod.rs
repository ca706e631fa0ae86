//! Large files over HTTP: sent and fetched with retries, a checksum and a view of how far it is.
//!
//! kube's client speaks to the API server only. What is here speaks to the servers of images and exports, which have
//! certificates of their own, break off in the middle, and may be able to go on from there.

pub mod checksum;
pub mod client;
pub mod download;
pub mod progress;
#[cfg(test)]
mod server;
pub mod sink;
mod trust;
pub mod upload;

pub use client::Client;
pub use trust::Trust;
