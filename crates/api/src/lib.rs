//! The types users write, their CRDs, names and quantities.
//!
//! A type here accepts whatever the CRD's schema accepts: a closed set of words is an enum with a
//! catch-all that keeps the text, so that admission can answer every bad value at once, by its path.

pub mod backup;
pub mod clone;
pub mod condition;
pub mod crd;
pub mod data_volume;
pub mod duration;
pub mod export;
pub mod instancetype;
mod kind;
pub mod kubevirt;
pub mod migration;
pub mod migration_policy;
pub mod names;
mod null;
mod open_enum;
pub mod plugin;
pub mod pool;
pub mod preference;
pub mod preset;
pub mod quantity;
pub mod replica_set;
pub mod restore;
pub mod snapshot;
pub mod template;
pub mod version;
pub mod vm;
pub mod vmi;

pub use kube::core::DeserializeGuard;
