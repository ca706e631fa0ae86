//! Whether two specifications mean the same, though they may be written differently.

use kubevirt_api::quantity::Amount;
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use serde_json::Value;

/// Fields that are quantities, and maps of them: `1Gi` is `1024Mi`.
const QUANTITIES: [&str; 7] =
    ["guest", "maxGuest", "addedOverhead", "capacity", "requests", "limits", "divisor"];

/// Fields where false, 0 or an empty object means the same as nothing.
///
/// Clients written in Go leave these out when they write an object back. Other fields tell unset from false.
const NOTHING_IS_ZERO: [&str; 26] = [
    "acpiIndex",
    "cores",
    "dedicatedCpuPlacement",
    "disableHotplug",
    "endOfInterrupt",
    "failureThreshold",
    "hidden",
    "hotpluggable",
    "initialDelaySeconds",
    "isolateEmulatorThread",
    "limits",
    "matchLabels",
    "maxSockets",
    "nodeSelector",
    "overcommitGuestOverhead",
    "periodSeconds",
    "propagationMethod",
    "readOnly",
    "requests",
    "reservation",
    "resources",
    "sockets",
    "source",
    "successThreshold",
    "threads",
    "timeoutSeconds",
];

/// Whether the two mean the same.
pub(super) fn same(a: &VirtualMachineInstanceSpec, b: &VirtualMachineInstanceSpec) -> bool {
    // Nearly every change leaves the specification as it is, to the letter.
    a == b || {
        let plain = |spec: &VirtualMachineInstanceSpec| {
            let mut value = serde_json::to_value(spec).unwrap_or_default();
            simplify(&mut value, false);
            value
        };
        plain(a) == plain(b)
    }
}

/// Writes quantities in one way and removes what means nothing.
fn simplify(value: &mut Value, quantities: bool) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                simplify(field, quantities || QUANTITIES.contains(&name.as_str()));
            }
            fields.retain(|name, field| !is_nothing(name, field));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| simplify(item, quantities)),
        Value::String(text) if quantities => {
            if let Ok(amount) = Amount::parse(text.trim()) {
                *text = amount.nanos().to_string();
            }
        }
        _ => {}
    }
}

fn is_nothing(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(false) => NOTHING_IS_ZERO.contains(&name),
        Value::Object(fields) => fields.is_empty() && NOTHING_IS_ZERO.contains(&name),
        Value::Number(number) => number.as_i64() == Some(0) && NOTHING_IS_ZERO.contains(&name),
        Value::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::base;
    use super::same;
    use crate::testing::{patched, read};

    #[test]
    fn writing_differently_is_not_a_change() {
        let devices = |devices: Value| json!({ "domain": { "devices": devices } });
        for (name, patch, expected) in [
            ("nothing", json!({}), true),
            ("other unit", json!({ "domain": { "memory": { "guest": "1048576Ki" } } }), true),
            ("other amount", json!({ "domain": { "memory": { "guest": "1048577Ki" } } }), false),
            (
                "request in another unit",
                json!({ "domain": { "resources": { "requests": { "memory": "1024Mi" } } } }),
                true,
            ),
            ("empty list", json!({ "tolerations": [] }), true),
            ("empty map", json!({ "nodeSelector": {} }), true),
            ("empty text", json!({ "hostname": "" }), true),
            ("no disks", devices(json!({ "disks": [] })), false),
            ("plain false", devices(json!({ "disableHotplug": false })), true),
            ("plain true", devices(json!({ "disableHotplug": true })), false),
            ("false that differs from unset", devices(json!({ "autoattachMemBalloon": false })), false),
            ("empty object that counts", devices(json!({ "rng": {} })), false),
            ("plain zero", json!({ "domain": { "cpu": { "threads": 0 } } }), true),
            ("zero that differs from unset", json!({ "terminationGracePeriodSeconds": 0 }), false),
        ] {
            let spec = |patch: &Value| read(patched(&base()["spec"], patch));
            assert_eq!(same(&spec(&json!({})), &spec(&patch)), expected, "{name}");
        }
    }
}
