//! Structural schemas: validate, default and prune raw JSON the way the Kubernetes API server
//! treats custom resources.
//!
//! Everything here is pure. For a new object the order is [`parse_strict`], [`prune`],
//! [`drop_nulls`], [`apply_defaults`], [`normalize_numbers`], [`validate`]; each also makes sense alone.
//!
//! Left to the caller:
//! - Rules in CEL (`x-kubernetes-validations`) are kept but not evaluated, see [`Schema::rules`].
//! - The syntax of names, labels and annotations is not checked, only their types.
//!
//! Stricter than the API server, on purpose: a list is never taken for a string, which the API server
//! does where the string has a format.

mod checks;
mod defaults;
mod depth;
mod format;
mod mend;
mod node;
mod nulls;
mod numbers;
mod object_meta;
mod parse;
mod path;
mod problem;
mod strict;
mod unknown;
mod validate;

pub use defaults::apply_defaults;
pub use depth::MAX_DEPTH;
pub use mend::mend;
pub use node::{Additional, ListType, MapType, Node, Rule, Schema, Type};
pub use nulls::drop_nulls;
pub use numbers::normalize_numbers;
pub use parse::SchemaError;
pub use path::{Path, Segment};
pub use problem::{Found, Problem, ProblemKind};
pub use strict::{ParseError, parse_strict, parse_strict_without};
pub use unknown::{prune, unknown_fields};
pub use validate::validate;
