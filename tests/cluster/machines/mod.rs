//! Virtual machines on a cluster with our system: from a manifest to a guest, and what becomes of both.

mod chaos;
mod ends;
mod gates;
mod guest;
mod hotplug;
mod key;
mod leftovers;
mod manifest;
mod memory;
mod network;
mod node_loss;
mod probes;
mod run_strategies;
mod seed;
mod sets;
mod soak;
mod storage;
mod volumes;
