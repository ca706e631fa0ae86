//! Problems as users see them.

use serde_json::json;

use super::*;

fn problems(schema: Value, document: Value) -> Vec<String> {
    let schema = Schema::parse(&schema).unwrap();
    validate(&schema, &document).iter().map(Problem::to_string).collect()
}

/// The problems of one field `f`.
fn of_field(schema: Value, value: Value) -> Vec<String> {
    problems(json!({"type": "object", "properties": {"f": schema}}), json!({"f": value}))
}

#[test]
fn types() {
    for (schema, value, expected) in [
        (json!({"type": "integer"}), json!("two"), "f: must be an integer, not the string \"two\""),
        (json!({"type": "integer"}), json!(1.5), "f: must be an integer, not the number 1.5"),
        (json!({"type": "integer"}), json!(1.0), ""),
        (
            json!({"type": "integer"}),
            json!(u64::MAX),
            "f: 18446744073709551615 is out of range for an integer",
        ),
        (json!({"type": "integer", "format": "int32"}), json!(i32::MAX), ""),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_u32),
            "f: must be between -2147483648 and 2147483647, not 3000000000",
        ),
        (json!({"type": "integer", "format": "int64"}), json!(i64::MIN), ""),
        (json!({"type": "number"}), json!(1), ""),
        (
            json!({"type": "number", "format": "float"}),
            json!(1e39),
            "f: 1e+39 is out of range for a number of 32 bits",
        ),
        (json!({"type": "boolean"}), json!("true"), "f: must be true or false, not the string \"true\""),
        (json!({"type": "string"}), json!(["a"]), "f: must be a string, not a list"),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!({}),
            "f: must be a list, not an object",
        ),
        (json!({"type": "object"}), json!(true), "f: must be an object, not the boolean true"),
        (json!({"x-kubernetes-int-or-string": true}), json!("50%"), ""),
        (json!({"x-kubernetes-int-or-string": true}), json!(50), ""),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!({}),
            "f: must be an integer or a string, not an object",
        ),
        (json!({"x-kubernetes-preserve-unknown-fields": true}), json!([1, {"a": null}]), ""),
    ] {
        assert_eq!(of_field(schema.clone(), value.clone()).join("\n"), expected, "{schema} {value}");
    }
}

#[test]
fn value_validation() {
    let string = |extra: Value| merge(json!({"type": "string"}), extra);
    let integer = |extra: Value| merge(json!({"type": "integer"}), extra);
    let list = |extra: Value| merge(json!({"type": "array", "items": {"type": "integer"}}), extra);
    let map =
        |extra: Value| merge(json!({"type": "object", "additionalProperties": {"type": "integer"}}), extra);
    for (schema, value, expected) in [
        (
            string(json!({"enum": ["a", "b"]})),
            json!("c"),
            "f: must be one of \"a\", \"b\", not the string \"c\"",
        ),
        (integer(json!({"enum": [1]})), json!(1.0), ""),
        (
            string(json!({"enum": ["a", null], "nullable": true})),
            json!(null),
            "f: must be one of \"a\", \"null\", not null",
        ),
        (string(json!({"maxLength": 1})), json!("éé"), "f: must be at most 1 character long, not 2"),
        (string(json!({"maxLength": 2})), json!("éé"), ""),
        (string(json!({"minLength": 2})), json!("é"), "f: must be at least 2 characters long, not 1"),
        (string(json!({"pattern": "^[a-z]+$"})), json!("A"), "f: \"A\" does not match the pattern ^[a-z]+$"),
        (string(json!({"format": "ipv4"})), json!("x"), "f: \"x\" is not an IPv4 address"),
        (string(json!({"format": "whatever"})), json!("x"), ""),
        (integer(json!({"minimum": 2})), json!(1), "f: must be at least 2, not 1"),
        (
            integer(json!({"minimum": 2, "exclusiveMinimum": true})),
            json!(2),
            "f: must be greater than 2, not 2",
        ),
        (integer(json!({"maximum": 2})), json!(3), "f: must be at most 2, not 3"),
        (integer(json!({"maximum": 2, "exclusiveMaximum": true})), json!(2), "f: must be less than 2, not 2"),
        (integer(json!({"multipleOf": 4})), json!(6), "f: must be a multiple of 4, not 6"),
        (list(json!({"minItems": 1})), json!([]), "f: must have at least 1 item, not 0"),
        (list(json!({"maxItems": 1})), json!([1, 2]), "f: must have at most 1 item, not 2"),
        (list(json!({"uniqueItems": true})), json!([1, 2, 1]), "f[2]: repeats an earlier item, the number 1"),
        (map(json!({"minProperties": 1})), json!({"a": null}), "f: must have at least 1 field, not 0"),
        (map(json!({"maxProperties": 1})), json!({"a": 1, "b": 2}), "f: must have at most 1 field, not 2"),
        (json!({"type": "object", "additionalProperties": false}), json!({"a": 1}), "f.a: is not allowed"),
    ] {
        assert_eq!(of_field(schema.clone(), value.clone()).join("\n"), expected, "{schema} {value}");
    }
}

fn merge(mut schema: Value, extra: Value) -> Value {
    for (key, value) in extra.as_object().unwrap() {
        schema[key] = value.clone();
    }
    schema
}

#[test]
fn absent_fields_and_nulls() {
    let schema = json!({"type": "object", "required": ["a", "d", "n"], "properties": {
        "a": {"type": "string"},
        "d": {"type": "string", "default": "x"},
        "n": {"type": "string", "nullable": true},
        "l": {"type": "array", "items": {"type": "string"}},
        "ld": {"type": "array", "items": {"type": "string", "default": "x"}},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
    }});
    for (document, expected) in [
        (json!({"a": "", "n": null}), vec![]),
        (json!({"a": null, "d": null, "n": ""}), vec!["a: is required"]),
        (json!({"a": ""}), vec!["n: is required"]),
        (json!({"a": "", "n": "", "m": {"k": null}, "ld": [null]}), vec![]),
        (json!({"a": "", "n": "", "l": [null]}), vec!["l[0]: must be a string, not null"]),
    ] {
        assert_eq!(problems(schema.clone(), document.clone()), expected, "{document}");
    }
    assert_eq!(problems(json!({"type": "object"}), json!(null)), ["must be an object, not null"]);
}

#[test]
fn all_problems_come_in_document_order() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "object", "required": ["x"], "properties": {
            "x": {"type": "string"},
            "list": {"type": "array", "items": {"type": "integer", "minimum": 5}},
        }, "allOf": [{"properties": {"list": {"maxItems": 2}}}]},
        "b": {"type": "string"},
    }});
    let document = json!({"a": {"list": [6, "s", 1]}, "b": 1});
    assert_eq!(
        problems(schema, document),
        [
            "a.x: is required",
            "a.list: must have at most 2 items, not 3",
            "a.list[1]: must be an integer, not the string \"s\"",
            "a.list[2]: must be at least 5, not 1",
            "b: must be a string, not the number 1",
        ]
    );
}

#[test]
fn alternatives() {
    let schema = |junctor: Value| {
        merge(
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}),
            junctor,
        )
    };
    let any = schema(
        json!({"anyOf": [{"required": ["a"]}, {"properties": {"b": {"minimum": 5}}, "required": ["b"]}]}),
    );
    let one = schema(json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}));
    let all = schema(json!({"allOf": [{"required": ["a"]}, {"properties": {"b": {"minimum": 5}}}]}));
    let not = schema(json!({"not": {"required": ["a", "b"]}}));
    for (schema, value, expected) in [
        (&any, json!({"a": 1}), ""),
        (
            &any,
            json!({"b": 1}),
            "f: fits none of the 2 alternatives: a: is required; b: must be at least 5, not 1",
        ),
        (&one, json!({"a": 1, "b": null}), ""),
        (&one, json!({}), "f: fits none of the 2 alternatives: a: is required; b: is required"),
        (&one, json!({"a": 1, "b": 1}), "f: must fit exactly one of the alternatives, but fits 2"),
        (&all, json!({"b": 1}), "f.a: is required\nf.b: must be at least 5, not 1"),
        (&not, json!({"a": 1}), ""),
        (&not, json!({"a": 1, "b": 1}), "f: has a form that is ruled out"),
    ] {
        assert_eq!(of_field(schema.clone(), value.clone()).join("\n"), expected, "{schema} {value}");
    }
}

#[test]
fn sets_and_keyed_lists() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    assert_eq!(
        of_field(set, json!(["a", "b", "a"])),
        ["f[2]: repeats an earlier item of a set, the string \"a\""]
    );
    let keyed = |keys: Value| {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items":
            {"type": "object", "properties": {"port": {"type": "integer"},
             "protocol": {"type": "string", "default": "TCP"}}}})
    };
    assert_eq!(
        of_field(keyed(json!(["port"])), json!([{"port": 1}, {"port": 2}, {"port": 1}, {}, {}])),
        ["f[2]: repeats an earlier item with port=1", "f[4]: repeats an earlier item with no port"]
    );
    assert_eq!(
        of_field(
            keyed(json!(["port", "protocol"])),
            json!([{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}])
        ),
        ["f[2]: repeats an earlier item with port=1, protocol=\"TCP\""]
    );
}

#[test]
fn resources() {
    let root = json!({"type": "object", "properties": {"metadata": {"type": "object", "properties":
        {"name": {"type": "string", "maxLength": 3}}}}});
    for (document, expected) in [
        (json!({}), vec![]),
        (json!({"apiVersion": 1, "kind": "K"}), vec!["apiVersion: must be a string, not the number 1"]),
        (json!({"metadata": null}), vec![]),
        (json!({"metadata": []}), vec!["metadata: must be an object, not a list"]),
        (json!({"metadata": {"name": 5}}), vec!["metadata.name: must be a string, not the number 5"]),
        (
            json!({"metadata": {"name": "long"}}),
            vec!["metadata.name: must be at most 3 characters long, not 4"],
        ),
        (
            json!({"metadata": {"labels": {"a.b/c": 1}, "creationTimestamp": null}}),
            vec!["metadata.labels[a.b/c]: must be a string, not the number 1"],
        ),
    ] {
        assert_eq!(problems(root.clone(), document.clone()), expected, "{document}");
    }
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    for (value, expected) in [
        (json!({"apiVersion": "apps/v1", "kind": "Deployment"}), ""),
        (json!({}), "f.apiVersion: is required\nf.kind: is required"),
        (
            json!({"apiVersion": "a/b/c", "kind": "a b"}),
            "f.apiVersion: \"a/b/c\" is not a valid apiVersion\nf.kind: \"a b\" is not a valid kind",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generation": "1"}}),
            "f.metadata.generation: must be an integer, not the string \"1\"",
        ),
    ] {
        assert_eq!(of_field(embedded.clone(), value.clone()).join("\n"), expected, "{value}");
    }
}

#[test]
fn deep_documents_are_refused() {
    let schema =
        Schema::parse(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).unwrap();
    let deep = (0..500).fold(json!(1), |inner, _| json!({"a": inner}));
    let found = validate(&schema, &deep);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, ProblemKind::TooDeep);
}

#[test]
fn kinds_and_reasons() {
    let schema = Schema::parse(&json!({"type": "object", "required": ["r"], "properties": {
        "t": {"type": "string"}, "e": {"type": "string", "enum": ["a"]}, "l": {"type": "string", "maxLength": 1},
    }}))
    .unwrap();
    let found = validate(&schema, &json!({"e": "b", "l": "xx", "t": 1}));
    let kinds: Vec<_> = found.iter().map(|problem| problem.kind.clone()).collect();
    let wrong_type = ProblemKind::WrongType { expected: Type::String, found: Found::Integer };
    let not_supported = ProblemKind::NotSupported { allowed: vec!["a".to_owned()] };
    assert_eq!(kinds, [ProblemKind::Required, not_supported, ProblemKind::TooLong { max: 1 }, wrong_type]);
    assert_eq!(kinds[0].reason(), "FieldValueRequired");
}
