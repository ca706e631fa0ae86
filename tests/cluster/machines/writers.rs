//! Who writes about a machine, and what a handler may: of machines on its own node what it sees there, of others nothing.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::json;
use test_kit::{KUBEVIRT, Test};
use xtask::install::NAMESPACE;

use super::guest::{launcher, wait_for_phase};
use super::manifest::{idle, instance};
use crate::install::{Handler, patch_as_handler};

#[tokio::test]
async fn a_handler_writes_only_machines_of_its_own_node() -> Result<()> {
    KUBEVIRT
        .run("foreign-handler", async |test| {
            test.apply(&instance("vm", idle())).await?;
            let vmi = wait_for_phase(test, "vm", VmiPhase::Running).await?;
            are_known(&vmi)?;
            asked_nothing_again(test, &vmi).await?;
            let own = vmi.status.and_then(|status| status.node_name).context("it runs nowhere")?;
            are_refused(test, &own).await
        })
        .await
}

/// The API server notes who wrote which field, by the name that came with the request.
fn are_known(vmi: &VirtualMachineInstance) -> Result<()> {
    let noted = vmi.metadata.managed_fields.iter().flatten();
    let writers: Vec<&str> = noted.filter_map(|entry| entry.manager.as_deref()).collect();
    let all = ["virt-controller", "virt-handler"].iter().all(|name| writers.contains(name));
    ensure!(all && !writers.contains(&"unknown"), "written by {writers:?}");
    Ok(())
}

/// What the handler knows of the node's QEMU is of use to the launcher, which need not start one to ask it.
async fn asked_nothing_again(test: &Test, vmi: &VirtualMachineInstance) -> Result<()> {
    let log = test.kubectl(&["logs", &launcher(test, vmi).await?.name_any()])?;
    ensure!(log.contains("this QEMU was asked before on this node"), "{log}");
    Ok(())
}

async fn are_refused(test: &Test, own: &str) -> Result<()> {
    let other = if own == "node01" { "node02" } else { "node01" };
    // As plans: what the real handler says of the machine stays.
    let path =
        format!("/apis/kubevirt.io/v1/namespaces/{}/virtualmachineinstances/vm?dryRun=All", test.namespace());
    let seen = json!({"status": {"guestOSInfo": {"name": "seen"}}});
    let moved = json!({"status": {"migrationState": {"targetNode": other}}});
    for (node, patch, expected) in [
        (own, &seen, None),
        (own, &moved, Some("does not choose where")),
        (other, &seen, Some("only allowed to modify VMIs it owns")),
        (other, &moved, Some("only allowed to modify VMIs it owns")),
        ("", &seen, Some("only allowed to modify VMIs it owns")),
    ] {
        let handler = Handler { namespace: NAMESPACE, node };
        let refused = patch_as_handler(test, &handler, &path, patch).await?;
        match (&refused, expected) {
            (None, None) => {}
            (Some(message), Some(part)) if message.contains(part) => {}
            _ => panic!("{node} writes {patch}: {refused:?}, expected {expected:?}"),
        }
    }
    Ok(())
}
