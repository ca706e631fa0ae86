//! Reading value validation and the schemas nested in it.

use regex_lite::Regex;
use serde_json::{Value, json};

use super::{MAX_STEPS, Result, properties, read, refuse};
use crate::checks::{Checks, Nested};
use crate::format::Format;
use crate::node::Type;
use crate::path::Trail;

/// Reads one keyword of value validation; any other is unknown.
pub(super) fn keyword(
    checks: &mut Checks,
    kind: Option<Type>,
    keyword: &str,
    value: &Value,
    at: &Trail,
) -> Result<()> {
    match keyword {
        "enum" => checks.allowed = allowed(value, at)?,
        "format" => checks.format = Format::named(read::string(value, at)?, kind),
        "pattern" => checks.pattern = pattern(value, at)?,
        "minLength" => checks.min_length = Some(read::count(value, at)?),
        "maxLength" => checks.max_length = Some(read::count(value, at)?),
        "minimum" => checks.minimum = Some(read::number(value, at)?),
        "exclusiveMinimum" => checks.exclusive_minimum = read::boolean(value, at)?,
        "maximum" => checks.maximum = Some(read::number(value, at)?),
        "exclusiveMaximum" => checks.exclusive_maximum = read::boolean(value, at)?,
        "multipleOf" => {
            let factor = read::number(value, at)?;
            if factor.as_f64().is_none_or(|factor| factor <= 0.0) {
                return refuse(at, "must be greater than zero");
            }
            checks.multiple_of = Some(factor);
        }
        "minItems" => checks.min_items = Some(read::count(value, at)?),
        "maxItems" => checks.max_items = Some(read::count(value, at)?),
        "uniqueItems" => checks.unique_items = read::boolean(value, at)?,
        "minProperties" => checks.min_properties = Some(read::count(value, at)?),
        "maxProperties" => checks.max_properties = Some(read::count(value, at)?),
        "required" => checks.required = read::strings(value, at)?,
        "allOf" => checks.all_of = junctor(value, kind, at)?,
        "anyOf" if kind == Some(Type::IntOrString) && says_int_or_string(value) => {}
        "anyOf" => checks.any_of = junctor(value, kind, at)?,
        "oneOf" => checks.one_of = junctor(value, None, at)?,
        "not" => checks.not = Some(Box::new(nested(value, None, at)?)),
        _ => return refuse(at, "is not a keyword of a structural schema"),
    }
    Ok(())
}

fn allowed(value: &Value, at: &Trail) -> Result<Vec<Value>> {
    read::list(value, at)?.iter().enumerate().map(|(i, value)| read::any(value, &at.index(i))).collect()
}

fn pattern(value: &Value, at: &Trail) -> Result<Option<Regex>> {
    match read::string(value, at)? {
        "" => Ok(None),
        pattern => match Regex::new(pattern) {
            Ok(regex) => Ok(Some(regex)),
            Err(error) => refuse(at, format!("does not compile: {error}")),
        },
    }
}

/// The one place where a nested schema may name types: it repeats what
/// `x-kubernetes-int-or-string` says, so the type check covers it.
fn says_int_or_string(value: &Value) -> bool {
    *value == json!([{"type": "integer"}, {"type": "string"}])
}

fn junctor(value: &Value, kind: Option<Type>, at: &Trail) -> Result<Vec<Nested>> {
    read::list(value, at)?
        .iter()
        .enumerate()
        .map(|(i, schema)| {
            let first = if i == 0 { kind } else { None };
            nested(schema, first, &at.index(i))
        })
        .collect()
}

fn nested(schema: &Value, kind: Option<Type>, at: &Trail) -> Result<Nested> {
    if at.depth() > MAX_STEPS {
        return refuse(at, "is nested too deeply");
    }
    let mut nested = Nested::default();
    for (name, value) in read::object(schema, at)? {
        let at = at.missing(name);
        match name.as_str() {
            "properties" => {
                nested.properties = properties(value, &at, |schema, at| self::nested(schema, None, at))?;
                if nested.properties.contains_key("metadata") {
                    return refuse(
                        &at.missing("metadata"),
                        "metadata cannot be judged inside allOf, anyOf, oneOf or not",
                    );
                }
            }
            "items" => nested.items = Some(Box::new(self::nested(value, None, &at)?)),
            "anyOf" if kind == Some(Type::IntOrString) && says_int_or_string(value) => {}
            "type" | "default" | "nullable" | "title" | "description" | "additionalProperties" => {
                return refuse(&at, "must not be inside allOf, anyOf, oneOf or not");
            }
            extension if extension.starts_with("x-kubernetes-") => {
                return refuse(&at, "must not be inside allOf, anyOf, oneOf or not");
            }
            other => keyword(&mut nested.checks, None, other, value, &at)?,
        }
    }
    Ok(nested)
}
