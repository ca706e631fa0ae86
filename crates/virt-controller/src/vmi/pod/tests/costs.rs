//! What machines cost beside their guests.

use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use super::super::overhead;
use super::cases::defaulted;

fn config(configuration: Value) -> ClusterConfig {
    ClusterConfig::of(&serde_json::from_value(json!({ "spec": { "configuration": configuration } })).unwrap())
}

/// MiB beside a guest of 128 MiB with two disks.
fn cost(patch: Value, config: &ClusterConfig) -> i64 {
    let mut vmi = json!({
        "metadata": { "name": "a", "namespace": "default", "uid": "u" },
        "spec": {
            "domain": {
                "memory": { "guest": "128Mi" },
                "devices": { "disks": [{ "name": "a" }, { "name": "b" }], "interfaces": [{ "name": "d", "masquerade": {} }] },
            },
            "networks": [{ "name": "d", "pod": {} }],
        },
    });
    merge(&mut vmi["spec"], patch);
    let vmi: VirtualMachineInstance = serde_json::from_value(vmi).unwrap();
    let bytes = overhead(&defaulted(vmi, config), config).value();
    assert_eq!(bytes % (1 << 20), 0);
    bytes >> 20
}

fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            over.into_iter().for_each(|(key, value)| merge(base.entry(key).or_insert(Value::Null), value));
        }
        (base, over) => *base = over,
    }
}

#[test]
fn a_small_machine_costs_less_than_a_hundred_mib() {
    let emulated = config(json!({ "developerConfiguration": { "useEmulation": true } }));
    assert_eq!(cost(json!({}), &emulated), 95);
    assert_eq!(cost(json!({}), &ClusterConfig::default()), 63);
}

#[test]
fn each_thing_costs_what_it_should() {
    let usual = ClusterConfig::default();
    let base = cost(json!({}), &usual);
    let devices = |devices: Value| json!({ "domain": { "devices": devices } });
    let security = |security: Value| json!({ "domain": { "launchSecurity": security } });
    let probe = json!({ "exec": { "command": ["true"] } });
    let cases = [
        (json!({ "domain": { "cpu": { "cores": 4 } } }), 6),
        (json!({ "domain": { "memory": { "guest": "8Gi" } } }), 15),
        (
            json!({ "domain": { "ioThreadsPolicy": "supplementalPool", "ioThreads": { "supplementalPoolThreadCount": 3 } } }),
            4,
        ),
        (json!({ "domain": { "ioThreadsPolicy": "shared" } }), 1),
        (devices(json!({ "autoattachGraphicsDevice": false })), -18),
        (devices(json!({ "tpm": {} })), 12),
        (devices(json!({ "tpm": { "enabled": false } })), 0),
        (devices(json!({ "gpus": [{ "name": "g", "deviceName": "d" }] })), 1024),
        (devices(json!({ "disks": [{ "name": "a" }] })), -1),
        (security(json!({ "sev": {} })), 256),
        (security(json!({ "tdx": {} })), 0),
        (json!({ "domain": { "firmware": { "bootloader": { "efi": { "secureBoot": false } } } } }), 8),
        (json!({ "domain": { "firmware": { "kernelBoot": { "container": { "image": "k" } } } } }), 32),
        (json!({ "readinessProbe": probe }), 32),
        (json!({ "readinessProbe": probe, "livenessProbe": { "guestAgentPing": {} } }), 40),
        (json!({ "readinessProbe": { "tcpSocket": { "port": 1 } } }), 0),
        (json!({ "domain": { "memory": { "reservedOverhead": { "addedOverhead": "100Mi" } } } }), 100),
        (json!({ "domain": { "cpu": { "cores": 1, "dedicatedCpuPlacement": true } } }), 48),
        (json!({ "domain": { "resources": { "limits": { "memory": "256Mi" } } } }), 48),
        (json!({ "architecture": "arm64" }), 128),
    ];
    for (patch, more) in cases {
        assert_eq!(cost(patch.clone(), &usual) - base, more, "{patch}");
    }
}

#[test]
fn a_cluster_can_ask_for_more() {
    let more = config(json!({ "additionalGuestMemoryOverheadRatio": "1.5" }));
    // 62.25 MiB and half as much.
    assert_eq!(cost(json!({}), &more), 94);
    for nonsense in ["", "x", "-1", "NaN", "1e300"] {
        let config = config(json!({ "additionalGuestMemoryOverheadRatio": nonsense }));
        assert_eq!(cost(json!({}), &config), 63, "{nonsense}");
    }
}

#[test]
fn no_number_is_too_large() {
    let most = json!({ "domain": {
        "cpu": { "cores": i32::MAX, "sockets": i32::MAX, "threads": i32::MAX },
        "memory": { "guest": "9223372036854775807" },
    } });
    assert!(cost(most, &ClusterConfig::default()) > 1 << 30);
}
