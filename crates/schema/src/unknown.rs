//! Fields that a schema does not know: finding them and dropping them.

use serde_json::Value;

use crate::depth::MAX_DEPTH;
use crate::node::{Additional, Node, Schema};
use crate::object_meta::object_meta;
use crate::path::{Path, Trail};

/// The fields that the schema does not know and does not preserve, in document order.
///
/// A field is reported once, not again for what is inside it. `apiVersion`, `kind` and `metadata`
/// are known at the root and in embedded resources, and the fields of `metadata` are those of
/// `ObjectMeta`.
pub fn unknown_fields(schema: &Schema, document: &Value) -> Vec<Path> {
    unknown_below(&schema.root, document)
}

/// Drops the fields that [`unknown_fields`] reports and returns them.
pub fn prune(schema: &Schema, document: &mut Value) -> Vec<Path> {
    let mut found = Vec::new();
    drop_unknown(Scope::of(&schema.root), document, &Trail::ROOT, 0, &mut found);
    found
}

pub(crate) fn unknown_below(node: &Node, value: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    find_unknown(Scope::of(node), value, &Trail::ROOT, 0, &mut found);
    found
}

/// What is known about the fields of a value.
#[derive(Clone, Copy)]
enum Scope<'s> {
    /// Those that the schema names.
    Named(&'s Node),
    /// All, but the schema has more to say about those it names.
    Preserved(&'s Node),
    /// None.
    Nothing,
}

enum Fate<'s> {
    Unknown,
    Leave,
    LookInside(Scope<'s>),
}

impl<'s> Scope<'s> {
    fn of(node: &'s Node) -> Self {
        if node.preserve_unknown { Self::Preserved(node) } else { Self::Named(node) }
    }

    fn field(self, name: &str) -> Fate<'s> {
        let (Self::Named(node) | Self::Preserved(node)) = self else {
            return Fate::Unknown;
        };
        if node.embedded {
            match name {
                "apiVersion" | "kind" => return Fate::Leave,
                "metadata" => return Fate::LookInside(Self::Named(object_meta())),
                _ => {}
            }
        }
        match (node.properties.get(name), &node.additional) {
            (Some(property), _) => Fate::LookInside(Self::of(property)),
            (None, Additional::Values(values)) => Fate::LookInside(Self::of(values)),
            (None, Additional::Any | Additional::Nothing) => Fate::LookInside(Self::Nothing),
            (None, Additional::Unknown) if matches!(self, Self::Preserved(_)) => Fate::Leave,
            (None, Additional::Unknown) => Fate::Unknown,
        }
    }

    /// The scope of the items of a list; none when there is nothing to look for in them.
    fn items(self) -> Option<Self> {
        match self {
            Self::Named(node) => Some(node.items.as_deref().map_or(Self::Nothing, Self::of)),
            // A preserved list preserves its items as well, whatever their own schema says.
            Self::Preserved(node) => node.items.as_deref().map(Self::Preserved),
            Self::Nothing => Some(Self::Nothing),
        }
    }
}

fn find_unknown(scope: Scope, value: &Value, at: &Trail, depth: usize, found: &mut Vec<Path>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (i, (name, field)) in fields.iter().enumerate() {
                match scope.field(name) {
                    Fate::Leave => {}
                    Fate::Unknown => found.push(at.field(name, i).path()),
                    Fate::LookInside(scope) => {
                        find_unknown(scope, field, &at.field(name, i), depth + 1, found);
                    }
                }
            }
        }
        Value::Array(items) => {
            let Some(scope) = scope.items() else { return };
            for (i, item) in items.iter().enumerate() {
                find_unknown(scope, item, &at.index(i), depth + 1, found);
            }
        }
        _ => {}
    }
}

fn drop_unknown(scope: Scope, value: &mut Value, at: &Trail, depth: usize, found: &mut Vec<Path>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => fields.retain(|name, field| match scope.field(name) {
            Fate::Leave => true,
            Fate::Unknown => {
                found.push(at.missing(name).path());
                false
            }
            Fate::LookInside(scope) => {
                drop_unknown(scope, field, &at.missing(name), depth + 1, found);
                true
            }
        }),
        Value::Array(items) => {
            let Some(scope) = scope.items() else { return };
            for (i, item) in items.iter_mut().enumerate() {
                drop_unknown(scope, item, &at.index(i), depth + 1, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Both functions must agree.
    fn unknown(schema: &Value, document: Value) -> (Vec<String>, Value) {
        let schema = Schema::parse(schema).unwrap();
        let found = unknown_fields(&schema, &document);
        let mut pruned = document;
        assert_eq!(prune(&schema, &mut pruned), found);
        assert_eq!(unknown_fields(&schema, &pruned), []);
        (found.iter().map(Path::to_string).collect(), pruned)
    }

    #[test]
    fn plain_objects() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object"}},
            "scalars": {"type": "object", "additionalProperties": true},
        }}}});
        let (found, pruned) = unknown(
            &schema,
            json!({"apiVersion": "v1", "kind": "K", "extra": {"inside": 1}, "spec": {
                "A": 1, "a": {"wrong type": 1}, "list": [{"b": "", "c": 1}, [{"d": 1}]],
                "map": {"k.l": {"x": 1}}, "scalars": {"s": 1, "o": {"y": 1}, "l": [[{"z": 1}]]},
            }}),
        );
        assert_eq!(
            found,
            [
                "extra",
                "spec.A",
                "spec.a[wrong type]",
                "spec.list[0].c",
                "spec.list[1][0].d",
                "spec.map[k.l].x",
                "spec.scalars.l[0][0].z",
                "spec.scalars.o.y",
            ]
        );
        assert_eq!(
            pruned,
            json!({"apiVersion": "v1", "kind": "K", "spec": {
                "a": {}, "list": [{"b": ""}, [{}]],
                "map": {"k.l": {}}, "scalars": {"s": 1, "o": {}, "l": [[{}]]},
            }})
        );
    }

    #[test]
    fn preserved_objects() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "known": {"type": "object", "properties": {"a": {"type": "string"}}},
            }}, "list": {"type": "array", "x-kubernetes-preserve-unknown-fields": true,
                "items": {"type": "object"}}}});
        let (found, _) = unknown(
            &schema,
            json!({"list": [{"kept": 1}], "spec": {"any": {"thing": 1}, "known": {"a": "", "b": 1}}}),
        );
        assert_eq!(found, ["spec.known.b"]);
    }

    #[test]
    fn metadata_of_resources() {
        let schema = json!({"type": "object", "properties": {
            "metadata": {"type": "object"},
            "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties":
                {"spec": {"type": "object"}}},
            "plain": {"type": "object", "properties": {"metadata": {"type": "object"}}},
        }});
        let (found, _) = unknown(
            &schema,
            json!({
                "metadata": {
                    "name": "n", "labels": {"a.b": ""}, "nmae": "typo", "clusterName": "gone",
                    "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}, "x": 1}],
                    "ownerReferences": [{"uid": "u", "y": 1}],
                },
                "plain": {"metadata": {"name": "n"}, "apiVersion": "v1"},
                "template": {"apiVersion": "v1", "kind": "K", "metadata": {"z": 1}, "spec": {}, "w": 1},
            }),
        );
        let mut expected = vec![
            "metadata.clusterName",
            "metadata.managedFields[0].x",
            "metadata.nmae",
            "metadata.ownerReferences[0].y",
            "plain.apiVersion",
            "plain.metadata.name",
            "template.metadata.z",
            "template.w",
        ];
        expected.sort_unstable();
        let mut found = found;
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn deep_documents_do_not_overflow() {
        let schema = Schema::parse(&json!({"type": "object", "properties":
            {"a": {"type": "object", "additionalProperties": true}}}))
        .unwrap();
        let deep = (0..500).fold(json!({"x": 1}), |inner, _| json!([inner]));
        let mut document = json!({"a": {"k": deep}});
        assert_eq!(unknown_fields(&schema, &document), []);
        assert_eq!(prune(&schema, &mut document), []);
    }
}
