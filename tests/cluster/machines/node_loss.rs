//! A node that is gone: its machines run elsewhere, and none of them twice when it comes back.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use kubevirt_api::vmi::status::VmiPhase;
use test_kit::{KUBEVIRT, Test, conditions};
use xtask::install;

use super::guest::{instances, launcher, wait_for_phase, wait_for_successor};
use super::leftovers::Traces;
use super::manifest::{idle, machine};

/// What an administrator says of a node that will not come back by itself.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

#[tokio::test]
async fn machines_of_a_lost_node_run_elsewhere_and_only_there() -> Result<()> {
    KUBEVIRT
        .run_alone("node-loss", async |test| {
            test.apply(&machine("vm", "Always", idle())).await?;
            let vmi = wait_for_phase(test, "vm", VmiPhase::Running).await?;
            let pod = launcher(test, &vmi).await?;
            let lost = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("no node")?;
            let traces = Traces::of(test, &vmi).await?;

            test.cluster().stop_node(&lost)?;
            let nodes: Api<Node> = Api::all(test.client());
            test.wait(&nodes, &lost, "is unknown", conditions::is("Ready", "Unknown")).await?;
            let taint = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
            test.cluster().kubectl(&["taint", "node", &lost, &taint])?;
            let next = wait_for_successor(test, "vm", &vmi.uid().context("no UID")?).await?;
            let now = next.status.as_ref().and_then(|status| status.node_name.clone());
            ensure!(now.as_ref().is_some_and(|now| *now != lost), "the machine is on {now:?}");

            test.cluster().start_node(&lost)?;
            test.cluster().kubectl(&["taint", "node", &lost, &format!("{OUT_OF_SERVICE}-")])?;
            install::wait(test.cluster())?;
            only_one(test, &next.uid().context("no UID")?).await?;
            // What was on the node's disk is cleared away by its kubelet and its handler.
            traces.vanish(test).await
        })
        .await
}

async fn only_one(test: &Test, uid: &str) -> Result<()> {
    let vmi = instances(test).get("vm").await?;
    ensure!(vmi.uid().as_deref() == Some(uid), "the node's return cost the machine its instance");
    let pods = test.api::<Pod>().list(&ListParams::default().labels("kubevirt.io=virt-launcher")).await?;
    let names: Vec<String> = pods.items.iter().map(ResourceExt::name_any).collect();
    ensure!(names.len() == 1, "launcher pods: {names:?}");
    Ok(())
}
