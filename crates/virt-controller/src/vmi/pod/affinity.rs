//! Which nodes a VMI keeps off, or would rather be on, beside what the VMI says itself.

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm,
    PreferredSchedulingTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::names::external::kubernetes;
use kubevirt_api::names::labels;
use kubevirt_api::vmi::VirtualMachineInstance;

use super::text;

/// How much a node of the guest's own architecture is preferred.
const OWN_ARCHITECTURE: i32 = 100;

/// The affinity of a VMI's pod.
pub(super) fn of(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> Option<Affinity> {
    let mut affinity = vmi.spec.affinity.clone();
    let cpu = vmi.spec.domain.cpu.as_ref();
    let model = cpu.and_then(|cpu| text(&cpu.model));
    if model.is_none_or(|model| model == "host-model") {
        keep_off(&mut affinity, labels::OBSOLETE_HOST_MODEL.to_owned());
    }
    let flags = cpu.and_then(|cpu| cpu.features.as_ref()).into_iter().flatten();
    for flag in flags.filter(|flag| flag.policy.as_deref() == Some("forbid")) {
        keep_off(&mut affinity, format!("{}{}", labels::CPU_FEATURE_PREFIX, flag.name));
    }
    if config.enabled(Gate::CrossArchitectureVirtualization)
        && let Some(architecture) = text(&vmi.spec.architecture)
    {
        prefer(&mut affinity, architecture.to_lowercase());
    }
    affinity
}

/// Keeps the pod off nodes with this label. One of several terms is enough for a node, so it goes into each.
fn keep_off(affinity: &mut Option<Affinity>, label: String) {
    let requirement =
        NodeSelectorRequirement { key: label, operator: "DoesNotExist".to_owned(), values: None };
    let nodes = affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    let required = nodes
        .required_during_scheduling_ignored_during_execution
        .get_or_insert_with(|| NodeSelector { node_selector_terms: vec![NodeSelectorTerm::default()] });
    for term in &mut required.node_selector_terms {
        term.match_expressions.get_or_insert_default().push(requirement.clone());
    }
}

fn prefer(affinity: &mut Option<Affinity>, architecture: String) {
    let requirement = NodeSelectorRequirement {
        key: kubernetes::ARCH.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![architecture]),
    };
    let term = NodeSelectorTerm { match_expressions: Some(vec![requirement]), ..NodeSelectorTerm::default() };
    let nodes = affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    let preferred = nodes.preferred_during_scheduling_ignored_during_execution.get_or_insert_default();
    preferred.push(PreferredSchedulingTerm { weight: OWN_ARCHITECTURE, preference: term });
}

/// Keeps pods with any of these labels off the node of this pod.
pub(super) fn keep_apart<'a>(affinity: &mut Option<Affinity>, labels: impl Iterator<Item = &'a String>) {
    for label in labels {
        let requirement =
            LabelSelectorRequirement { key: label.clone(), operator: "Exists".to_owned(), values: None };
        let selector =
            LabelSelector { match_expressions: Some(vec![requirement]), ..LabelSelector::default() };
        let pods = affinity.get_or_insert_default().pod_anti_affinity.get_or_insert_default();
        let required = pods.required_during_scheduling_ignored_during_execution.get_or_insert_default();
        required.push(PodAffinityTerm {
            label_selector: Some(selector),
            topology_key: kubernetes::HOSTNAME.to_owned(),
            ..PodAffinityTerm::default()
        });
    }
}
