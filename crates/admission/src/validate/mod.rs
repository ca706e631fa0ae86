//! Validation: everything that is wrong with an object, each problem with its field.
//!
//! One module per kind with `fn check(cx, new, old) -> Problems`; what several kinds share, the specification
//! of an instance above all, is in `vmi_spec`.

pub(crate) mod address;
pub mod backup;
pub mod clone;
pub mod data_volume_template;
pub mod eviction;
pub mod export;
pub mod instancetype;
pub mod kubevirt;
pub(crate) mod labels;
pub mod migration;
pub mod migration_policy;
pub(crate) mod names;
pub mod plugin;
pub mod pool;
pub mod preference;
pub mod preset;
pub mod replica_set;
pub mod restore;
pub mod same;
#[cfg(test)]
mod sentences;
pub mod snapshot;
pub mod status;
pub mod vm;
pub mod vm_storage;
pub mod vmi;
pub mod vmi_spec;
