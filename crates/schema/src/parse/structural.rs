//! What makes a schema structural, beyond each keyword being well formed.

use serde_json::Value;

use super::{Result, refuse};
use crate::checks::{Checks, Nested};
use crate::node::{Additional, ListType, Node, Type};
use crate::path::Trail;
use crate::unknown::unknown_below;
use crate::validate::first_problem;

pub(super) fn check_root(root: &Node) -> Result<()> {
    let at = Trail::ROOT;
    if root.kind != Some(Type::Object) {
        return refuse(&at.missing("type"), "must be object at the root");
    }
    if root.nullable {
        return refuse(&at.missing("nullable"), "must not be used at the root");
    }
    if !matches!(root.additional, Additional::Unknown) {
        return refuse(&at.missing("additionalProperties"), "must not be used at the root");
    }
    if let Some(metadata) = root.properties.get("metadata") {
        let known = ["name", "generateName"];
        if metadata.properties.keys().any(|k| !known.contains(&&**k)) {
            return refuse(
                &at.missing("properties").missing("metadata"),
                "may only restrict name and generateName",
            );
        }
    }
    Ok(())
}

/// Checks a node and all below it.
pub(super) fn check(node: &Node, root: bool, at: &Trail) -> Result<()> {
    let typed = node.kind.is_some();
    if !typed && !node.preserve_unknown {
        return refuse(&at.missing("type"), "is missing");
    }
    if node.kind == Some(Type::Array) && node.items.is_none() {
        return refuse(&at.missing("items"), "is missing");
    }
    if node.kind == Some(Type::IntOrString) && (node.preserve_unknown || node.embedded) {
        return refuse(at, "int-or-string can be neither an object nor a resource");
    }
    let named = !node.properties.is_empty();
    if named && matches!(node.additional, Additional::Values(_) | Additional::Nothing) {
        return refuse(&at.missing("additionalProperties"), "cannot be together with properties");
    }
    if node.embedded {
        check_embedded(node, at)?;
    }
    if node.embedded || root {
        check_type_meta(node, at)?;
    }
    if let Some(checks) = &node.checks {
        complete(checks, node, at)?;
    }
    let properties = at.missing("properties");
    for (name, property) in &node.properties {
        check(property, false, &properties.missing(name))?;
    }
    if let Some(items) = &node.items {
        check(items, false, &at.missing("items"))?;
    }
    match node.additional.schema() {
        Some(values) => check(values, false, &at.missing("additionalProperties")),
        None => Ok(()),
    }
}

fn check_embedded(node: &Node, at: &Trail) -> Result<()> {
    if node.kind != Some(Type::Object) {
        return refuse(&at.missing("type"), "must be object for a resource");
    }
    if !matches!(node.additional, Additional::Unknown) {
        return refuse(&at.missing("additionalProperties"), "must not be used for a resource");
    }
    if node.properties.is_empty() && !node.preserve_unknown {
        return refuse(&at.missing("properties"), "is missing");
    }
    Ok(())
}

fn check_type_meta(node: &Node, at: &Trail) -> Result<()> {
    for (name, kind, word) in [
        ("apiVersion", Type::String, "string"),
        ("kind", Type::String, "string"),
        ("metadata", Type::Object, "object"),
    ] {
        let declared = node.properties.get(name);
        if declared.is_some_and(|property| property.kind != Some(kind)) {
            let properties = at.missing("properties");
            let property = properties.missing(name);
            return refuse(&property.missing("type"), format!("must be {word}"));
        }
    }
    Ok(())
}

pub(super) fn check_list_type(schema: &Value, node: &Node, keys: &[Box<str>], at: &Trail) -> Result<()> {
    for (keyword, kind, word) in
        [("x-kubernetes-list-type", Type::Array, "array"), ("x-kubernetes-map-type", Type::Object, "object")]
    {
        if schema.get(keyword).is_some() && node.kind != Some(kind) {
            return refuse(&at.missing(keyword), format!("needs the type {word}"));
        }
    }
    let at_keys = at.missing("x-kubernetes-list-map-keys");
    if !matches!(node.list_type, ListType::Map(_)) {
        return match keys {
            [] => Ok(()),
            _ => refuse(&at_keys, "needs x-kubernetes-list-type to be map"),
        };
    }
    if keys.is_empty() {
        return refuse(&at_keys, "must not be empty");
    }
    let Some(items) = node.items.as_deref().filter(|i| i.kind == Some(Type::Object)) else {
        return refuse(&at.missing("items"), "must be objects in a keyed list");
    };
    for (i, key) in keys.iter().enumerate() {
        let property = items.properties.get(key).and_then(|property| property.kind);
        if matches!(property, None | Some(Type::Object | Type::Array)) {
            return refuse(&at_keys.index(i), "must name a scalar property of the items");
        }
    }
    Ok(())
}

/// Everything that nested schemas name must be described by the structural part.
fn complete(checks: &Checks, node: &Node, at: &Trail) -> Result<()> {
    for (junctor, schemas) in
        [("allOf", &checks.all_of), ("anyOf", &checks.any_of), ("oneOf", &checks.one_of)]
    {
        for (i, nested) in schemas.iter().enumerate() {
            complete_nested(nested, node, &at.missing(junctor).index(i))?;
        }
    }
    match &checks.not {
        Some(nested) => complete_nested(nested, node, &at.missing("not")),
        None => Ok(()),
    }
}

fn complete_nested(nested: &Nested, node: &Node, at: &Trail) -> Result<()> {
    complete(&nested.checks, node, at)?;
    if let Some(items) = &nested.items {
        let at = at.missing("items");
        match &node.items {
            Some(node) => complete_nested(items, node, &at)?,
            None => return refuse(&at, "is not described outside of it"),
        }
    }
    let properties = at.missing("properties");
    for (name, nested) in &nested.properties {
        let at = properties.missing(name);
        match node.properties.get(name) {
            Some(node) => complete_nested(nested, node, &at)?,
            None => return refuse(&at, "is not described outside of it"),
        }
    }
    Ok(())
}

/// Every default must be a value that its own schema accepts and knows all of. As in the API server,
/// those inside `additionalProperties` go unchecked.
pub(super) fn check_defaults(node: &Node, at: &Trail) -> Result<()> {
    if let Some(default) = &node.default {
        let at = at.missing("default");
        if let Some(path) = unknown_below(node, default).first() {
            return refuse(&at, format!("has an unknown field {path}"));
        }
        if let Some(problem) = first_problem(node, default) {
            return refuse(&at, problem.to_string());
        }
    }
    let properties = at.missing("properties");
    for (name, property) in &node.properties {
        check_defaults(property, &properties.missing(name))?;
    }
    match &node.items {
        Some(items) => check_defaults(items, &at.missing("items")),
        None => Ok(()),
    }
}
