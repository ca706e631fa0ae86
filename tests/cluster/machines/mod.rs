//! Virtual machines on a cluster with our system: from a manifest to a guest, and what becomes of both.

mod chaos;
mod ends;
pub mod guest;
pub mod key;
mod leftovers;
pub mod manifest;
mod network;
mod run_strategies;
mod seed;
mod sets;
