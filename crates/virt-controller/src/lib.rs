//! Makes instances of machines, and pods of instances.

pub mod context;
pub mod node;
pub mod vmi;
