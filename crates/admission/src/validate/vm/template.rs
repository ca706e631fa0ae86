//! What users may write on the instances of a machine, a pool or a replica set, beside their specification.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use crate::{Context, Gate, Path, Problems};

/// Labels that only our own components write.
const RESERVED_LABELS: [&str; 6] = [
    "kubevirt.io/created-by",
    "kubevirt.io/migrationJobUID",
    "kubevirt.io/nodeName",
    "kubevirt.io/migrationTargetNodeName",
    "kubevirt.io/schedulable",
    "kubevirt.io/install-strategy",
];

/// Annotations that do nothing unless a feature is on.
const GATED_ANNOTATIONS: [(&str, Gate); 2] =
    [("kubevirt.io/ignitiondata", Gate::Ignition), ("hooks.kubevirt.io/hookSidecars", Gate::Sidecar)];

/// Annotations that take from an instance what passing a Grace GPU through needs.
const AGAINST_GRACE: [(&str, &str); 2] = [
    ("kubevirt.io/placePCIDevicesOnRootComplex", "which need a topology of their own"),
    ("kubevirt.io/disablePCIHole64", "which need the 64-bit PCI hole"),
];

/// Checks the metadata of instances that stands at `path`.
pub(crate) fn check_metadata(
    cx: &Context<'_>,
    path: &Path<'_>,
    metadata: Option<&ObjectMeta>,
    problems: &mut Problems,
) {
    let Some(metadata) = metadata else { return };
    let labels = metadata.labels.as_ref();
    let reserved: Vec<&str> = RESERVED_LABELS
        .into_iter()
        .filter(|name| labels.is_some_and(|labels| labels.contains_key(*name)))
        .collect();
    if !reserved.is_empty() && !cx.by_own_component() {
        problems.not_supported(
            &path.at("labels"),
            format!("these are for our own components: {}", reserved.join(", ")),
        );
    }
    for (name, gate) in GATED_ANNOTATIONS {
        let set = value(metadata.annotations.as_ref(), name).is_some_and(|value| !value.is_empty());
        if set && !cx.config.enabled(gate) {
            problems
                .invalid(&path.at("annotations"), format!("{name} needs the feature gate {}", gate.name()));
        }
    }
}

/// Checks the annotations of instances, whose metadata stands at `path`, against the devices that they use.
pub(crate) fn check_annotations(
    cx: &Context<'_>,
    path: &Path<'_>,
    metadata: Option<&ObjectMeta>,
    vmi: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let annotations = metadata.and_then(|metadata| metadata.annotations.as_ref());
    if annotations.is_none_or(BTreeMap::is_empty) || !uses_grace_gpu(cx, vmi) {
        return;
    }
    let field = path.at("annotations");
    for (name, why) in AGAINST_GRACE {
        if value(annotations, name) == Some("true") {
            problems.invalid(&field.key(name), format!("does not go with NVIDIA Grace GPUs, {why}"));
        }
    }
}

/// Refuses network bindings that are gone, where the configuration still names their gates.
pub(crate) fn check_discontinued(
    cx: &Context<'_>,
    vmi: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let developer = cx.config.configuration().developer_configuration.as_ref();
    let gates = developer.and_then(|developer| developer.feature_gates.as_deref()).unwrap_or_default();
    let interfaces = vmi.domain.devices.interfaces.iter().flatten();
    for gate in gates {
        let used = match Gate::named(gate) {
            Some(Gate::Passt) => interfaces.clone().any(|interface| interface.passt.is_some()),
            Some(Gate::Macvtap) => interfaces.clone().any(|interface| interface.macvtap.is_some()),
            _ => false,
        };
        if used {
            let binding = gate.to_lowercase();
            problems.not_supported(
                &Path::new(""),
                format!("the network binding {binding} is gone since v1.3; use a binding plugin instead"),
            );
        }
    }
}

fn value<'a>(annotations: Option<&'a BTreeMap<String, String>>, name: &str) -> Option<&'a str> {
    annotations?.get(name).map(String::as_str)
}

/// Whether the instance asks for a permitted PCI device that is a Grace GPU.
fn uses_grace_gpu(cx: &Context<'_>, vmi: &VirtualMachineInstanceSpec) -> bool {
    let devices = &vmi.domain.devices;
    let gpus = devices.gpus.iter().flatten().map(|gpu| gpu.device_name.as_deref());
    let others = devices.host_devices.iter().flatten().map(|device| device.device_name.as_deref());
    let permitted = cx.config.permitted_host_devices().and_then(|all| all.pci_host_devices.as_deref());
    // The last entry of a resource holds where it is listed twice.
    let selectors: BTreeMap<&str, &str> = permitted
        .unwrap_or_default()
        .iter()
        .filter(|device| !device.pci_vendor_selector.is_empty())
        .map(|device| (device.resource_name.as_str(), device.pci_vendor_selector.as_str()))
        .collect();
    gpus.chain(others)
        .flatten()
        .filter(|name| !name.is_empty())
        .any(|name| selectors.get(name).is_some_and(|selector| is_grace_gpu(selector)))
}

/// Whether `vendor:device` is one of NVIDIA's Grace GPUs.
fn is_grace_gpu(selector: &str) -> bool {
    let id = |text: &str| {
        let id = text.trim().to_ascii_uppercase();
        id.strip_prefix("0X").map_or(id.clone(), str::to_owned)
    };
    selector.split_once(':').is_some_and(|(vendor, device)| {
        id(vendor) == "10DE" && ["2342", "2348", "2941"].contains(&id(device).as_str())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, read};

    fn metadata_problems(world: &World, metadata: Value) -> Problems {
        let mut problems = Problems::default();
        let metadata = read(metadata);
        world.run(|cx| check_metadata(cx, &Path::new("metadata"), Some(&metadata), &mut problems));
        problems
    }

    #[test]
    fn reserved_labels_are_for_our_own_components() {
        for label in RESERVED_LABELS {
            let metadata = json!({ "labels": { label: "x" } });
            assert_fields(
                label,
                &metadata_problems(&World::default(), metadata.clone()),
                &["metadata.labels"],
            );
            assert_fields(label, &metadata_problems(&World::default().by_controller(), metadata), &[]);
        }
        let two = json!({ "labels": { "kubevirt.io/nodeName": "a", "kubevirt.io/created-by": "b" } });
        assert_fields("one problem", &metadata_problems(&World::default(), two), &["metadata.labels"]);
        let other = json!({ "labels": { "kubevirt.io/domain": "a", "app": "b" } });
        assert_fields("other labels", &metadata_problems(&World::default(), other), &[]);
    }

    #[test]
    fn annotations_behind_gates() {
        let cases = [
            ("kubevirt.io/ignitiondata", "ExperimentalIgnitionSupport"),
            ("hooks.kubevirt.io/hookSidecars", "Sidecar"),
        ];
        for (annotation, gate) in cases {
            let metadata = |text: &str| json!({ "annotations": { annotation: text } });
            let off = World::default();
            assert_fields(gate, &metadata_problems(&off, metadata("x")), &["metadata.annotations"]);
            assert_fields(gate, &metadata_problems(&off, metadata("")), &[]);
            assert_fields(gate, &metadata_problems(&off.with_gates(&[gate]), metadata("x")), &[]);
        }
        let both = json!({ "annotations": { "kubevirt.io/ignitiondata": "x", "hooks.kubevirt.io/hookSidecars": "y" } });
        let expected = ["metadata.annotations", "metadata.annotations"];
        assert_fields("both", &metadata_problems(&World::default(), both), &expected);
    }

    #[test]
    fn annotations_against_grace_gpus() {
        let world = |selector: &str| {
            World::default().with_configuration(json!({ "permittedHostDevices": { "pciHostDevices": [
                { "pciVendorSelector": selector, "resourceName": "nvidia.com/gh200" },
            ] } }))
        };
        let root = "metadata.annotations[kubevirt.io/placePCIDevicesOnRootComplex]";
        let hole = "metadata.annotations[kubevirt.io/disablePCIHole64]";
        let metadata: ObjectMeta = read(json!({ "annotations": {
            "kubevirt.io/placePCIDevicesOnRootComplex": "true", "kubevirt.io/disablePCIHole64": "true",
        } }));
        let gpu = json!({ "gpus": [{ "name": "g", "deviceName": "nvidia.com/gh200" }] });
        let host_device = json!({ "hostDevices": [{ "name": "g", "deviceName": "nvidia.com/gh200" }] });
        let cases = [
            ("gpu", "10DE:2342", gpu.clone(), &[root, hole][..]),
            ("host device", "0x10de:2348", host_device, &[root, hole]),
            ("another gpu", "10DE:2330", gpu.clone(), &[]),
            ("any gpu", "10DE:*", gpu.clone(), &[]),
            ("no selector", "gpu", gpu, &[]),
            ("no device", "10DE:2342", json!({}), &[]),
            ("not permitted", "10DE:2342", json!({ "gpus": [{ "name": "g", "deviceName": "x/y" }] }), &[]),
        ];
        for (case, selector, devices, expected) in cases {
            let vmi = read(json!({ "domain": { "devices": devices } }));
            let mut problems = Problems::default();
            world(selector).run(|cx| {
                check_annotations(cx, &Path::new("metadata"), Some(&metadata), &vmi, &mut problems);
            });
            assert_fields(case, &problems, expected);
        }
    }

    #[test]
    fn bindings_that_are_gone() {
        let vmi = read(json!({ "domain": { "devices": { "interfaces": [
            { "name": "a", "macvtap": {} }, { "name": "b", "passt": {} },
        ] } } }));
        let found = |gates: &[&str]| {
            let mut problems = Problems::default();
            World::default().with_gates(gates).run(|cx| check_discontinued(cx, &vmi, &mut problems));
            problems
        };
        assert_fields("no gate", &found(&[]), &[]);
        assert_fields("passt", &found(&["Passt"]), &[""]);
        assert_fields("macvtap", &found(&["Macvtap"]), &[""]);
        assert_fields("both", &found(&["Macvtap", "Passt"]), &["", ""]);
        assert_fields("another gate", &found(&["PasstIPStackMigration", "HostDisk"]), &[]);
    }
}
