//! A schema as rows: one per path, with its type and everything else that is said of it.

use std::collections::BTreeSet;

use serde_json::Value;

/// What a schema says of one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// `object`, `array`, `string`, …, or `int-or-string`.
    pub type_: String,
    /// Whether the field must be there.
    pub required: bool,
    /// Enum, default, format and whether unknown fields are kept.
    pub facets: BTreeSet<String>,
    /// Nullable, list and map types, patterns, bounds and CEL rules.
    pub rules: BTreeSet<String>,
}

impl Row {
    /// How this row differs from the one it should be.
    pub fn differences(&self, wanted: &Row) -> Vec<String> {
        let mut found = Vec::new();
        if self.type_ != wanted.type_ {
            found.push(format!("type {} instead of {}", self.type_, wanted.type_));
        }
        if self.required != wanted.required {
            found.push(if wanted.required { "not required".into() } else { "required".into() });
        }
        for (ours, theirs) in [(&self.facets, &wanted.facets), (&self.rules, &wanted.rules)] {
            found.extend(theirs.difference(ours).map(|what| format!("lacks {what}")));
            found.extend(ours.difference(theirs).map(|what| format!("adds {what}")));
        }
        found
    }
}

/// The rows of a schema, with paths such as `spec.volumes[].name`.
pub fn of(schema: &Value) -> Vec<(String, Row)> {
    let mut rows = Vec::new();
    below(schema, "", &mut rows);
    rows
}

fn below(schema: &Value, path: &str, rows: &mut Vec<(String, Row)>) {
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|r| r == name));
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        rows.push((path.clone(), Row { required: required(name), ..row(property) }));
        below(property, &path, rows);
    }
    for (keyword, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        let inner = &schema[keyword];
        if inner.is_object() {
            let path = format!("{path}{suffix}");
            rows.push((path.clone(), row(inner)));
            below(inner, &path, rows);
        }
    }
}

fn row(schema: &Value) -> Row {
    let int_or_string = schema["x-kubernetes-int-or-string"] == true;
    let type_ = if int_or_string { "int-or-string" } else { schema["type"].as_str().unwrap_or("any") };
    Row { type_: type_.into(), required: false, facets: facets(schema), rules: rules(schema) }
}

fn facets(schema: &Value) -> BTreeSet<String> {
    let mut facets = BTreeSet::new();
    if let Some(values) = schema["enum"].as_array() {
        let words: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        facets.insert(format!("enum={}", words.join("|")));
    }
    if let Some(default) = schema.get("default") {
        facets.insert(format!("default={default}"));
    }
    if let Some(format) = schema["format"].as_str() {
        facets.insert(format!("format={format}"));
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        facets.insert("preserve-unknown".into());
    }
    facets
}

fn rules(schema: &Value) -> BTreeSet<String> {
    let flags = [
        ("nullable", "nullable"),
        ("x-kubernetes-int-or-string", "int-or-string"),
        ("x-kubernetes-embedded-resource", "embedded-resource"),
    ];
    let values = [
        ("x-kubernetes-list-type", "list-type"),
        ("x-kubernetes-map-type", "map-type"),
        ("pattern", "pattern"),
        ("minLength", "minLength"),
        ("maxLength", "maxLength"),
        ("minItems", "minItems"),
        ("maxItems", "maxItems"),
        ("minimum", "minimum"),
        ("maximum", "maximum"),
    ];
    let mut rules: BTreeSet<String> = BTreeSet::new();
    rules.extend(flags.iter().filter(|(key, _)| schema[*key] == true).map(|(_, name)| (*name).to_owned()));
    for (key, name) in values {
        match &schema[key] {
            Value::Null => {}
            Value::String(text) => _ = rules.insert(format!("{name}={text}")),
            value => _ = rules.insert(format!("{name}={value}")),
        }
    }
    if let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array() {
        let keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
        rules.insert(format!("list-map-keys={}", keys.join(",")));
    }
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        rules.insert(format!("cel: {}", rule["rule"].as_str().unwrap_or_default()));
    }
    rules
}
