//! Whether two values mean the same, however they are written.

use kubevirt_api::duration::Duration;
use kubevirt_api::quantity::Amount;
use serde::Serialize;
use serde_json::Value;

/// Fields that are quantities, and maps of them: `1Gi` is `1024Mi`.
const QUANTITIES: [&str; 7] =
    ["guest", "maxGuest", "addedOverhead", "capacity", "requests", "limits", "divisor"];

/// Fields that are durations: `60m` is `1h`.
const DURATIONS: [&str; 2] = ["failureDeadline", "ttlDuration"];

/// Fields where false, 0 or an empty object means the same as nothing, with the field above where others of the
/// name differ.
///
/// Clients written in Go leave these out when they write an object back. Other fields tell unset from false.
const NOTHING_IS_ZERO: [&str; 42] = [
    "acpiIndex",
    "addedNodeSelector",
    "annotations",
    "cores",
    "dedicatedCpuPlacement",
    "disableHotplug",
    "disk.readonly",
    "endOfInterrupt",
    "failureThreshold",
    "features.acpi",
    "finalCheckpoint",
    "forceFullBackup",
    "generation",
    "hidden",
    "hotpluggable",
    "initialDelaySeconds",
    "isolateEmulatorThread",
    "labels",
    "limits",
    "logical",
    "lun.readonly",
    "matchLabels",
    "maxSockets",
    "memoryDump.readOnly",
    "metadata",
    "multus.default",
    "nodeSelector",
    "overcommitGuestOverhead",
    "periodSeconds",
    "persistentVolumeClaim.readOnly",
    "physical",
    "propagationMethod",
    "requests",
    "reservation",
    "resources",
    "skipQuiesce",
    "sockets",
    "sshPublicKey.source",
    "successThreshold",
    "threads",
    "timeoutSeconds",
    "userPassword.source",
];

/// Fields whose entries users name: one that is empty is still there.
const MAPS: [&str; 5] = ["addedNodeSelector", "annotations", "labels", "matchLabels", "nodeSelector"];

/// Whether two values mean the same: an empty text or list is as good as none, so is a zero where it means nothing,
/// and amounts and durations count by their size.
///
/// Clients leave out on the way back what they found empty, which must not look like a change.
pub fn same<T: PartialEq + Serialize>(one: &T, other: &T) -> bool {
    // Nearly every change leaves most of an object as it is, to the letter.
    one == other || plain(one) == plain(other)
}

fn plain(value: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(value).unwrap_or_default();
    simplify("", &mut value, false);
    if is_nothing("", "", &value) { Value::Null } else { value }
}

/// Writes quantities and durations of the field `name` in one way and removes what means nothing.
fn simplify(name: &str, value: &mut Value, quantities: bool) {
    let quantities = quantities || QUANTITIES.contains(&name);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                simplify(name, field, quantities);
            }
            if !MAPS.contains(&name) {
                fields.retain(|field, value| !is_nothing(name, field, value));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| simplify(name, item, quantities)),
        Value::String(text) if quantities => {
            if let Ok(amount) = Amount::parse(text.trim()) {
                *text = amount.nanos().to_string();
            }
        }
        Value::String(text) if DURATIONS.contains(&name) => {
            if let Ok(length) = Duration(text.clone()).parse() {
                *text = length.to_string();
            }
        }
        _ => {}
    }
}

fn is_nothing(parent: &str, name: &str, value: &Value) -> bool {
    let zero_is_nothing = || {
        NOTHING_IS_ZERO.iter().any(|known| match known.split_once('.') {
            Some(pair) => pair == (parent, name),
            None => *known == name,
        })
    };
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(false) => zero_is_nothing(),
        Value::Object(fields) => fields.is_empty() && zero_is_nothing(),
        Value::Number(number) => number.as_i64() == Some(0) && zero_is_nothing(),
        Value::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::crd::{KINDS, schema};
    use serde_json::json;

    use super::{DURATIONS, MAPS, NOTHING_IS_ZERO, QUANTITIES, same};

    #[test]
    fn the_fields_exist() {
        let schemas: String = KINDS.iter().map(|kind| schema(kind).to_string()).collect();
        let tables = [&QUANTITIES[..], &DURATIONS, &NOTHING_IS_ZERO, &MAPS];
        // Schemas leave standard metadata to Kubernetes.
        for path in tables.into_iter().flatten().filter(|path| **path != "generation") {
            for field in path.split('.') {
                assert!(schemas.contains(&format!("\"{field}\":{{")), "{path}");
            }
        }
    }

    #[test]
    fn ways_of_writing_the_same_are_the_same() {
        let domain = |domain: serde_json::Value| json!({ "domain": domain });
        let cases = [
            ("nothing", json!({ "a": 1 }), json!({ "a": 1 }), true),
            ("a number", json!({ "a": 1 }), json!({ "a": 2 }), false),
            ("a type", json!({ "a": "x" }), json!({ "a": 1 }), false),
            ("empty text", json!({ "hostname": "" }), json!({}), true),
            ("empty list", json!({ "tolerations": [] }), json!({}), true),
            ("empty map", json!({ "nodeSelector": {} }), json!({}), true),
            ("a key without a value", json!({ "nodeSelector": { "a": "" } }), json!({}), false),
            ("plain false", json!({ "hotpluggable": false }), json!({}), true),
            ("plain true", json!({ "hotpluggable": true }), json!({}), false),
            ("false that differs from unset", json!({ "enabled": false }), json!({}), false),
            ("another choice", json!({ "preallocation": false }), json!({ "preallocation": true }), false),
            ("plain zero", domain(json!({ "cpu": { "threads": 0 } })), domain(json!({ "cpu": {} })), true),
            ("zero that differs from unset", json!({ "bootOrder": 0 }), json!({}), false),
            ("an empty object that counts", json!({ "cdrom": {} }), json!({}), false),
            (
                "a disk that can be written",
                json!({ "disk": {} }),
                json!({ "disk": { "readonly": false } }),
                true,
            ),
            (
                "a CD that can be written",
                json!({ "cdrom": {} }),
                json!({ "cdrom": { "readonly": false } }),
                false,
            ),
            (
                "not the default network",
                json!({ "multus": { "default": false } }),
                json!({ "multus": {} }),
                true,
            ),
            ("a default of another kind", json!({ "default": false }), json!({}), false),
            ("another unit", json!({ "capacity": "1Gi" }), json!({ "capacity": "1024Mi" }), true),
            ("another amount", json!({ "capacity": "1Gi" }), json!({ "capacity": "1025Mi" }), false),
            ("no amounts", json!({ "capacity": "x" }), json!({ "capacity": "y" }), false),
            (
                "units of a map",
                json!({ "requests": { "a": "1k" } }),
                json!({ "requests": { "a": "1000" } }),
                true,
            ),
            ("text that looks like an amount", json!({ "name": "1k" }), json!({ "name": "1000" }), false),
            (
                "a duration in other words",
                json!({ "ttlDuration": "60m" }),
                json!({ "ttlDuration": "1h" }),
                true,
            ),
            ("another duration", json!({ "ttlDuration": "60m" }), json!({ "ttlDuration": "2h" }), false),
            ("items", json!([{ "cores": 0 }, 1]), json!([{}, 1]), true),
            ("another item", json!([1]), json!([1, 1]), false),
            ("a list or none", json!([]), json!(null), true),
        ];
        for (case, one, other, expected) in cases {
            assert_eq!(same(&one, &other), expected, "{case}");
            assert_eq!(same(&other, &one), expected, "{case}, the other way round");
        }
    }
}
