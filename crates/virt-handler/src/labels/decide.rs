//! Which labels a node has: from the facts and the configuration, without looking at anything.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::names::{annotations, labels};
use serde_json::{Value, json};

use super::facts::Facts;
use super::obsolete;

/// What the keys of our labels start with; other labels are left alone.
const OURS: [&str; 17] = [
    labels::CPU_FEATURE_PREFIX,
    labels::CPU_MODEL_PREFIX,
    labels::CPU_MODEL_MIGRATION_PREFIX,
    labels::CPU_TIMER_PREFIX,
    labels::CPU_VENDOR_PREFIX,
    labels::HYPERV_PREFIX,
    labels::MACHINE_TYPE_PREFIX,
    labels::HOST_MODEL_CPU_PREFIX,
    labels::HOST_MODEL_REQUIRED_FEATURES_PREFIX,
    labels::OBSOLETE_HOST_MODEL,
    labels::VM_ARCH_PREFIX,
    labels::REALTIME,
    labels::SEV,
    labels::SEV_ES,
    labels::SEV_SNP,
    labels::SECURE_EXECUTION,
    labels::TDX,
];

/// The labels that tell of the facts. `realtime` is whether the kernel lets real-time threads run without a pause.
pub fn labels(facts: &Facts, config: &ClusterConfig, realtime: bool) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut add = |key: String, value: &str| {
        // Names come from QEMU; one that cannot be a key would fail the whole patch.
        if is_key(&key) {
            all.insert(key, value.to_owned());
        }
    };
    let mut mark = |prefix: &str, name: &str| add(format!("{prefix}{name}"), "true");
    for feature in facts.cpu.features.iter().chain(&facts.feature_aliases) {
        mark(labels::CPU_FEATURE_PREFIX, feature);
    }
    for model in facts.models.iter().filter(|model| !obsolete::here(config, &model.name)) {
        mark(labels::CPU_MODEL_MIGRATION_PREFIX, &model.name);
        if model.usable {
            mark(labels::CPU_MODEL_PREFIX, &model.name);
        }
    }
    if let Some(model) = &facts.cpu.model {
        mark(labels::HOST_MODEL_CPU_PREFIX, model);
        for feature in &facts.cpu.require {
            mark(labels::HOST_MODEL_REQUIRED_FEATURES_PREFIX, feature);
        }
    }
    if has_obsolete_host(facts, config) {
        mark(labels::OBSOLETE_HOST_MODEL, "");
    }
    if let Some(vendor) = &facts.vendor {
        mark(labels::CPU_VENDOR_PREFIX, vendor);
    }
    for machine in &facts.machine_types {
        mark(labels::MACHINE_TYPE_PREFIX, &machine.name);
    }
    for interface in &facts.hyperv {
        mark(labels::HYPERV_PREFIX, interface);
    }
    for (label, has) in [
        (labels::REALTIME, realtime),
        (labels::SEV, facts.encryption.sev),
        (labels::SEV_ES, facts.encryption.sev_es),
        (labels::SEV_SNP, facts.encryption.sev_snp),
        (labels::SECURE_EXECUTION, facts.encryption.secure_execution),
        (labels::TDX, facts.encryption.tdx),
    ] {
        if has {
            mark(label, "");
        }
    }
    if config.enabled(Gate::CrossArchitectureVirtualization) {
        for architecture in facts.foreign_architectures.iter().chain([&facts.architecture]) {
            mark(labels::VM_ARCH_PREFIX, architecture);
        }
    }
    if let Some(tsc) = facts.tsc {
        add(labels::TSC_FREQUENCY.to_owned(), &tsc.frequency.to_string());
        add(labels::TSC_SCALABLE.to_owned(), &tsc.scalable.to_string());
    }
    all
}

/// Whether the CPU of the host itself is of a model that is not to be used.
pub fn has_obsolete_host(facts: &Facts, config: &ClusterConfig) -> bool {
    facts.cpu.model.as_ref().is_some_and(|model| obsolete::here(config, model))
}

/// The merge patch that gives a node these labels and takes away those of ours that are no longer true; none if there
/// is nothing to change, or if the node is to be left alone.
pub fn patch(node: &Node, wanted: &BTreeMap<String, String>) -> Option<Value> {
    if node.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(annotations::LABELLER_SKIP_NODE))
    {
        return None;
    }
    let none = BTreeMap::new();
    let current = node.metadata.labels.as_ref().unwrap_or(&none);
    let missing = wanted.iter().filter(|(key, value)| current.get(*key) != Some(value));
    let stale = current.keys().filter(|key| is_ours(key) && !wanted.contains_key(*key));
    let changes: serde_json::Map<String, Value> = missing
        .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
        .chain(stale.map(|key| (key.clone(), Value::Null)))
        .collect();
    (!changes.is_empty()).then(|| json!({ "metadata": { "labels": changes } }))
}

/// Whether the labeller decides about a label. A name that is no prefix must be the whole of it: `kubevirt.io/sev` is
/// not `kubevirt.io/several`.
fn is_ours(key: &str) -> bool {
    OURS.iter().any(|ours| if ours.ends_with(['/', '-']) { key.starts_with(ours) } else { key == *ours })
}

/// Whether this can be the key of a label.
fn is_key(key: &str) -> bool {
    let name = key.split_once('/').map_or(key, |(_, name)| name);
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let middle = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.len() <= 63
        && ends(name.as_bytes().first())
        && ends(name.as_bytes().last())
        && name.bytes().all(middle)
}

#[cfg(test)]
mod tests {
    use kubevirt_api::kubevirt::KubeVirt;
    use kubevirt_domain::facts::HostCpu;
    use proptest::prelude::*;

    use super::*;
    use crate::labels::facts::{Encryption, MachineType, Model, Tsc};

    fn config(configuration: &Value) -> ClusterConfig {
        let object =
            json!({ "metadata": { "name": "kubevirt" }, "spec": { "configuration": configuration } });
        ClusterConfig::of(&serde_json::from_value::<KubeVirt>(object).unwrap())
    }

    fn facts() -> Facts {
        let model = |name: &str, usable| Model { name: name.into(), usable };
        Facts {
            architecture: "amd64".into(),
            kvm: true,
            vendor: Some("Intel".into()),
            cpu: HostCpu {
                model: Some("Penryn".into()),
                require: vec!["ss".into()],
                features: ["ss", "lahf-lm", "not a key"].map(str::to_owned).into(),
                ..HostCpu::default()
            },
            feature_aliases: vec!["lahf_lm".into()],
            models: vec![model("Penryn", true), model("Haswell", false), model("486-v1", true)],
            machine_types: vec![MachineType { name: "pc-q35-7.2".into(), deprecated: false }],
            hyperv: vec!["synic".into()],
            tsc: Some(Tsc { frequency: 2_445_430_000, scalable: true }),
            encryption: Encryption { sev: true, sev_es: true, ..Encryption::default() },
            foreign_architectures: vec!["arm64".into()],
        }
    }

    fn node(labels: &[(&str, &str)]) -> Node {
        let mut node = Node::default();
        node.metadata.labels =
            Some(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
        node
    }

    #[test]
    fn tells_of_the_facts() {
        let told = labels(&facts(), &config(&json!({})), true);
        let told: Vec<_> = told.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            told,
            [
                "cpu-feature.node.kubevirt.io/lahf-lm=true",
                "cpu-feature.node.kubevirt.io/lahf_lm=true",
                "cpu-feature.node.kubevirt.io/ss=true",
                "cpu-model-migration.node.kubevirt.io/Haswell=true",
                "cpu-model-migration.node.kubevirt.io/Penryn=true",
                "cpu-model.node.kubevirt.io/Penryn=true",
                "cpu-timer.node.kubevirt.io/tsc-frequency=2445430000",
                "cpu-timer.node.kubevirt.io/tsc-scalable=true",
                "cpu-vendor.node.kubevirt.io/Intel=true",
                "host-model-cpu.node.kubevirt.io/Penryn=true",
                "host-model-required-features.node.kubevirt.io/ss=true",
                "hyperv.node.kubevirt.io/synic=true",
                "kubevirt.io/realtime=true",
                "kubevirt.io/sev=true",
                "kubevirt.io/sev-es=true",
                "machine-type.node.kubevirt.io/pc-q35-7.2=true",
            ]
        );
    }

    #[test]
    fn the_configuration_says_what_is_obsolete_and_more() {
        let own = config(&json!({
            "obsoleteCPUModels": { "Penryn": true },
            "developerConfiguration": { "featureGates": ["CrossArchitectureVirtualization"] },
        }));
        let told = labels(&facts(), &own, false);
        assert!(has_obsolete_host(&facts(), &own));
        assert_eq!(told[labels::OBSOLETE_HOST_MODEL], "true");
        assert!(!told.contains_key("cpu-model.node.kubevirt.io/Penryn"));
        assert!(told.contains_key("cpu-model.node.kubevirt.io/486-v1"), "the list replaces the built-in one");
        assert!(
            told.contains_key("kubevirt.io/vm-arch-amd64") && told.contains_key("kubevirt.io/vm-arch-arm64")
        );
        assert!(!told.contains_key(labels::REALTIME));
    }

    #[test]
    fn patches_only_what_differs_and_is_ours() {
        let wanted = BTreeMap::from([
            ("cpu-model.node.kubevirt.io/Penryn".to_owned(), "true".to_owned()),
            ("kubevirt.io/sev".to_owned(), "true".to_owned()),
        ]);
        let before = node(&[
            ("kubernetes.io/hostname", "one"),
            ("kubevirt.io/schedulable", "true"),
            ("scheduling.node.kubevirt.io/tsc-frequency-1", "true"),
            ("kubevirt.io/several", "mine"),
            ("kubevirt.io/sev", "false"),
            ("kubevirt.io/sev-es", "true"),
            ("cpu-model.node.kubevirt.io/Haswell", "true"),
        ]);
        assert_eq!(
            patch(&before, &wanted),
            Some(json!({ "metadata": { "labels": {
                "cpu-model.node.kubevirt.io/Penryn": "true",
                "cpu-model.node.kubevirt.io/Haswell": null,
                "kubevirt.io/sev": "true",
                "kubevirt.io/sev-es": null,
            } } }))
        );
        assert_eq!(patch(&node(&[]), &BTreeMap::new()), None);
        let mut left_alone = before;
        left_alone.metadata.annotations = Some([(annotations::LABELLER_SKIP_NODE.into(), "".into())].into());
        assert_eq!(patch(&left_alone, &wanted), None);
    }

    proptest! {
        /// Whatever a node says before, one patch makes it right, and a second has nothing to do.
        #[test]
        fn settles_at_once(before in prop::collection::btree_map(
            "(cpu-model.node.kubevirt.io/|kubevirt.io/|other/)(sev|a|Penryn|realtime)", "true|false", 0..8,
        )) {
            let wanted = labels(&facts(), &ClusterConfig::default(), true);
            let mut node = Node::default();
            node.metadata.labels = Some(before.clone());
            let mut after = before.clone();
            if let Some(change) = patch(&node, &wanted) {
                for (key, value) in change["metadata"]["labels"].as_object().unwrap() {
                    match value.as_str() {
                        Some(value) => after.insert(key.clone(), value.to_owned()),
                        None => after.remove(key),
                    };
                }
            }
            node.metadata.labels = Some(after.clone());
            prop_assert_eq!(patch(&node, &wanted), None);
            prop_assert!(wanted.iter().all(|(key, value)| after.get(key) == Some(value)));
            prop_assert!(before.iter().filter(|(key, _)| key.starts_with("other/"))
                .all(|(key, value)| after.get(key) == Some(value)));
        }
    }
}
