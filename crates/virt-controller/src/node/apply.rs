//! Carries out what was decided for a node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kubevirt_api::names::events::vmi::NODE_UNRESPONSIVE;
use kubevirt_api::names::labels;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{PhaseTransition, VmiPhase};
use kubevirt_component::events::Kind;
use kubevirt_component::patch;
use serde_json::json;

use super::observe::{Observed, living};
use crate::context::Context;

/// Asks the API server which instances have a living pod on the node.
pub async fn look_for_pods(context: &Context, name: &str, observed: &mut Observed) -> kube::Result<()> {
    let on_node = ListParams::default().fields(&format!("spec.nodeName={name}"));
    let pods: Api<Pod> = Api::all(context.client.clone());
    observed.with_pod = pods.list(&on_node).await?.items.iter().filter_map(living).collect();
    observed.pods_confirmed = true;
    Ok(())
}

/// Keeps new guests off a node.
pub async fn mark_unschedulable(context: &Context, node: &Node) -> kube::Result<()> {
    let message = "virt-handler is not responsive, marking node as unresponsive";
    context.recorder.event(node, Kind::Normal, NODE_UNRESPONSIVE, message);
    let marks = BTreeMap::from([(labels::NODE_SCHEDULABLE, "false")]);
    let change = Patch::Merge(json!({"metadata": {"labels": marks}}));
    let nodes: Api<Node> = context.cluster_api();
    match nodes.patch(&node.name_any(), &PatchParams::default(), &change).await {
        Err(error) if !patch::is_gone(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Says that there are guests on a node and no handler.
pub fn tell_of_orphans(context: &Context, node: &Node) {
    let message = "virt-handler is not present, there are orphaned vmis on this node. \
                   Run virt-handler on this node to migrate or remove them.";
    context.recorder.event(node, Kind::Warning, NODE_UNRESPONSIVE, message);
}

/// Has an instance fail whose node does not answer.
pub async fn fail(context: &Context, vmi: &VirtualMachineInstance) -> kube::Result<()> {
    let mut wanted = vmi.clone();
    let status = wanted.status.get_or_insert_default();
    let node = status.node_name.clone().unwrap_or_default();
    status.phase = Some(VmiPhase::Failed);
    status.reason = Some(NODE_UNRESPONSIVE.to_owned());
    let transition = PhaseTransition {
        phase: Some(VmiPhase::Failed),
        phase_transition_timestamp: Some(Time(jiff::Timestamp::now())),
    };
    status.phase_transition_timestamps.get_or_insert_default().push(transition);
    let api = context.api::<VirtualMachineInstance>(&vmi.namespace().unwrap_or_default());
    match patch::write(&api, vmi, &wanted).await {
        Ok(_) => {
            let message = format!("virt-handler on node {node} is not responsive, marking VMI as failed");
            context.recorder.event(vmi, Kind::Normal, NODE_UNRESPONSIVE, message);
            Ok(())
        }
        Err(error) if patch::is_gone(&error) => Ok(()),
        Err(error) => Err(error),
    }
}
