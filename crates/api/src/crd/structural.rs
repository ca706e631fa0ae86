//! From what `schemars` says of a type to the structural schema that a Kubernetes API server wants.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::foreign;

/// The schemas below the root of a kind, before references are resolved.
pub struct RootSchema {
    /// The schema of `spec`.
    pub spec: Schema,
    /// The schema of `status`, for kinds that have one.
    pub status: Option<Schema>,
}

/// The keyword under which a field says what holds beyond the CRD's schema: the original's own decoder and its
/// webhooks refuse a negative count, a word outside of a closed set and a duration that is none.
const STRICT: &str = "x-strict";

/// How much a schema says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// What the CRD says.
    Definition,
    /// And what admission holds the object to beyond that.
    Strict,
}

/// Makes the hints of fields part of the schema, or drops them.
pub(super) fn settle(schema: &mut Value, extent: Extent) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Object(hint)) = object.remove(STRICT)
        && extent == Extent::Strict
    {
        object.extend(hint);
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(|property| settle(property, extent));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(key) {
            settle(inner, extent);
        }
    }
}

/// The structural schema of a kind: no references, no keywords that an API server refuses.
pub(super) fn root(
    description: &str,
    spec_required: bool,
    generator: SchemaGenerator,
    root: RootSchema,
) -> Value {
    let definitions = definitions(generator);
    let mut properties = Map::new();
    properties.insert("apiVersion".into(), json!({ "type": "string", "description": API_VERSION }));
    properties.insert("kind".into(), json!({ "type": "string", "description": KIND }));
    properties.insert("metadata".into(), json!({ "type": "object" }));
    properties.insert("spec".into(), resolve(root.spec.to_value(), &definitions));
    if let Some(status) = root.status {
        properties.insert("status".into(), resolve(status.to_value(), &definitions));
    }
    let mut schema = json!({ "type": "object", "description": description, "properties": properties });
    if spec_required {
        schema["required"] = json!(["spec"]);
    }
    schema
}

const API_VERSION: &str = "The group and version of the API that the object is written for.";
const KIND: &str = "What the object is.";

/// The generator's definitions, with those of Kubernetes' own types adjusted.
fn definitions(mut generator: SchemaGenerator) -> Map<String, Value> {
    let mut definitions = generator.take_definitions(true);
    for (name, schema) in &mut definitions {
        if name.starts_with("io.k8s.") {
            strip_descriptions(schema);
            foreign::adjust(name, schema);
        }
    }
    definitions
}

/// Kubernetes' own descriptions would blow a CRD up sixfold.
fn strip_descriptions(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        object.remove("description");
        if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
            properties.values_mut().for_each(strip_descriptions);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = object.get_mut(key) {
                strip_descriptions(inner);
            }
        }
    }
}

/// A schema with every reference replaced by what it names, and every keyword in an API server's form.
fn resolve(schema: Value, definitions: &Map<String, Value>) -> Value {
    let Value::Object(mut object) = schema else { return schema };
    unwrap_optional(&mut object);
    if let Some(Value::String(reference)) = object.remove("$ref") {
        let name = reference.rsplit('/').next().unwrap_or_default();
        let mut target = definitions.get(name).cloned().unwrap_or_else(|| json!({}));
        if let Some(fields) = target.as_object_mut() {
            // What a field says of itself wins over what its type says.
            fields.extend(object);
        }
        return resolve(target, definitions);
    }
    tidy(&mut object);
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for property in properties.values_mut() {
            *property = resolve(property.take(), definitions);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(key) {
            *inner = resolve(inner.take(), definitions);
        }
    }
    Value::Object(object)
}

/// `Option<T>` is `T`: that it may be absent is said by `required`, and null means absent.
fn unwrap_optional(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get("type")
        && let [one, null] = types.as_slice()
        && null == "null"
    {
        let one = one.clone();
        object.insert("type".into(), one);
    }
    let optional = match object.get("anyOf") {
        Some(Value::Array(choices)) => match choices.as_slice() {
            [one, null] if null["type"] == "null" => Some(one.clone()),
            _ => None,
        },
        _ => None,
    };
    if let Some(Value::Object(one)) = optional {
        object.remove("anyOf");
        for (key, value) in one {
            object.entry(key).or_insert(value);
        }
    }
}

/// Drops what only `schemars` says: titles, formats that an API server does not know, and keywords set to
/// null, by which a field takes back what its type says.
fn tidy(object: &mut Map<String, Value>) {
    object.remove("title");
    object.retain(|_, value| !value.is_null());
    let known = |format: &Value| matches!(format.as_str(), Some("int32" | "int64" | "date-time" | "byte"));
    if object.get("format").is_some_and(|format| !known(format)) {
        object.remove("format");
    }
}
