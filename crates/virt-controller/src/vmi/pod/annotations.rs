//! Annotations of launcher pods, by which kubectl, Multus, Istio, Velero and the descheduler know what to do.

use std::collections::BTreeMap;

use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::names::annotations;
use kubevirt_api::names::external::{autoscaler, istio, kubernetes, multus, velero};
use kubevirt_api::quantity::Amount;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::json;

use super::surroundings::{Purpose, Surroundings};
use super::{COMPUTE, instance, networks};

/// The bridge of the pod's own network, which Istio treats as the way out of the guest.
const BRIDGE: &str = "k6t-eth0";

/// How long Velero waits for the guest's file systems to be still.
const FREEZE_TIMEOUT: &str = "60s";

/// Annotations of a VMI that say nothing about its pod.
const NOT_FOR_PODS: [&str; 3] = [
    "kubectl.kubernetes.io",
    annotations::STORAGE_OBSERVED_API_VERSION,
    annotations::LATEST_OBSERVED_API_VERSION,
];

/// Annotations of the pod of a VMI: most of the VMI's own, and ours.
pub(super) fn of(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::from([(annotations::DOMAIN.to_owned(), name(vmi).to_owned())]);
    let own = vmi.metadata.annotations.iter().flatten();
    let own = own.filter(|(name, _)| !NOT_FOR_PODS.iter().any(|prefix| name.starts_with(prefix)));
    all.extend(own.map(|(name, value)| (name.clone(), value.clone())));
    let mut set = |name: &str, value: String| all.insert(name.to_owned(), value);
    set(kubernetes::DEFAULT_CONTAINER, COMPUTE.to_owned());
    set(annotations::MIGRATION_TRANSPORT_UNIX, "true".to_owned());
    set(autoscaler::DESCHEDULER_REQUEST_EVICT_ONLY, String::new());
    if let Some(selection) = networks::selection(vmi, around.config) {
        set(multus::NETWORKS, selection);
    }
    if let Some(network) = networks::primary(vmi) {
        set(multus::DEFAULT_NETWORK, network.to_owned());
    }
    if instance::interfaces(vmi).any(|interface| interface.masquerade.is_some()) {
        set(istio::KUBEVIRT_INTERFACES, BRIDGE.to_owned());
        set(istio::REROUTE_INTERFACES, BRIDGE.to_owned());
    }
    if around.purpose == Purpose::Provision {
        set(annotations::EPHEMERAL_PROVISIONING, "true".to_owned());
    }
    all.extend(backup_hooks(vmi, around.config));
    all
}

/// Notes how much memory was counted on top of the guest's, where the cluster asks for it.
pub(super) fn note_overhead(all: &mut BTreeMap<String, String>, config: &ClusterConfig, overhead: Amount) {
    if config.enabled(Gate::VmiMemoryOverheadReport) {
        all.insert(annotations::MEMORY_OVERHEAD_BYTES.to_owned(), overhead.value().to_string());
    }
}

fn name(vmi: &VirtualMachineInstance) -> &str {
    vmi.metadata.name.as_deref().unwrap_or_default()
}

/// What has Velero still the guest's file systems, unless someone asked it not to.
pub(in crate::vmi) fn backup_hooks(
    vmi: &VirtualMachineInstance,
    config: &ClusterConfig,
) -> BTreeMap<String, String> {
    if skips_hooks(vmi, config) { BTreeMap::new() } else { hooks(vmi).collect() }
}

/// The VMI's own word counts before the installation's.
fn skips_hooks(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> bool {
    let own = instance::annotation(vmi, annotations::SKIP_BACKUP_HOOKS);
    let told = own.or_else(|| config.annotation(annotations::SKIP_BACKUP_HOOKS)).unwrap_or_default();
    ["1", "t", "T", "true", "TRUE", "True"].contains(&told)
}

/// What Velero runs before and after it takes a backup.
fn hooks(vmi: &VirtualMachineInstance) -> impl Iterator<Item = (String, String)> {
    let namespace = vmi.metadata.namespace.as_deref().unwrap_or_default();
    let command = |way: &str| {
        let words = ["/usr/bin/virt-freezer", way, "--name", name(vmi), "--namespace", namespace];
        format!("[{}]", words.map(|word| json!(word).to_string()).join(", "))
    };
    let hooks = [
        (velero::PRE_BACKUP_CONTAINER, COMPUTE.to_owned()),
        (velero::PRE_BACKUP_COMMAND, command("--freeze")),
        (velero::PRE_BACKUP_TIMEOUT, FREEZE_TIMEOUT.to_owned()),
        (velero::POST_BACKUP_CONTAINER, COMPUTE.to_owned()),
        (velero::POST_BACKUP_COMMAND, command("--unfreeze")),
    ];
    hooks.into_iter().map(|(name, value)| (name.to_owned(), value))
}
