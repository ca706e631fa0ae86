//! Structural schemas: validate, default and prune raw JSON the way the Kubernetes API server
//! treats custom resources.
//!
//! Rules in CEL (`x-kubernetes-validations`) are kept but not evaluated, see [`Schema::rules`].

mod checks;
mod defaults;
mod depth;
mod format;
mod node;
mod nulls;
mod numbers;
mod object_meta;
mod parse;
mod path;
mod problem;
mod unknown;
mod validate;

pub use defaults::apply_defaults;
pub use depth::MAX_DEPTH;
pub use node::{Additional, ListType, MapType, Node, Rule, Schema, Type};
pub use nulls::drop_nulls;
pub use numbers::normalize_numbers;
pub use parse::SchemaError;
pub use path::{Path, Segment};
pub use problem::{Found, Problem, ProblemKind};
pub use unknown::{prune, unknown_fields};
pub use validate::validate;
