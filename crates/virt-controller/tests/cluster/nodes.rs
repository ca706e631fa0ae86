//! Nodes whose handler is silent.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use kubevirt_api::names::{annotations, labels};
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::json;

use crate::controllers::{run, until};
use crate::instances::{create, is_in};
use crate::kubelet;

#[tokio::test]
async fn a_silent_node_gets_no_guests_and_the_lost_ones_fail() -> Result<()> {
    run("silence", async |test| {
        let nodes: Api<Node> = Api::all(test.client());
        let name = format!("silent-{}", test.namespace());
        let node = json!({"metadata": {
            "name": name, "labels": {labels::NODE_SCHEDULABLE: "true"},
            "annotations": {annotations::NODE_HEARTBEAT: jiff::Timestamp::now().to_string()},
        }});
        nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;

        // Guests that are on the node: one whose pod is gone without a trace, one whose pod lives.
        let vmis = test.api::<VirtualMachineInstance>();
        let pods = test.api::<Pod>();
        let lives = create(test, "lives", json!([])).await?;
        let pod = crate::instances::pod_of(test, &lives).await?;
        kubelet::schedule(&pods, &pod, &name).await?;
        kubelet::run(&pods, &pod, true).await?;
        test.wait(&vmis, "lives", "is handed over", is_in("Scheduled")).await?;

        let silent =
            json!({"metadata": {"annotations": {annotations::NODE_HEARTBEAT: "2026-01-01T00:00:00Z"}}});
        nodes.patch(&name, &PatchParams::default(), &Patch::Merge(silent)).await?;
        let closed =
            |node: &Node| node.labels().get(labels::NODE_SCHEDULABLE).is_some_and(|it| it == "false");
        test.wait(&nodes, &name, "takes no guests", closed).await?;
        assert!(is_in("Scheduled")(&vmis.get("lives").await?));

        // Its pod ends, and nobody is there to say so for the guest.
        let ended = json!({"status": {"phase": "Failed"}});
        pods.patch_status(&pod, &PatchParams::default(), &Patch::Strategic(ended)).await?;
        nodes.delete(&name, &DeleteParams::default()).await?;
        let vmi = test.wait(&vmis, "lives", "has failed", is_in("Failed")).await?;
        assert_eq!(vmi.status.and_then(|status| status.reason).as_deref(), Some("NodeUnresponsive"));
        let told = ListParams::default().fields("involvedObject.name=lives,reason=NodeUnresponsive");
        until("the node's controller tells of it", async || {
            let events = test.api::<Event>().list(&told).await?.items;
            let reporters = events.iter().filter_map(|event| event.source.as_ref()?.component.as_deref());
            Ok(reporters.eq(["node-controller"]))
        })
        .await?;
        Ok(())
    })
    .await
}
