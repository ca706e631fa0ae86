//! Makes instances of machines, and pods of instances.

mod arguments;
pub mod context;
pub mod metrics;
pub mod node;
mod owned;
pub mod pool;
pub mod replica_set;
mod run;
pub mod vm;
pub mod vmi;

pub use run::run;
