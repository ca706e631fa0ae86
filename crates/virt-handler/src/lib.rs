//! Looks after the instances of a node.

pub mod devices;
