//! Makes instances of machines, and pods of instances.

pub mod context;
pub mod vm;
pub mod vmi;
