//! Looks after the instances of a node.

mod container_disks;
mod hotplug;
mod isolation;
mod network;
mod permissions;
pub mod prepare;
mod volumes;
