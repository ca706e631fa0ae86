//! Whether a node answers, and what follows if it does not.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kubevirt_api::names::{annotations, labels};
use kubevirt_api::vmi::VirtualMachineInstance;

use super::observe::Observed;

/// How long a handler may be silent.
pub const SILENCE: Duration = Duration::from_secs(5 * 60);
/// When to look again at a node that does not answer.
const RECHECK: Duration = Duration::from_secs(60);

/// What is to be done for a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Keep new guests off the node.
    pub mark_unschedulable: bool,
    /// Say that guests are on the node, and no handler.
    pub tell_of_orphans: bool,
    /// Ask the API server for pods on the node, before instances count as lost.
    pub look_for_pods: bool,
    /// Instances that are lost.
    pub lost: Vec<Arc<VirtualMachineInstance>>,
    /// When to look again although nothing changes.
    pub recheck: Option<Duration>,
}

/// What is to be done for a node of which nothing can be said against it, whatever is on it.
pub fn if_it_answers(node: Option<&Node>, now: Timestamp) -> Option<Plan> {
    match time_left(node?, now) {
        // Nothing can be told, so nothing is done.
        None => Some(Plan::default()),
        Some(left) if !left.is_zero() => Some(Plan { recheck: Some(left), ..Plan::default() }),
        _ => None,
    }
}

/// Decides what is to be done.
pub fn decide(observed: &Observed, now: Timestamp) -> Plan {
    if let Some(plan) = if_it_answers(observed.node.as_deref(), now) {
        return plan;
    }
    let gone: Vec<_> = observed.vmis.iter().filter(|vmi| !observed.has_pod(vmi)).cloned().collect();
    let node_exists = observed.node.is_some();
    Plan {
        mark_unschedulable: observed.node.as_deref().is_some_and(is_schedulable),
        tell_of_orphans: node_exists && !observed.handler_runs && !observed.vmis.is_empty(),
        look_for_pods: !gone.is_empty() && !observed.pods_confirmed,
        lost: if observed.pods_confirmed { gone } else { vec![] },
        recheck: (node_exists || !observed.vmis.is_empty()).then_some(RECHECK),
    }
}

fn is_schedulable(node: &Node) -> bool {
    node.labels().get(labels::NODE_SCHEDULABLE).is_some_and(|value| value == "true")
}

/// How long the handler may still be silent; nothing if it was never heard of, or says something that is no time.
fn time_left(node: &Node, now: Timestamp) -> Option<Duration> {
    let heard: Timestamp = node.annotations().get(annotations::NODE_HEARTBEAT)?.parse().ok()?;
    let silent_since = now.duration_since(heard);
    // A heartbeat from the future is one from now, by another clock.
    let silence = if silent_since.is_negative() { Duration::ZERO } else { silent_since.unsigned_abs() };
    Some(SILENCE.saturating_sub(silence))
}
