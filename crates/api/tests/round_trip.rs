//! Whatever the schema of a kind accepts, its type reads and writes again without loss.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::LazyLock;

use kubevirt_api::crd::{KINDS, Kind, schema};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A small generator of numbers, so that a failing case is named by one seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 29)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// A value that the schema accepts.
fn value(schema: &Value, dice: &mut Dice, depth: u32) -> Value {
    if let Some(words) = schema["enum"].as_array() {
        return dice.pick(words).clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(dice.pick(&["1", "1.5Gi", "100m", "1e3", "-2", "64M"]));
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, dice, depth),
        Some("array") => {
            let count = if depth > 12 { 0 } else { dice.below(3) };
            (0..count).map(|_| value(&schema["items"], dice, depth + 1)).collect()
        }
        Some("boolean") => json!(dice.below(2) == 0),
        Some("integer") => {
            let least = schema["minimum"].as_i64().unwrap_or(-5);
            json!(least + dice.below(90) as i64)
        }
        Some("number") => json!(0.5 + dice.below(9) as f64),
        _ if schema["format"] == "date-time" => json!("2026-01-02T03:04:05Z"),
        _ => json!(dice.pick(&["virtio", "", "x", "Always", "ünïcode", "a/b", "/dev/null"])),
    }
}

fn object(schema: &Value, dice: &mut Dice, depth: u32) -> Value {
    let mut result = Map::new();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let wanted = required.contains(&name.as_str()) || property.get("default").is_some();
        if wanted || (depth < 14 && dice.below(3) == 0) {
            result.insert(name.clone(), value(property, dice, depth + 1));
        }
    }
    if schema["additionalProperties"].is_object() {
        for key in ["a", "kubevirt.io/b"].iter().take(dice.below(3) as usize) {
            result.insert((*key).into(), value(&schema["additionalProperties"], dice, depth + 1));
        }
    }
    Value::Object(result)
}

/// Every kind with its schema, which takes a while to make.
static SCHEMAS: LazyLock<Vec<(&Kind, Value)>> =
    LazyLock::new(|| KINDS.iter().map(|kind| (kind, schema(kind))).collect());

fn whole(kind: &Kind, schema: &Value, dice: &mut Dice) -> Value {
    let mut object = object(schema, dice, 0);
    if object.get("spec").is_none() {
        // Presets may lack one; their type then writes the least there is.
        object["spec"] = empty(&schema["properties"]["spec"]);
    }
    object["apiVersion"] = json!(format!("{}/{}", kind.group, version_of_type(kind, schema)));
    object["kind"] = json!(kind.name);
    object["metadata"] = json!({ "name": "x", "labels": { "a": "b" } });
    object
}

/// The version that the type writes: the newest, but for kinds that are still stored in an older one.
fn version_of_type(kind: &Kind, schema: &Value) -> String {
    let written = (kind.through_types)(&json!({ "spec": empty(&schema["properties"]["spec"]) })).unwrap();
    let api_version = written["apiVersion"].as_str().unwrap();
    api_version.split('/').nth(1).unwrap().to_owned()
}

/// The least that the schema accepts.
fn empty(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let fields = required.map(|name| (name.to_owned(), least(&schema["properties"][name])));
    Value::Object(fields.collect())
}

fn least(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("object") => empty(schema),
        Some("array") => json!([]),
        Some("boolean") => json!(false),
        Some("integer") => json!(0),
        _ if schema["format"] == "date-time" => json!("2026-01-02T03:04:05Z"),
        _ => json!(""),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn types_lose_nothing_that_the_schema_accepts(seed in any::<u64>()) {
        for (kind, schema) in SCHEMAS.iter() {
            let object = whole(kind, schema, &mut Dice(seed));
            let written = (kind.through_types)(&object).map_err(|error| {
                TestCaseError::fail(format!("{} {seed}: {error}", kind.name))
            })?;
            prop_assert_eq!(written, object, "{} {}", kind.name, seed);
        }
    }
}

#[test]
fn what_a_real_cluster_stored_survives() {
    let stored = json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": { "name": "web", "namespace": "default", "finalizers": ["a/b"], "generation": 9 },
        "spec": {
            "architecture": "amd64",
            "domain": {
                "cpu": { "cores": 2, "model": "host-model" },
                "devices": { "interfaces": [{ "masquerade": {}, "name": "default" }] },
                "memory": { "guest": "256Mi" },
            },
            "networks": [{ "name": "default", "pod": {} }],
        },
        "status": {
            "conditions": [{ "lastTransitionTime": "2026-11-15T20:11:39Z", "status": "True", "type": "Ready" }],
            "phase": "Running",
            "volumeStatus": [{ "containerDiskVolume": { "checksum": 3978419401u32 }, "name": "root", "target": "vda" }],
        },
    });
    let kind = KINDS.iter().find(|kind| kind.name == "VirtualMachineInstance").unwrap();
    assert_eq!((kind.through_types)(&stored).unwrap(), stored);
}

#[test]
fn numbers_and_nulls_are_read_where_kubernetes_reads_them() {
    let kind = KINDS.iter().find(|kind| kind.name == "VirtualMachine").unwrap();
    let object = json!({ "spec": {
        "runStrategy": null,
        "dataVolumeTemplates": [null],
        "template": { "metadata": { "creationTimestamp": null }, "spec": { "domain": {
            "devices": {},
            "memory": { "guest": 1073741824 },
        } } },
    } });
    let written = (kind.through_types)(&object).unwrap();
    assert_eq!(written["spec"]["template"]["spec"]["domain"]["memory"]["guest"], "1073741824");
    assert!(written["spec"].get("runStrategy").is_none());
}

#[test]
fn a_list_survives_an_object_that_cannot_be_read() {
    use kubevirt_api::DeserializeGuard;
    use kubevirt_api::vm::VirtualMachine;
    let spec = json!({ "template": { "spec": { "domain": { "devices": {} } } } });
    let list = json!([
        { "metadata": { "name": "good" }, "spec": spec },
        { "metadata": { "name": "bad" }, "spec": { "template": { "metadata": { "labels": { "a": 1 } } } } },
        { "metadata": { "name": "odd" }, "spec": { "runStrategy": "Sometimes", "template": spec["template"] } },
    ]);
    let read: Vec<DeserializeGuard<VirtualMachine>> = serde_json::from_value(list).unwrap();
    let names: Vec<(bool, Option<&str>)> = read
        .iter()
        .map(|item| match &item.0 {
            Ok(vm) => (true, vm.metadata.name.as_deref()),
            Err(bad) => (false, bad.metadata.name.as_deref()),
        })
        .collect();
    assert_eq!(names, [(true, Some("good")), (false, Some("bad")), (true, Some("odd"))]);
}
