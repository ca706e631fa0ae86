//! Virtual machines on a cluster with our system: from a manifest to a guest, and what becomes of both.

mod chaos;
mod deletion;
mod disks;
mod downward_metrics;
mod ends;
mod events;
pub mod gates;
pub mod guest;
mod hotplug;
pub mod key;
mod leftovers;
pub mod manifest;
mod memory;
mod network;
mod node_loss;
mod orphans;
mod probes;
mod run_strategies;
mod seed;
mod sets;
mod soak;
pub mod storage;
mod trouble;
mod volumes;
mod writers;
