//! Components that are killed at any moment: no machine is lost, doubled or disturbed.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;
use kubevirt_api::vmi::status::VmiPhase;
use test_kit::{KUBEVIRT, Test};

use super::guest::{apply_in_spite, instances, wait_for_phase};
use super::manifest::{idle, machine, on_node};
use super::soak;

/// So many blows in `make test`.
const ROUNDS: u64 = 8;

/// What is hit.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// A program of ours, on the node.
    Kill(&'static str, &'static str),
    /// A part of the node.
    Restart(&'static str),
}

const BLOWS: [Blow; 7] = [
    Blow::Kill("virt-handler", "node01"),
    Blow::Kill("virt-controller", "node01"),
    Blow::Kill("virt-controller", "node02"),
    Blow::Kill("virt-api", "node02"),
    Blow::Kill("virt-handler", "node02"),
    Blow::Restart("node01/kubelet"),
    Blow::Restart("node02/containerd"),
];

#[tokio::test]
async fn nobody_notices_when_components_die() -> Result<()> {
    KUBEVIRT
        .run_alone("chaos", async |test| {
            for (name, node) in [("one", "node01"), ("two", "node02")] {
                test.apply(&machine(name, "Always", on_node(idle(), node))).await?;
            }
            let one = wait_for_phase(test, "one", VmiPhase::Running).await?.uid();
            let two = wait_for_phase(test, "two", VmiPhase::Running).await?.uid();
            let mut chance = soak::Chance::new()?;
            for round in 0..soak::rounds(ROUNDS)? {
                let blow = *chance.pick(&BLOWS);
                strike(test, blow).with_context(|| format!("round {round}: {blow:?}"))?;
                // A machine that comes while something is down comes all the same.
                let newcomer = format!("new{round}");
                apply_in_spite(test, &machine(&newcomer, "Always", idle())).await?;
                wait_for_phase(test, &newcomer, VmiPhase::Running)
                    .await
                    .with_context(|| format!("round {round}: {blow:?}"))?;
                for (name, uid) in [("one", &one), ("two", &two)] {
                    let now = wait_for_phase(test, name, VmiPhase::Running).await?.uid();
                    ensure!(now == *uid, "round {round}: {blow:?} cost {name} its instance");
                }
                test.kubectl(&["delete", "vm", &newcomer, "--wait=false"])?;
                test.wait_until_gone(&instances(test), &newcomer).await?;
            }
            one_pod_each(test).await
        })
        .await
}

fn strike(test: &Test, blow: Blow) -> Result<()> {
    match blow {
        Blow::Restart(component) => test.cluster().restart_component(component),
        Blow::Kill(program, node) => {
            // A pod of a deployment may be on either node; what is not there cannot be hit.
            let script = format!(
                "for p in /proc/[0-9]*; do [ \"$(tr '\\0' '\\n' <$p/cmdline 2>/dev/null | head -n 1 | sed 's,.*/,,')\" = {program} ] \
                 && kill -KILL ${{p#/proc/}}; done; true"
            );
            let enter = test.cluster().enter_node(node)?;
            let status = Command::new(&enter[0]).args(&enter[1..]).args(["sh", "-c", &script]).status()?;
            ensure!(status.success(), "cannot kill on {node}");
            Ok(())
        }
    }
}

async fn one_pod_each(test: &Test) -> Result<()> {
    let pods = test.api::<Pod>().list(&ListParams::default().labels("kubevirt.io=virt-launcher")).await?;
    let living = pods.items.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let mut names: Vec<_> =
        living.filter_map(|pod| pod.labels().get("vm.kubevirt.io/name").cloned()).collect();
    names.sort();
    ensure!(names == ["one", "two"], "launcher pods of {names:?}");
    Ok(())
}
