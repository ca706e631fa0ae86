//! In which fields two domains differ.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::domain::Domain;

/// Paths of all fields that differ, such as `disks.root.serial`.
///
/// It looks at all there is, so a field that is added to the domain is compared from its first day.
pub(super) fn between(one: &Domain, other: &Domain) -> Vec<String> {
    let mut paths = Vec::new();
    let tree = |domain| serde_json::to_value(domain).unwrap_or_default();
    walk("", &tree(one), &tree(other), &mut paths);
    paths
}

fn walk(path: &str, one: &Value, other: &Value, paths: &mut Vec<String>) {
    if one == other {
        return;
    }
    match (fields(one), fields(other)) {
        (Some(one), Some(other)) if !is_choice(&one, &other) => {
            let keys: BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let value = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                walk(&path, &value(&one), &value(&other), paths);
            }
        }
        _ => paths.push(path.to_owned()),
    }
}

/// An object's fields, or a list's elements by their names.
fn fields(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map.clone()),
        Value::Array(list) => {
            let named = |item: &Value| Some((item.get("name")?.as_str()?.to_owned(), item.clone()));
            list.iter().map(named).collect()
        }
        _ => None,
    }
}

/// Whether these are two different variants of an enum, which differ as a whole.
fn is_choice(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.len() == 1 && other.len() == 1 && one.keys().next() != other.keys().next()
}
