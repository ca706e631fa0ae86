//! What is known of a node and of the guests on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Resource, ResourceExt};
use kubevirt_api::names::labels;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_component::NamespacedName;

use crate::context::{Stores, controller, index};

/// What is known of a node and of the guests on it.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The node, unless it is gone.
    pub node: Option<Arc<Node>>,
    /// Instances that the node looks after.
    pub vmis: Vec<Arc<VirtualMachineInstance>>,
    /// UIDs of instances that have a living pod on the node.
    pub with_pod: BTreeSet<String>,
    /// Whether the API server itself was asked for the pods.
    pub pods_confirmed: bool,
    /// Whether there is a handler on the node.
    pub handler_runs: bool,
}

impl Observed {
    /// Looks the node up.
    pub fn look_up(stores: &Stores, name: &str) -> Self {
        let vmis = stores.vmis.by(index::NODE, name).into_iter().filter(|vmi| is_looked_after(vmi));
        let pods = stores.pods.by(index::NODE, name);
        let is_handler = |pod: &Pod| pod.labels().get(labels::APP).is_some_and(|app| app == "virt-handler");
        Self {
            node: stores.nodes.get(&NamespacedName::new("", name)),
            vmis: vmis.collect(),
            with_pod: pods.iter().filter_map(|pod| living(pod)).collect(),
            pods_confirmed: false,
            handler_runs: pods.iter().any(|pod| is_handler(pod)),
        }
    }

    /// Whether an instance has a living pod on the node.
    pub fn has_pod(&self, vmi: &VirtualMachineInstance) -> bool {
        vmi.uid().is_some_and(|uid| self.with_pod.contains(&uid))
    }
}

fn is_looked_after(vmi: &VirtualMachineInstance) -> bool {
    let phase = vmi.status.as_ref().and_then(|status| status.phase.as_ref());
    matches!(phase, Some(VmiPhase::Scheduled | VmiPhase::Running))
}

/// The UID of the instance that the pod runs, if it is alive. One whose containers have all ended is not: without a
/// handler it may never be cleaned up.
pub fn living(pod: &Pod) -> Option<String> {
    let owner = controller(pod).filter(|owner| owner.kind == VirtualMachineInstance::kind(&()))?;
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let containers = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let ended = |it: &k8s_openapi::api::core::v1::ContainerStatus| {
        it.state.as_ref().is_some_and(|state| state.terminated.is_some())
    };
    let all_ended = !containers.is_empty() && containers.iter().all(ended);
    (!all_ended && !matches!(phase, "Failed" | "Succeeded")).then(|| owner.uid.clone())
}
