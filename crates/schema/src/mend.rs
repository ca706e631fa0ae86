//! Puts a broken document into a shape that can be read, so that the rest of it can still be judged.

use serde_json::{Map, Value};

use crate::node::{Node, Schema, Type};
use crate::path::Segment;
use crate::problem::{Problem, ProblemKind};

/// Replaces every value that `problems` call missing, wrongly typed or out of the range of its type by the least
/// that its schema asks for.
///
/// The result is not what anyone wrote: it is only good for finding further problems elsewhere.
pub fn mend(schema: &Schema, document: &mut Value, problems: &[Problem]) {
    for problem in problems {
        let unreadable = match problem.kind {
            ProblemKind::Required | ProblemKind::WrongType { .. } | ProblemKind::TooDeep => true,
            ProblemKind::Invalid => problem.path.find(document).is_some_and(Value::is_number),
            _ => false,
        };
        if unreadable {
            mend_at(schema.root(), document, problem.path.segments());
        }
    }
}

fn mend_at(node: &Node, value: &mut Value, path: &[Segment]) {
    let Some((step, rest)) = path.split_first() else {
        *value = least(node);
        return;
    };
    match (step, value) {
        (Segment::Field(name), Value::Object(fields)) => {
            let Some(node) = node.field(name) else { return };
            mend_at(node, fields.entry(name.clone()).or_insert(Value::Null), rest);
        }
        (Segment::Index(index), Value::Array(items)) => {
            if let (Some(node), Some(item)) = (node.items.as_deref(), items.get_mut(*index)) {
                mend_at(node, item, rest);
            }
        }
        _ => {}
    }
}

/// The least value that a schema accepts: empty, but for what is required.
fn least(node: &Node) -> Value {
    match node.kind {
        Some(Type::Object) | None => {
            let required = node.checks.iter().flat_map(|checks| checks.required.iter()).map(|name| &**name);
            let field = |name: &str| Some((name.to_owned(), least(node.field(name)?)));
            Value::Object(required.filter_map(field).collect::<Map<_, _>>())
        }
        Some(Type::Array) => Value::Array(Vec::new()),
        Some(Type::String) => Value::from(""),
        Some(Type::Integer | Type::Number | Type::IntOrString) => Value::from(0),
        Some(Type::Boolean) => Value::from(false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::mend;
    use crate::{Schema, validate};

    #[test]
    fn what_is_missing_or_wrongly_typed_becomes_the_least_and_the_rest_stays() {
        let schema = Schema::parse(&json!({
            "type": "object",
            "required": ["spec"],
            "properties": { "spec": {
                "type": "object",
                "required": ["name", "disks"],
                "properties": {
                    "name": { "type": "string" },
                    "count": { "type": "integer", "format": "int32" },
                    "disks": { "type": "array", "items": {
                        "type": "object", "required": ["bus"], "properties": { "bus": { "type": "string" } },
                    } },
                },
            } },
        }))
        .unwrap();
        let cases = [
            (json!({}), json!({ "spec": { "name": "", "disks": [] } })),
            (
                json!({ "spec": { "count": "two", "name": "a", "disks": [{ "bus": "x" }, 7, {}] } }),
                json!({ "spec": { "count": 0, "name": "a", "disks": [{ "bus": "x" }, { "bus": "" }, { "bus": "" }] } }),
            ),
            (
                json!({ "spec": { "count": 3_000_000_000u32, "name": "a", "disks": [] } }),
                json!({ "spec": { "count": 0, "name": "a", "disks": [] } }),
            ),
            (json!([]), json!({ "spec": { "name": "", "disks": [] } })),
        ];
        for (mut document, expected) in cases {
            let problems = validate(&schema, &document);
            mend(&schema, &mut document, &problems);
            assert_eq!(document, expected);
            assert!(validate(&schema, &document).is_empty());
        }
    }
}
