//! Instance types and preferences: found, inferred, checked and expanded.
//!
//! A VM refers to them with `spec.instancetype` and `spec.preference`. Admission infers and checks the references
//! (`mutate`, `check_vm`); the VM controller keeps copies of what they name (`revision`) and applies them to the
//! instances it makes, or to the VM itself where the cluster's policy says so (`expand`).

pub mod apply;
mod check;
pub mod expand;
pub mod find;
pub mod infer;
pub mod mutate;
pub mod policy;
mod reference;
pub mod requirements;
pub mod revision;
pub mod topology;

pub use check::{Checked, check_vm};
pub use reference::{Matcher, Role, Scope};
