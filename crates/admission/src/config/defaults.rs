//! What holds where `KubeVirt` says nothing, and what counts as saying nothing.

use kubevirt_api::names::taints;
use serde_json::{Value, json};

use super::HOST_ARCHITECTURE;

/// The settings that are given, with the defaults for all others.
pub(super) fn under(mut given: Value) -> Value {
    let mut merged = defaults();
    if !given.is_null() {
        remove_unset(&mut given);
        merge(&mut merged, given);
    }
    merged
}

fn defaults() -> Value {
    let limiter = |qps: u32, burst: u32| json!({ "restClient": { "rateLimiter": { "tokenBucketRateLimiter": { "qps": qps, "burst": burst } } } });
    let machine = |firmware: &str, machines: &[&str], machine: &str| json!({ "ovmfPath": firmware, "emulatedMachines": machines, "machineType": machine });
    json!({
        "imagePullPolicy": "IfNotPresent",
        "developerConfiguration": {
            "useEmulation": false,
            "memoryOvercommit": 100,
            "pvcTolerateLessSpaceUpToPercent": 10,
            "minimumReservePVCBytes": 131_072,
            "cpuAllocationRatio": 10,
            "diskVerification": { "memoryLimit": "2000Mi" },
            "logVerbosity": {
                "virtAPI": 2, "virtOperator": 2, "virtController": 2, "virtHandler": 2, "virtLauncher": 2,
            },
        },
        "evictionStrategy": "None",
        "migrations": {
            "parallelMigrationsPerCluster": 5,
            "parallelOutboundMigrationsPerNode": 2,
            "nodeDrainTaintKey": taints::DRAIN,
            "bandwidthPerMigration": "0Mi",
            "progressTimeout": 150,
            "completionTimeoutPerGiB": 150,
            "maxDowntimeMs": 900,
            "utilityVolumesTimeout": 150,
            "unsafeMigrationOverride": false,
            "allowAutoConverge": false,
            "allowPostCopy": false,
        },
        "cpuRequest": "100m",
        "network": {
            "defaultNetworkInterface": "bridge",
            "permitSlirpInterface": false,
            "permitBridgeInterfaceOnPodNetwork": true,
        },
        "smbios": { "family": "KubeVirt", "manufacturer": "KubeVirt", "product": "None" },
        "supportedGuestAgentVersions": ["2.*", "3.*", "4.*", "5.*"],
        "memBalloonStatsPeriod": 10,
        "apiConfiguration": limiter(200, 400),
        "controllerConfiguration": limiter(200, 400),
        "handlerConfiguration": limiter(50, 100),
        "webhookConfiguration": limiter(200, 400),
        "architectureConfiguration": {
            "amd64": machine("/usr/share/edk2/ovmf", &["q35*", "pc-q35*"], "q35"),
            "arm64": machine("/usr/share/AAVMF", &["virt*"], "virt"),
            "s390x": machine("", &["s390-ccw-virtio*"], "s390-ccw-virtio"),
            "defaultArchitecture": HOST_ARCHITECTURE,
        },
        "liveUpdateConfiguration": { "maxHotplugRatio": 4 },
        "vmRolloutStrategy": "LiveUpdate",
        "hypervisors": [{ "name": "kvm" }],
    })
}

/// Settings where a zero or an empty text is not stored by the original, so that the default holds.
///
/// Of the others a zero is a choice, such as no timeout or no bridges on the pod network.
const UNSET_IF_ZERO: [&str; 22] = [
    "cpuAllocationRatio",
    "cpuModel",
    "defaultArchitecture",
    "defaultNetworkInterface",
    "defaultRuntimeClass",
    "family",
    "imagePullPolicy",
    "machineType",
    "manufacturer",
    "maxHotplugRatio",
    "memoryOvercommit",
    "minimumReservePVCBytes",
    "ovmfPath",
    "product",
    "pvcTolerateLessSpaceUpToPercent",
    "selinuxLauncherType",
    "virtAPI",
    "virtController",
    "virtHandler",
    "virtLauncher",
    "virtOperator",
    "vmStateStorageClass",
];

/// Removes what counts as not set: such zeros, and lists without items.
fn remove_unset(settings: &mut Value) {
    let Value::Object(settings) = settings else { return };
    settings.retain(|name, value| match value {
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !(text.is_empty() && UNSET_IF_ZERO.contains(&name.as_str())),
        Value::Number(number) => !(number.as_f64() == Some(0.0) && UNSET_IF_ZERO.contains(&name.as_str())),
        _ => true,
    });
    settings.values_mut().for_each(remove_unset);
}

/// Lays `over` onto `base`: objects field by field, anything else whole.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClusterConfig;

    #[test]
    fn the_defaults_are_a_configuration_that_loses_nothing() {
        let back = serde_json::to_value(ClusterConfig::default().configuration()).unwrap();
        let integers = |value: &Value| value.to_string().replace(".0,", ",").replace(".0}", "}");
        assert_eq!(integers(&back), integers(&defaults()));
    }

    #[test]
    fn a_zero_that_means_nothing_leaves_the_default() {
        let developer = |field: &str, value: Value| json!({ "developerConfiguration": { field: value } });
        let migrations = |field: &str, value: Value| json!({ "migrations": { field: value } });
        let at = |section: &str, field: &str| format!("/{section}/{field}");
        let cases = [
            (
                developer("memoryOvercommit", json!(0)),
                at("developerConfiguration", "memoryOvercommit"),
                json!(100),
            ),
            (
                developer("memoryOvercommit", json!(150)),
                at("developerConfiguration", "memoryOvercommit"),
                json!(150),
            ),
            (
                developer("cpuAllocationRatio", json!(0)),
                at("developerConfiguration", "cpuAllocationRatio"),
                json!(10),
            ),
            (
                developer("cpuAllocationRatio", json!(1)),
                at("developerConfiguration", "cpuAllocationRatio"),
                json!(1),
            ),
            (
                developer("pvcTolerateLessSpaceUpToPercent", json!(0)),
                at("developerConfiguration", "pvcTolerateLessSpaceUpToPercent"),
                json!(10),
            ),
            (
                developer("minimumReservePVCBytes", json!(0)),
                at("developerConfiguration", "minimumReservePVCBytes"),
                json!(131_072),
            ),
            (
                developer("logVerbosity", json!({ "virtHandler": 0, "virtAPI": 5 })),
                at("developerConfiguration", "logVerbosity"),
                json!({ "virtAPI": 5, "virtOperator": 2, "virtController": 2, "virtHandler": 2, "virtLauncher": 2 }),
            ),
            (json!({ "imagePullPolicy": "" }), "/imagePullPolicy".into(), json!("IfNotPresent")),
            (
                json!({ "network": { "defaultNetworkInterface": "" } }),
                at("network", "defaultNetworkInterface"),
                json!("bridge"),
            ),
            (
                json!({ "network": { "permitBridgeInterfaceOnPodNetwork": false } }),
                at("network", "permitBridgeInterfaceOnPodNetwork"),
                json!(false),
            ),
            (
                json!({ "smbios": { "family": "", "product": "Own" } }),
                "/smbios".into(),
                json!({ "family": "KubeVirt", "manufacturer": "KubeVirt", "product": "Own" }),
            ),
            (
                json!({ "architectureConfiguration": { "amd64": { "machineType": "", "emulatedMachines": [] } } }),
                at("architectureConfiguration", "amd64"),
                json!({
                    "ovmfPath": "/usr/share/edk2/ovmf", "emulatedMachines": ["q35*", "pc-q35*"], "machineType": "q35",
                }),
            ),
            (
                json!({ "liveUpdateConfiguration": { "maxHotplugRatio": 0 } }),
                at("liveUpdateConfiguration", "maxHotplugRatio"),
                json!(4),
            ),
            (
                json!({ "liveUpdateConfiguration": { "maxCpuSockets": 0 } }),
                at("liveUpdateConfiguration", "maxCpuSockets"),
                json!(0),
            ),
            (json!({ "hypervisors": [] }), "/hypervisors".into(), json!([{ "name": "kvm" }])),
            (json!({ "cpuModel": "" }), "/cpuModel".into(), Value::Null),
            (json!({ "memBalloonStatsPeriod": 0 }), "/memBalloonStatsPeriod".into(), json!(0)),
            (migrations("progressTimeout", json!(0)), at("migrations", "progressTimeout"), json!(0)),
            (migrations("nodeDrainTaintKey", json!("")), at("migrations", "nodeDrainTaintKey"), json!("")),
            (json!({ "evictionStrategy": "" }), "/evictionStrategy".into(), json!("")),
        ];
        for (configuration, pointer, expected) in cases {
            let kubevirt = json!({ "spec": { "configuration": configuration } });
            let config = ClusterConfig::of(&serde_json::from_value(kubevirt).unwrap());
            let merged = serde_json::to_value(config.configuration()).unwrap();
            let found = merged.pointer(&pointer).cloned().unwrap_or_default();
            assert_eq!(found, expected, "{configuration}");
        }
    }
}
