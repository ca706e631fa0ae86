//! What is refused, and where the blame goes.

use serde_json::json;

use super::*;

fn spec(schema: Value) -> Value {
    json!({"type": "object", "properties": {"spec": schema}})
}

#[test]
fn refuses_what_is_not_structural() {
    for (schema, message) in [
        (json!([]), "schema: must be an object"),
        (json!({}), "schema at type: must be object at the root"),
        (json!({"type": "string"}), "schema at type: must be object at the root"),
        (json!({"type": "object", "nullable": true}), "schema at nullable: must not be used at the root"),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties":
                {"labels": {"type": "object"}}}}}),
            "schema at properties.metadata: may only restrict name and generateName",
        ),
        (
            json!({"type": "object", "properties": {"kind": {"type": "integer"}}}),
            "schema at properties.kind.type: must be string",
        ),
        (spec(json!({})), "schema at properties.spec.type: is missing"),
        (spec(json!({"type": "null"})), "schema at properties.spec.type: \"null\" is not a type"),
        (spec(json!({"type": "array"})), "schema at properties.spec.items: is missing"),
        (
            spec(json!({"$ref": "#/x"})),
            "schema at properties.spec.$ref: is not a keyword of a structural schema",
        ),
        (
            spec(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false})),
            "schema at properties.spec.x-kubernetes-preserve-unknown-fields: must be true or left out",
        ),
        (
            spec(json!({"type": "object", "properties": {"a": {"type": "string"}},
                "additionalProperties": {"type": "string"}})),
            "schema at properties.spec.additionalProperties: cannot be together with properties",
        ),
        (
            spec(json!({"type": "object", "anyOf": [{"type": "object"}]})),
            "schema at properties.spec.anyOf[0].type: must not be inside allOf, anyOf, oneOf or not",
        ),
        (
            spec(json!({"type": "object", "not": {"properties": {"a": {"enum": [1]}}}})),
            "schema at properties.spec.not.properties.a: is not described outside of it",
        ),
        (
            spec(json!({"type": "object", "x-kubernetes-embedded-resource": true})),
            "schema at properties.spec.properties: is missing",
        ),
        (
            spec(json!({"type": "string", "minLength": -1})),
            "schema at properties.spec.minLength: must be a whole number that is not negative",
        ),
        (
            spec(json!({"type": "integer", "multipleOf": 0})),
            "schema at properties.spec.multipleOf: must be greater than zero",
        ),
    ] {
        assert_eq!(Schema::parse(&schema).unwrap_err().to_string(), message, "{schema}");
    }
}

#[test]
fn refuses_patterns_that_do_not_compile() {
    let error = Schema::parse(&spec(json!({"type": "string", "pattern": "(("}))).unwrap_err();
    assert_eq!(error.path.to_string(), "properties.spec.pattern");
    assert!(error.reason.starts_with("does not compile"), "{error}");
}

#[test]
fn checks_keyed_lists() {
    let list = |extra: Value| {
        let mut schema = json!({"type": "array", "x-kubernetes-list-type": "map", "items":
            {"type": "object", "properties": {"name": {"type": "string"}, "list": {"type": "array",
            "items": {"type": "string"}}}}});
        for (key, value) in extra.as_object().unwrap() {
            schema[key] = value.clone();
        }
        Schema::parse(&spec(schema)).map(|_| ()).map_err(|error| error.path.to_string())
    };
    let at = |path: &str| Err(format!("properties.spec.{path}"));
    assert_eq!(list(json!({"x-kubernetes-list-map-keys": ["name"]})), Ok(()));
    assert_eq!(list(json!({})), at("x-kubernetes-list-map-keys"));
    assert_eq!(list(json!({"x-kubernetes-list-map-keys": ["x"]})), at("x-kubernetes-list-map-keys[0]"));
    assert_eq!(list(json!({"x-kubernetes-list-map-keys": ["list"]})), at("x-kubernetes-list-map-keys[0]"));
    assert_eq!(
        list(json!({"x-kubernetes-list-map-keys": ["name"], "x-kubernetes-list-type": "set"})),
        at("x-kubernetes-list-map-keys")
    );
    assert_eq!(list(json!({"type": "object"})), at("x-kubernetes-list-type"));
}

#[test]
fn checks_defaults() {
    for (schema, reason) in [
        (json!({"type": "string", "default": 1}), "must be a string, not the number 1"),
        (json!({"type": "object", "default": {"x": 1}}), "has an unknown field x"),
        (
            json!({"type": "object", "default": {}, "required": ["a"], "properties":
                {"a": {"type": "string"}}}),
            "a: is required",
        ),
    ] {
        let error = Schema::parse(&spec(schema)).unwrap_err();
        assert_eq!(error.to_string(), format!("schema at properties.spec.default: {reason}"));
    }
    let nested = json!({"type": "object", "default": {}, "required": ["a"], "properties":
        {"a": {"type": "string", "default": "x"}}});
    assert!(Schema::parse(&spec(nested)).is_ok());
}

#[test]
fn refuses_endless_nesting() {
    let deep = (0..500).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    assert!(Schema::parse(&spec(deep)).unwrap_err().reason.contains("too deeply"));
    let deep = (0..500).fold(json!({}), |inner, _| json!({"allOf": [inner]}));
    let schema = spec(json!({"type": "string", "not": deep}));
    assert!(Schema::parse(&schema).unwrap_err().reason.contains("too deeply"));
    let deep = (0..500).fold(json!({}), |inner, _| json!([inner]));
    let schema = spec(json!({"x-kubernetes-preserve-unknown-fields": true, "default": deep}));
    assert!(Schema::parse(&schema).unwrap_err().reason.contains("too deeply"));
}

#[test]
fn keeps_the_rules() {
    let schema = Schema::parse(&spec(json!({"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "object", "x-kubernetes-validations": [
            {"rule": "self.a > 0", "message": "a must be positive"},
            {"rule": "self == oldSelf", "messageExpression": "'no'", "reason": "FieldValueForbidden",
             "fieldPath": ".a", "optionalOldSelf": true},
        ]}},
    }})))
    .unwrap();
    let rules = schema.rules();
    let shown: Vec<_> = rules.iter().map(|(path, rule)| format!("{path}: {}", rule.rule)).collect();
    assert_eq!(shown, ["spec.list[*]: self.a > 0", "spec.list[*]: self == oldSelf"]);
    assert_eq!(rules[0].1.message.as_deref(), Some("a must be positive"));
    assert!(rules[1].1.optional_old_self);

    let empty = spec(json!({"type": "object", "x-kubernetes-validations": [{"message": "m"}]}));
    assert!(Schema::parse(&empty).is_err());
}

#[test]
fn reads_types_and_extensions() {
    let schema = Schema::parse(&spec(json!({"type": "object", "x-kubernetes-map-type": "atomic",
    "description": "d", "title": "t", "properties": {
        "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    }})))
    .unwrap();
    let spec = schema.root().field("spec").unwrap();
    assert_eq!(spec.map_type, MapType::Atomic);
    assert_eq!(spec.field("port").unwrap().kind, Some(Type::IntOrString));
    assert_eq!(spec.field("set").unwrap().list_type, ListType::Set);
}
