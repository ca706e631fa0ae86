//! Readers for the values of keywords, each refusing what does not fit.

use serde_json::{Map, Number, Value};

use super::{Result, refuse};
use crate::depth;
use crate::path::Trail;

pub(super) fn object<'v>(value: &'v Value, at: &Trail) -> Result<&'v Map<String, Value>> {
    match value {
        Value::Object(map) => Ok(map),
        _ => refuse(at, "must be an object"),
    }
}

pub(super) fn list<'v>(value: &'v Value, at: &Trail) -> Result<&'v [Value]> {
    match value {
        Value::Array(list) => Ok(list),
        _ => refuse(at, "must be a list"),
    }
}

pub(super) fn string<'v>(value: &'v Value, at: &Trail) -> Result<&'v str> {
    match value {
        Value::String(text) => Ok(text),
        _ => refuse(at, "must be a string"),
    }
}

pub(super) fn strings(value: &Value, at: &Trail) -> Result<Vec<Box<str>>> {
    list(value, at)?.iter().enumerate().map(|(i, item)| string(item, &at.index(i)).map(Box::from)).collect()
}

pub(super) fn boolean(value: &Value, at: &Trail) -> Result<bool> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        _ => refuse(at, "must be true or false"),
    }
}

pub(super) fn number(value: &Value, at: &Trail) -> Result<Number> {
    match value {
        Value::Number(number) => Ok(number.clone()),
        _ => refuse(at, "must be a number"),
    }
}

pub(super) fn count(value: &Value, at: &Trail) -> Result<u64> {
    match value.as_u64() {
        Some(count) => Ok(count),
        None => refuse(at, "must be a whole number that is not negative"),
    }
}

/// Any value, kept as it is.
pub(super) fn any(value: &Value, at: &Trail) -> Result<Value> {
    match depth::too_deep(value) {
        Some(_) => refuse(at, "is nested too deeply"),
        None => Ok(value.clone()),
    }
}
