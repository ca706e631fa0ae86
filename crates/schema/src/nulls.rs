//! Dropping the nulls that only mean "absent".

use serde_json::Value;

use crate::node::{Node, Schema};

/// Drops every `null` whose field is known, not nullable and has no default.
///
/// Nulls with a default are left for [`apply_defaults`](crate::apply_defaults), and nulls in
/// lists are left for [`validate`](crate::validate) to complain about, as dropping an item would
/// move the ones behind it.
pub fn drop_nulls(schema: &Schema, document: &mut Value) {
    drop_below(&schema.root, document);
}

fn drop_below(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let Some(node) = node.field_or_meta(name) else {
                return true;
            };
            if node.is_absent(field) && node.default.is_none() {
                return false;
            }
            drop_below(node, field);
            true
        }),
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for item in items {
                    drop_below(node, item);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn drops_nulls_of_known_fields_only() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "plain": {"type": "string"},
            "defaulted": {"type": "string", "default": "x"},
            "nullable": {"type": "string", "nullable": true},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "list": {"type": "array", "items": {"type": "object", "properties": {
                "a": {"type": "string"},
            }}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        }}))
        .unwrap();
        let mut document = json!({
            "plain": null, "defaulted": null, "nullable": null, "any": {"x": null},
            "list": [null, {"a": null, "b": null}], "map": {"k": null}, "unknown": null,
            "metadata": {"creationTimestamp": null, "name": "n"},
        });
        drop_nulls(&schema, &mut document);
        assert_eq!(
            document,
            json!({
                "defaulted": null, "nullable": null, "any": {"x": null},
                "list": [null, {"b": null}], "map": {}, "unknown": null,
                "metadata": {"name": "n"},
            })
        );
    }
}
