//! The frequency of the time stamp counter that a guest is pinned to.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kubevirt_admission::ClusterConfig;
use kubevirt_api::names::{labels, reasons};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::TopologyHints;

use super::observe::Observed;
use super::plan::Trouble;
use crate::context::{Stores, index};

/// Whether the guest depends on the frequency: it asked for an invariant counter or is told about changes of it.
pub fn is_needed(vmi: &VirtualMachineInstance) -> bool {
    let domain = &vmi.spec.domain;
    let features = domain.cpu.as_ref().and_then(|cpu| cpu.features.as_deref()).unwrap_or_default();
    let invariant = features.iter().any(|feature| {
        feature.name == "invtsc" && matches!(feature.policy.as_deref(), Some("require" | "force"))
    });
    let hyperv = domain.features.as_ref().and_then(|features| features.hyperv.as_ref());
    let reenlightenment = hyperv.and_then(|hyperv| hyperv.reenlightenment.as_ref());
    let told = reenlightenment.is_some_and(|state| state.enabled == Some(true));
    vmi.spec.architecture.as_deref() == Some("amd64") && (invariant || told)
}

/// What the pod and the status should say of it.
pub fn hints(observed: &Observed) -> Result<Option<TopologyHints>, Trouble> {
    let known = observed.status().topology_hints.clone();
    if known.is_some() || !is_needed(&observed.vmi) {
        return Ok(known);
    }
    if observed.tsc_frequency < 0 {
        let message = "the configured minimumClusterTSCFrequency must be greater than 0";
        return Err(Trouble::waiting(reasons::vmi::FAILED_GATHERING_TOPOLOGY_HINTS, message));
    }
    Ok(Some(TopologyHints { tsc_frequency: Some(observed.tsc_frequency) }))
}

/// The lowest frequency that nodes which run or may run guests have; 0 if none is known or needed, and negative if
/// the cluster is set to one that cannot be.
pub fn lowest_frequency(stores: &Stores, vmi: &VirtualMachineInstance, config: &ClusterConfig) -> i64 {
    if is_needed(vmi) { lowest_in_cluster(stores, config) } else { 0 }
}

/// The same for the cluster as a whole.
pub fn lowest_in_cluster(stores: &Stores, config: &ClusterConfig) -> i64 {
    let developer = config.configuration().developer_configuration.as_ref();
    if let Some(set) = developer.and_then(|developer| developer.minimum_cluster_tsc_frequency) {
        return if set > 0 { set } else { -1 };
    }
    let in_use = |node: &Node| {
        let schedulable = node.labels().get(labels::NODE_SCHEDULABLE).is_some_and(|value| value == "true");
        schedulable || !stores.vmis.by(index::NODE, &node.name_any()).is_empty()
    };
    let nodes = stores.nodes.all();
    let frequencies = nodes.iter().filter(|node| in_use(node)).filter_map(|node| frequency(node));
    frequencies.min().unwrap_or_default()
}

/// The frequency of a node's counter, if it has one that can be relied upon.
pub fn frequency(node: &Node) -> Option<i64> {
    node.labels().get(labels::TSC_FREQUENCY)?.parse().ok().filter(|frequency| *frequency > 0)
}
