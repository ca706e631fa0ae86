//! The marks on a new instance: who waits for its end, and what the cluster decided for it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubevirt_api::names::annotations::{
    EMULATOR_THREAD_EVEN_PARITY, LATEST_OBSERVED_API_VERSION, PCI_TOPOLOGY_VERSION, QGS_SOCKET_PATH,
    STORAGE_OBSERVED_API_VERSION,
};
use kubevirt_api::names::finalizers::FOREGROUND_DELETE;
use kubevirt_api::names::values::pci_topology;
use kubevirt_api::vmi::VirtualMachineInstance;

use super::machine;
use crate::{ClusterConfig, Gate};

/// The version in which objects are known and stored.
const API_VERSION: &str = "v1";

/// Marks a new instance whose specification is complete.
pub fn mark(config: &ClusterConfig, vmi: &mut VirtualMachineInstance) {
    if machine::has_pcie_ports(&vmi.spec) {
        mark_pci_topology(&mut vmi.metadata);
    }
    let domain = &vmi.spec.domain;
    let annotations = &mut vmi.metadata.annotations;
    let isolated = domain.cpu.as_ref().is_some_and(|cpu| cpu.isolate_emulator_thread == Some(true));
    let even = config.annotation(EMULATOR_THREAD_EVEN_PARITY).is_some() && config.enabled(Gate::AlignCpus);
    if isolated && even {
        annotations.get_or_insert_default().insert(EMULATOR_THREAD_EVEN_PARITY.to_owned(), String::new());
    }
    let is_tdx = domain.launch_security.as_ref().is_some_and(|security| security.tdx.is_some());
    let socket = config.quote_socket();
    if is_tdx && !socket.is_empty() {
        annotations.get_or_insert_default().insert(QGS_SOCKET_PATH.to_owned(), socket.to_owned());
    }
    add_finalizer(&mut vmi.metadata, FOREGROUND_DELETE);
}

/// Records the API versions that are known here, which spares the controller a write of its own.
pub fn mark_versions(metadata: &mut ObjectMeta) {
    let annotations = metadata.annotations.get_or_insert_default();
    for name in [LATEST_OBSERVED_API_VERSION, STORAGE_OBSERVED_API_VERSION] {
        annotations.insert(name.to_owned(), API_VERSION.to_owned());
    }
}

/// Records how PCI ports are laid out, so that a later version does not move the devices of this guest.
pub fn mark_pci_topology(metadata: &mut ObjectMeta) {
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.entry(PCI_TOPOLOGY_VERSION.to_owned()).or_insert_with(|| pci_topology::V3.to_owned());
}

/// Adds a finalizer that is not there yet.
pub fn add_finalizer(metadata: &mut ObjectMeta, finalizer: &str) {
    let finalizers = metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|other| other == finalizer) {
        finalizers.push(finalizer.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, patched, read};

    fn annotations(config: &ClusterConfig, patch: &Value) -> Value {
        let base = json!({ "spec": { "domain": { "devices": {} } } });
        let mut vmi: VirtualMachineInstance = read(patched(&base, patch));
        mark(config, &mut vmi);
        serde_json::to_value(vmi.metadata.annotations).unwrap()
    }

    #[test]
    fn the_pci_topology_is_recorded_where_there_are_ports() {
        let v3 = json!({ PCI_TOPOLOGY_VERSION: "v3" });
        let cases = [
            ("amd64", json!({ "type": "q35" }), &v3),
            ("amd64", json!({ "type": "pc-q35-9.0" }), &v3),
            ("amd64", json!({ "type": "pc-i440fx-2.0" }), &Value::Null),
            ("amd64", json!({}), &Value::Null),
            ("amd64", Value::Null, &v3),
            ("arm64", json!({ "type": "virt-9.0" }), &v3),
            ("", json!({ "type": "q35" }), &v3),
            ("s390x", json!({ "type": "s390-ccw-virtio" }), &Value::Null),
            ("s390x", json!({ "type": "virt" }), &Value::Null),
        ];
        for (architecture, machine, expected) in cases {
            let patch = json!({ "spec": { "architecture": architecture, "domain": { "machine": machine } } });
            assert_eq!(&annotations(&ClusterConfig::default(), &patch), expected, "{architecture} {machine}");
        }
        let own = json!({ "metadata": { "annotations": { PCI_TOPOLOGY_VERSION: "v1" } } });
        assert_eq!(annotations(&ClusterConfig::default(), &own), json!({ PCI_TOPOLOGY_VERSION: "v1" }));
    }

    #[test]
    fn an_isolated_emulator_gets_an_even_share_if_the_cluster_says_so() {
        let config = |gates: Value, annotations: Value| {
            ClusterConfig::of(&read(json!({
                "metadata": { "annotations": annotations },
                "spec": { "configuration": { "developerConfiguration": { "featureGates": gates } } },
            })))
        };
        let even = json!({ EMULATOR_THREAD_EVEN_PARITY: "" });
        let isolated = json!({ "spec": { "domain": { "cpu": { "isolateEmulatorThread": true } } } });
        for (case, config, patch, expected) in [
            ("all", config(json!(["AlignCPUs"]), even.clone()), &isolated, true),
            ("no gate", config(json!([]), even.clone()), &isolated, false),
            ("no annotation", config(json!(["AlignCPUs"]), json!({})), &isolated, false),
            ("not isolated", config(json!(["AlignCPUs"]), even.clone()), &json!({}), false),
        ] {
            assert_eq!(
                annotations(&config, patch).get(EMULATOR_THREAD_EVEN_PARITY).is_some(),
                expected,
                "{case}"
            );
        }
    }

    #[test]
    fn a_tdx_guest_knows_where_quotes_are_made() {
        let tdx = json!({ "spec": { "domain": { "launchSecurity": { "tdx": {} } } } });
        let config = |path: Value| {
            let tdx = json!({ "attestation": { "qgsSocketPath": path } });
            World::default().with_configuration(json!({ "confidentialCompute": { "tdx": tdx } })).config
        };
        let cases = [
            (ClusterConfig::default(), &tdx, json!("/var/run/tdx-qgs/qgs.socket")),
            (config(json!("/run/q")), &tdx, json!("/run/q")),
            (config(json!("")), &tdx, Value::Null),
            (ClusterConfig::default(), &json!({}), Value::Null),
        ];
        for (config, patch, expected) in cases {
            assert_eq!(annotations(&config, patch)[QGS_SOCKET_PATH], expected, "{patch}");
        }
    }

    #[test]
    fn a_finalizer_is_added_once() {
        let mut metadata: ObjectMeta = read(json!({ "finalizers": ["a"] }));
        add_finalizer(&mut metadata, "b");
        add_finalizer(&mut metadata, "b");
        assert_eq!(metadata.finalizers.unwrap(), ["a", "b"]);
    }
}
