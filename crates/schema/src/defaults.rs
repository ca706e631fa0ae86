//! Filling in defaults.

use serde_json::Value;

use crate::node::{Node, Schema};

/// Fills in the defaults of the schema.
///
/// A default is used where its field is missing, or `null` without being nullable; for items of a
/// list and values of a map, only in place of such a `null`. It is used only inside objects that
/// exist, which includes those that came from another default.
pub fn apply_defaults(schema: &Schema, document: &mut Value) {
    fill(&schema.root, document);
}

fn fill(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &node.properties {
                let Some(default) = &property.default else {
                    continue;
                };
                if fields.get(&**name).is_none_or(|v| property.is_absent(v)) {
                    fields.insert(name.to_string(), default.clone());
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(node) = node.field(name) {
                    fill_one(node, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for item in items {
                    fill_one(node, item);
                }
            }
        }
        _ => {}
    }
}

fn fill_one(node: &Node, value: &mut Value) {
    if let Some(default) = &node.default
        && node.is_absent(value)
    {
        *value = default.clone();
    }
    fill(node, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fills_what_is_missing() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a": {"type": "string", "default": "x"},
            "nullable": {"type": "string", "default": "x", "nullable": true},
            "inside": {"type": "object", "properties": {
                "b": {"type": "integer", "default": 1},
            }},
            "made": {"type": "object", "default": {}, "properties": {
                "c": {"type": "boolean", "default": true},
            }},
            "list": {"type": "array", "items": {"type": "integer", "default": 7}},
            "plainList": {"type": "array", "items": {"type": "object", "properties": {
                "protocol": {"type": "string", "default": "TCP"},
            }}},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "default": 8}},
        }}))
        .unwrap();
        for (document, expected) in [
            (json!({}), json!({"a": "x", "nullable": "x", "made": {"c": true}})),
            (
                json!({"a": null, "nullable": null, "inside": {}, "made": {"c": false}}),
                json!({"a": "x", "nullable": null, "inside": {"b": 1}, "made": {"c": false}}),
            ),
            (
                json!({"a": "y", "nullable": "z", "made": {"c": null}, "list": [1, null],
                    "map": {"k": null, "l": 2}, "plainList": [{}, null]}),
                json!({"a": "y", "nullable": "z", "made": {"c": true}, "list": [1, 7],
                    "map": {"k": 8, "l": 2}, "plainList": [{"protocol": "TCP"}, null]}),
            ),
            (json!("not an object"), json!("not an object")),
        ] {
            let mut filled = document.clone();
            apply_defaults(&schema, &mut filled);
            assert_eq!(filled, expected, "{document}");
        }
    }
}
