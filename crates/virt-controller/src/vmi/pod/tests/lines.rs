//! An object as lines that can be read and compared: a path and a value each.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

/// The lines of an object. Items of lists are told by their names, lists of words are one line.
pub fn of(object: &impl Serialize) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    collect("", &serde_json::to_value(object).unwrap(), &mut lines);
    lines
}

fn collect(path: &str, value: &Value, lines: &mut BTreeSet<String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, value)| collect(&below(name), value, lines));
        }
        Value::Array(items) if items.iter().all(|item| !item.is_object()) => {
            lines.insert(format!("{path}: {}", words(items)));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let place = key(item).unwrap_or_else(|| index.to_string());
                collect(&format!("{path}[{place}]"), item, lines);
            }
        }
        Value::String(text) => {
            lines.insert(format!("{path}: {text}"));
        }
        other => {
            lines.insert(format!("{path}: {other}"));
        }
    }
}

/// What tells an item from others; a mount is told by its path too, since a volume can be at several.
fn key(item: &Value) -> Option<String> {
    let text = |name: &str| item[name].as_str().map(str::to_owned);
    match (text("name"), text("mountPath")) {
        (Some(name), Some(path)) => Some(format!("{name} at {path}")),
        (name, _) => name.or_else(|| text("key")),
    }
}

fn words(items: &[Value]) -> String {
    let word = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
    items.iter().map(word).collect::<Vec<_>>().join(" ")
}
