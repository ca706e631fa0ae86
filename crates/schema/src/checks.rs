//! Value validation: what a schema demands of a value beyond its type.

use std::collections::BTreeMap;

use regex_lite::Regex;
use serde_json::{Number, Value};

use crate::format::Format;

/// The demands of one schema on one value. Each applies only to the values it is about: lengths
/// to strings, bounds to numbers, and so on.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) allowed: Vec<Value>,
    pub(crate) format: Option<Format>,
    pub(crate) pattern: Option<Regex>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) minimum: Option<Number>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<Number>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<Number>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) required: Vec<Box<str>>,
    pub(crate) all_of: Vec<Nested>,
    pub(crate) any_of: Vec<Nested>,
    pub(crate) one_of: Vec<Nested>,
    pub(crate) not: Option<Box<Nested>>,
}

/// A schema inside `allOf`, `anyOf`, `oneOf` or `not`: it judges values that the structural part
/// of the schema has already described, so it has no types, defaults or extensions.
#[derive(Debug, Default)]
pub(crate) struct Nested {
    pub(crate) checks: Checks,
    pub(crate) properties: BTreeMap<Box<str>, Nested>,
    pub(crate) items: Option<Box<Nested>>,
}
