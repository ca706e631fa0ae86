//! Properties that hold for any document, any bytes and any schema.

use kubevirt_schema::{
    Schema, apply_defaults, drop_nulls, normalize_numbers, parse_strict, prune, unknown_fields, validate,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Few names, so that documents and schemas meet.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "metadata", "kind", "x.y"]).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        prop::sample::select(vec![0.5, 1.0, -0.0, 1e300]).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c0-9:./-]{0,6}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ]
}

fn document() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 48, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(name(), inner, 0..5).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn checks() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(json!({})),
        1 => Just(json!({"minimum": 0, "exclusiveMinimum": true, "maximum": 2.5, "multipleOf": 0.5})),
        1 => Just(json!({"minLength": 1, "maxLength": 3, "pattern": "^[a-c]*$"})),
        1 => Just(json!({"minItems": 1, "maxItems": 2, "uniqueItems": true})),
        1 => Just(json!({"minProperties": 1, "maxProperties": 2, "required": ["a"]})),
        1 => vec(scalar(), 1..4).prop_map(|allowed| json!({"enum": allowed})),
        1 => Just(json!({"anyOf": [{"required": ["a"]}, {"maxLength": 2}], "not": {"enum": ["a", 1]}})),
        1 => Just(json!({"oneOf": [{"minimum": 1}, {"required": ["b"]}], "allOf": [{"maxItems": 1}]})),
        1 => prop::sample::select(vec![
            "int32", "int64", "float", "date-time", "date", "duration", "byte", "ipv4", "ipv6", "cidr", "mac",
            "uuid", "uuid4", "uri", "email", "hostname", "isbn", "creditcard", "ssn", "hexcolor", "rgbcolor",
            "bsonobjectid", "k8s-short-name", "k8s-long-name",
        ]).prop_map(|format| json!({"format": format})),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({"type": "string"}),
        json!({"type": "integer"}),
        json!({"type": "number"}),
        json!({"type": "boolean"}),
        json!({"type": "string", "default": "a"}),
        json!({"type": "integer", "default": 1, "nullable": true}),
        json!({"x-kubernetes-int-or-string": true}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
            "items": {"type": "object", "properties": {"a": {"type": "string"},
            "b": {"type": "integer", "default": 1}}}}),
    ])
}

fn node() -> impl Strategy<Value = Value> {
    let extras = || (checks(), any::<bool>());
    (leaf(), extras()).prop_map(extend).prop_recursive(4, 24, 4, move |inner| {
        let structural = prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.clone().prop_map(|values| json!({"type": "object", "additionalProperties": values})),
            (btree_map(name(), inner, 0..4), any::<bool>(), any::<bool>()).prop_map(
                |(properties, preserve, default)| {
                    let mut schema = json!({"type": "object", "properties": properties});
                    if preserve {
                        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
                    }
                    if default {
                        schema["default"] = json!({});
                    }
                    schema
                }
            ),
        ];
        (structural, extras()).prop_map(extend)
    })
}

fn extend((mut schema, (checks, nullable)): (Value, (Value, bool))) -> Value {
    let fields: &mut Map<_, _> = schema.as_object_mut().expect("schemas are objects");
    if let Value::Object(checks) = checks {
        fields.extend(checks);
    }
    if nullable {
        fields.insert("nullable".to_owned(), json!(true));
    }
    schema
}

/// A well-formed schema. A default that the random checks rule out is the only thing that can be
/// wrong with it.
fn schema() -> impl Strategy<Value = Schema> {
    btree_map(prop::sample::select(vec!["a", "b", "spec"]), node(), 1..4).prop_filter_map(
        "a default breaks its own rules",
        |properties| match Schema::parse(&json!({"type": "object", "properties": properties})) {
            Ok(schema) => Some(schema),
            Err(error) => {
                assert!(error.path.to_string().ends_with("default"), "{error}");
                None
            }
        },
    )
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 300,
        max_global_rejects: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn pruning(schema in schema(), document in document()) {
        let mut pruned = document.clone();
        let dropped = prune(&schema, &mut pruned);
        prop_assert_eq!(dropped, unknown_fields(&schema, &document));
        prop_assert_eq!(unknown_fields(&schema, &pruned), []);
        let mut again = pruned.clone();
        prop_assert_eq!(prune(&schema, &mut again), []);
        prop_assert_eq!(again, pruned);
    }

    #[test]
    fn defaulting_and_validating(schema in schema(), mut document in document()) {
        prune(&schema, &mut document);
        let raw = validate(&schema, &document);
        drop_nulls(&schema, &mut document);
        apply_defaults(&schema, &mut document);
        let mut again = document.clone();
        drop_nulls(&schema, &mut again);
        apply_defaults(&schema, &mut again);
        prop_assert_eq!(&again, &document);

        let problems = validate(&schema, &document);
        prop_assert_eq!(&problems, &validate(&schema, &document));
        prop_assert_eq!(raw.is_empty(), problems.is_empty(), "{:?} {:?}", raw, problems);
        for problem in &problems {
            prop_assert!(!problem.to_string().is_empty());
        }

        normalize_numbers(&schema, &mut again);
        if problems.is_empty() {
            let mut twice = again.clone();
            normalize_numbers(&schema, &mut twice);
            prop_assert_eq!(twice, again);
        }
    }

    #[test]
    fn any_json_as_a_schema(value in document()) {
        let _ = Schema::parse(&value);
        let _ = Schema::parse(&json!({"type": "object", "properties": {"a": value}}));
    }

    #[test]
    fn any_bytes_as_text(bytes in vec(any::<u8>(), 0..64), text in "[\\[\\]{}:,\"a0-9.eE+\\\\ntu -]{0,40}") {
        let _ = parse_strict(&bytes);
        let strict = parse_strict(text.as_bytes());
        prop_assert_eq!(strict.is_ok(), serde_json::from_str::<Value>(&text).is_ok());
    }

    #[test]
    fn text_survives(document in document()) {
        let (value, duplicates) = parse_strict(document.to_string().as_bytes()).expect("is JSON");
        let expected: Value = serde_json::from_str(&document.to_string()).expect("is JSON");
        prop_assert_eq!(value, expected);
        prop_assert!(duplicates.is_empty());
    }
}
