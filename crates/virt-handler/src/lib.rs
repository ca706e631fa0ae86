//! Looks after the instances of a node.

mod container_disks;
pub mod domains;
mod hotplug;
mod isolation;
pub mod launchers;
mod network;
mod permissions;
pub mod prepare;
#[cfg(test)]
mod testing;
pub mod vmi;
mod volumes;
