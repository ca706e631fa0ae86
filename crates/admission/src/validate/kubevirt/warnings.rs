//! Settings that are taken but should be looked at: what is deprecated, and what the components cannot use.

use kubevirt_api::kubevirt::configuration::KubeVirtConfiguration;

use super::configuration::gates_changed;
use crate::gates::Stage;
use crate::{Gate, Problems};

/// Tells the user about settings without refusing them.
pub fn warn(new: &KubeVirtConfiguration, old: &KubeVirtConfiguration, problems: &mut Problems) {
    let developer = new.developer_configuration.as_ref();
    if gates_changed(new, old) {
        for gate in developer.and_then(|developer| developer.feature_gates.as_deref()).unwrap_or_default() {
            if let Some(warning) = Gate::named(gate).and_then(about_gate) {
                problems.warn(format!("feature gate {gate} {warning}"));
            }
        }
    }
    if let Some(devices) = &new.mediated_devices_configuration {
        let path = "spec.configuration.mediatedDevicesConfiguration";
        if devices.mediated_devices_types.is_some() {
            problems.warn(format!("{path}.mediatedDevicesTypes is deprecated; use mediatedDeviceTypes"));
        }
        for (index, node) in devices.node_mediated_device_types.iter().flatten().enumerate() {
            if node.mediated_devices_types.is_some() {
                problems.warn(format!(
                    "{path}.nodeMediatedDeviceTypes[{index}].mediatedDevicesTypes is deprecated; use mediatedDeviceTypes"
                ));
            }
        }
    }
    if new.architecture_configuration.as_ref().is_some_and(|all| all.ppc64le.is_some()) {
        problems.warn(
            "spec.configuration.architectureConfiguration.ppc64le is no longer supported and does nothing",
        );
    }
    for unusable in unusable(new) {
        problems.warn(format!(
            "spec.configuration.{unusable}; the components go on with the last settings they could use"
        ));
    }
}

/// What the configuration should say instead of naming this gate.
fn about_gate(gate: Gate) -> Option<&'static str> {
    match gate.stage() {
        Stage::Alpha | Stage::Beta => None,
        Stage::GeneralAvailability => Some("is always on; it can be left away"),
        Stage::Deprecated => Some("is deprecated and will be removed"),
        Stage::Discontinued => Some("is for a feature that is gone; it can be left away"),
    }
}

/// Values that are accepted in the object but that no component can work with.
fn unusable(new: &KubeVirtConfiguration) -> Vec<String> {
    let mut found = Vec::new();
    let mut expect = |holds: bool, text: String| {
        if !holds {
            found.push(text);
        }
    };
    let policy = new.image_pull_policy.as_deref().unwrap_or_default();
    expect(
        ["", "Always", "Never", "IfNotPresent"].contains(&policy),
        format!("imagePullPolicy {policy:?} is not one of Always, Never and IfNotPresent"),
    );
    if let Some(developer) = &new.developer_configuration {
        // A zero is left away when the configuration is read, and so means the default.
        let overcommit = developer.memory_overcommit.unwrap_or_default();
        expect(overcommit >= 0, format!("developerConfiguration.memoryOvercommit {overcommit} is negative"));
        let ratio = developer.cpu_allocation_ratio.unwrap_or_default();
        expect(ratio >= 0, format!("developerConfiguration.cpuAllocationRatio {ratio} is negative"));
        let less = developer.pvc_tolerate_less_space_up_to_percent.unwrap_or_default();
        expect(
            (0..=100).contains(&less),
            format!("developerConfiguration.pvcTolerateLessSpaceUpToPercent {less} is not from 0 to 100"),
        );
    }
    let network = new.network.as_ref().and_then(|network| network.default_network_interface.as_deref());
    let interface = network.unwrap_or_default();
    expect(
        ["", "bridge", "slirp", "masquerade"].contains(&interface),
        format!("network.defaultNetworkInterface {interface:?} is not one of bridge and masquerade"),
    );
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::read;

    fn count(new: Value, old: Value) -> usize {
        let mut problems = Problems::default();
        warn(&read(new), &read(old), &mut problems);
        assert!(problems.is_empty());
        problems.warnings().len()
    }

    #[test]
    fn what_is_deprecated_is_named() {
        let gates = |gates: &[&str]| json!({ "developerConfiguration": { "featureGates": gates } });
        let cases = [
            ("nothing", json!({}), 0),
            ("alpha and beta", gates(&["HostDisk", "Snapshot", "NoSuchGate"]), 0),
            ("always on, deprecated and gone", gates(&["LiveMigration", "HotplugVolumes", "Macvtap"]), 3),
            ("types", json!({ "mediatedDevicesConfiguration": { "mediatedDevicesTypes": ["a"] } }), 1),
            ("new types", json!({ "mediatedDevicesConfiguration": { "mediatedDeviceTypes": ["a"] } }), 0),
            (
                "types of nodes",
                json!({ "mediatedDevicesConfiguration": { "nodeMediatedDeviceTypes": [
                    { "nodeSelector": {}, "mediatedDevicesTypes": ["a"] },
                    { "nodeSelector": {}, "mediatedDeviceTypes": ["a"] },
                    { "nodeSelector": {}, "mediatedDevicesTypes": ["a"] },
                ] } }),
                2,
            ),
            ("ppc64le", json!({ "architectureConfiguration": { "ppc64le": {} } }), 1),
            ("amd64", json!({ "architectureConfiguration": { "amd64": {} } }), 0),
        ];
        for (case, new, expected) in cases {
            assert_eq!(count(new, json!({})), expected, "{case}");
        }
        assert_eq!(count(gates(&["LiveMigration"]), gates(&["LiveMigration"])), 0);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let developer = |field: &str, value: i64| json!({ "developerConfiguration": { field: value } });
        let cases = [
            (json!({ "imagePullPolicy": "Always" }), 0),
            (json!({ "imagePullPolicy": "Sometimes" }), 1),
            (developer("memoryOvercommit", 150), 0),
            (developer("memoryOvercommit", -1), 1),
            (developer("cpuAllocationRatio", 10), 0),
            (developer("cpuAllocationRatio", -1), 1),
            (developer("pvcTolerateLessSpaceUpToPercent", 100), 0),
            (developer("pvcTolerateLessSpaceUpToPercent", 101), 1),
            (json!({ "network": { "defaultNetworkInterface": "masquerade" } }), 0),
            (json!({ "network": { "defaultNetworkInterface": "passt" } }), 1),
        ];
        for (new, expected) in cases {
            assert_eq!(count(new.clone(), json!({})), expected, "{new}");
        }
    }
}
