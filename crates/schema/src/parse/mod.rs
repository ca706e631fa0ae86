//! Reading an `openAPIV3Schema` into a [`Schema`].

mod checks;
mod read;
mod structural;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::checks::Checks;
use crate::node::{Additional, ListType, MapType, Node, Rule, Schema, Type};
use crate::path::{Path, Trail};

/// Schemas nested deeper than this (in steps of their own JSON) are refused.
const MAX_STEPS: usize = 200;

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("schema{}{path}: {reason}", if path.is_root() { "" } else { " at " })]
pub struct SchemaError {
    /// Where in the schema, as `properties.spec.type`.
    pub path: Path,
    /// What is wrong there.
    pub reason: String,
}

type Result<T> = std::result::Result<T, SchemaError>;

fn refuse<T>(at: &Trail, reason: impl Into<String>) -> Result<T> {
    Err(SchemaError { path: at.path(), reason: reason.into() })
}

impl Schema {
    /// Reads the `openAPIV3Schema` of a custom resource version.
    ///
    /// The schema must be structural, as the Kubernetes API server demands: types and extensions
    /// only outside `allOf`, `anyOf`, `oneOf` and `not`, everything named inside those also named
    /// outside, and defaults that fit their own schema. Unknown keywords and patterns that do not
    /// compile are refused too.
    pub fn parse(schema: &Value) -> std::result::Result<Self, SchemaError> {
        let mut root = node(schema, &Trail::ROOT)?;
        structural::check_root(&root)?;
        structural::check(&root, true, &Trail::ROOT)?;
        root.embedded = true;
        structural::check_defaults(&root, &Trail::ROOT)?;
        Ok(Self { root })
    }
}

fn node(schema: &Value, at: &Trail) -> Result<Node> {
    if at.depth() > MAX_STEPS {
        return refuse(at, "is nested too deeply");
    }
    let keywords = read::object(schema, at)?;
    let mut node = Node { kind: kind(schema, at)?, ..Node::default() };
    let mut checks = Checks::default();
    let mut checked = false;
    let mut map_keys = Vec::new();
    for (keyword, value) in keywords {
        let at = at.missing(keyword);
        match keyword.as_str() {
            "type" | "description" | "title" | "example" | "externalDocs" => {}
            "x-kubernetes-int-or-string" => {
                read::boolean(value, &at)?;
            }
            "nullable" => node.nullable = read::boolean(value, &at)?,
            "default" => node.default = Some(read::any(value, &at)?).filter(|v| !v.is_null()),
            "properties" => node.properties = properties(value, &at, self::node)?,
            "items" => node.items = Some(Box::new(self::node(value, &at)?)),
            "additionalProperties" => node.additional = additional(value, &at)?,
            "x-kubernetes-preserve-unknown-fields" => {
                node.preserve_unknown = read::boolean(value, &at)?;
                if !node.preserve_unknown {
                    return refuse(&at, "must be true or left out");
                }
            }
            "x-kubernetes-embedded-resource" => node.embedded = read::boolean(value, &at)?,
            "x-kubernetes-list-type" => node.list_type = list_type(value, &at)?,
            "x-kubernetes-list-map-keys" => map_keys = read::strings(value, &at)?,
            "x-kubernetes-map-type" => node.map_type = map_type(value, &at)?,
            "x-kubernetes-validations" => node.rules = rules(value, &at)?,
            _ => {
                checks::keyword(&mut checks, node.kind, keyword, value, &at)?;
                checked = true;
            }
        }
    }
    structural::check_list_type(schema, &node, &map_keys, at)?;
    if let ListType::Map(keys) = &mut node.list_type {
        *keys = map_keys;
    }
    node.checks = checked.then(|| Box::new(checks));
    Ok(node)
}

fn kind(schema: &Value, at: &Trail) -> Result<Option<Type>> {
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return Ok(Some(Type::IntOrString));
    }
    let Some(name) = schema.get("type") else {
        return Ok(None);
    };
    match name.as_str() {
        Some("object") => Ok(Some(Type::Object)),
        Some("array") => Ok(Some(Type::Array)),
        Some("string") => Ok(Some(Type::String)),
        Some("integer") => Ok(Some(Type::Integer)),
        Some("number") => Ok(Some(Type::Number)),
        Some("boolean") => Ok(Some(Type::Boolean)),
        _ => refuse(&at.missing("type"), format!("{name} is not a type")),
    }
}

/// Reads a map of named schemas with the reader for their kind.
fn properties<T>(
    value: &Value,
    at: &Trail,
    read_one: impl Fn(&Value, &Trail) -> Result<T>,
) -> Result<BTreeMap<Box<str>, T>> {
    read::object(value, at)?
        .iter()
        .map(|(name, schema)| Ok((name.as_str().into(), read_one(schema, &at.missing(name))?)))
        .collect()
}

fn additional(value: &Value, at: &Trail) -> Result<Additional> {
    Ok(match value {
        Value::Bool(true) => Additional::Any,
        Value::Bool(false) => Additional::Nothing,
        schema => Additional::Values(Box::new(node(schema, at)?)),
    })
}

fn list_type(value: &Value, at: &Trail) -> Result<ListType> {
    match value.as_str() {
        Some("atomic") => Ok(ListType::Atomic),
        Some("set") => Ok(ListType::Set),
        Some("map") => Ok(ListType::Map(Vec::new())),
        _ => refuse(at, "must be atomic, set or map"),
    }
}

fn map_type(value: &Value, at: &Trail) -> Result<MapType> {
    match value.as_str() {
        Some("granular") => Ok(MapType::Granular),
        Some("atomic") => Ok(MapType::Atomic),
        _ => refuse(at, "must be granular or atomic"),
    }
}

fn rules(value: &Value, at: &Trail) -> Result<Vec<Rule>> {
    let mut rules = Vec::new();
    for (i, value) in read::list(value, at)?.iter().enumerate() {
        let at = at.index(i);
        let mut rule = Rule::default();
        for (keyword, value) in read::object(value, &at)? {
            let at = at.missing(keyword);
            match keyword.as_str() {
                "rule" => rule.rule = read::string(value, &at)?.to_owned(),
                "message" => rule.message = Some(read::string(value, &at)?.to_owned()),
                "messageExpression" => {
                    rule.message_expression = Some(read::string(value, &at)?.to_owned());
                }
                "reason" => rule.reason = Some(read::string(value, &at)?.to_owned()),
                "fieldPath" => rule.field_path = Some(read::string(value, &at)?.to_owned()),
                "optionalOldSelf" => rule.optional_old_self = read::boolean(value, &at)?,
                _ => return refuse(&at, "is not a keyword of a rule"),
            }
        }
        if rule.rule.trim().is_empty() {
            return refuse(&at.missing("rule"), "must not be empty");
        }
        rules.push(rule);
    }
    Ok(rules)
}

#[cfg(test)]
mod tests;
