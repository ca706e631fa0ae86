//! Makes instances of machines, and pods of instances.

pub mod context;
pub mod node;
mod owned;
pub mod pool;
pub mod replica_set;
pub mod vm;
pub mod vmi;
