//! Verbs that change what a machine does.

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use test_kit::{KUBEVIRT, Test};

use super::client::{CLIENTS, Client};
use crate::machines::guest::{PATIENCE, instances, wait_for_phase, wait_for_successor};
use crate::machines::manifest::{idle, machine};

fn is_paused(vmi: &VirtualMachineInstance) -> bool {
    let conditions = vmi.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Paused" && condition.status == "True")
}

/// Waits until an instance is paused, or is not.
pub async fn wait_for_pause(test: &Test, name: &str, paused: bool) -> Result<()> {
    let what = if paused { "is paused" } else { "is not paused" };
    test.wait_within(PATIENCE, &instances(test), name, what, |vmi| is_paused(vmi) == paused).await.map(drop)
}

async fn obey(test: &Test, client: Client) -> Result<()> {
    let name = client.word();
    test.apply(&machine(name, "Manual", idle())).await?;
    // A plan changes nothing.
    client.run(test, &["start", "--dry-run", name])?;
    ensure!(client.fail(test, &["pause", "vm", name])?.contains("not"), "pause of a halted machine");
    client.run(test, &["start", name])?;
    let vmi = wait_for_phase(test, name, VmiPhase::Running).await?;
    ensure!(client.fail(test, &["start", name])?.contains("already running"), "start of a running machine");

    client.run(test, &["pause", "vm", name])?;
    wait_for_pause(test, name, true).await?;
    ensure!(client.fail(test, &["pause", "vmi", name])?.contains("already paused"), "pause of a paused one");
    client.run(test, &["unpause", "vmi", name])?;
    wait_for_pause(test, name, false).await?;

    client.run(test, &["restart", name])?;
    let vmi = wait_for_successor(test, name, &vmi.uid().context("no UID")?).await?;
    client.run(test, &["stop", name, "--force", "--grace-period=0"])?;
    test.wait_until_gone(&instances(test), name).await?;
    ensure!(vmi.uid().is_some(), "no UID");
    let said = client.fail(test, &["stop", name])?;
    ensure!(said.contains("not running") || said.contains("does not exist"), "stop of a halted one: {said}");
    ensure!(client.fail(test, &["start", "missing"])?.contains("not found"), "start of none");
    Ok(())
}

#[tokio::test]
async fn machines_obey_either_client() -> Result<()> {
    KUBEVIRT
        .run("obey", async |test| {
            for client in CLIENTS {
                obey(test, client).await.with_context(|| format!("{client:?}"))?;
            }
            Ok(())
        })
        .await
}

/// What always runs is restarted as well.
#[tokio::test]
async fn a_machine_that_always_runs_is_restarted_by_either_client() -> Result<()> {
    KUBEVIRT
        .run("restart", async |test| {
            test.apply(&machine("vm", "Always", idle())).await?;
            for client in CLIENTS {
                let vmi = wait_for_phase(test, "vm", VmiPhase::Running).await?;
                client.run(test, &["restart", "vm"])?;
                wait_for_successor(test, "vm", &vmi.uid().context("no UID")?).await?;
            }
            Ok(())
        })
        .await
}

#[tokio::test]
async fn either_client_makes_machines_and_exposes_them() -> Result<()> {
    KUBEVIRT
        .run("create", async |test| {
            for client in CLIENTS {
                let name = client.word();
                let image = "--volume-containerdisk=src:registry.example/disk:1";
                let made = client.run(test, &["create", "vm", "--name", name, "--memory=96Mi", image])?;
                let arguments = ["create", "--namespace", test.namespace(), "--filename", "-"];
                test.cluster().kubectl_with_input(&arguments, &made)?;
                client.run(test, &["expose", "vm", name, "--name", name, "--port=22"])?;
                let port = "--output=jsonpath={.spec.ports[0].port}";
                ensure!(test.kubectl(&["get", "service", name, port])? == "22", "no port");
                // It has no image that anybody could pull, so it may go before it runs.
                test.kubectl(&["delete", "vm", name])?;
            }
            Ok(())
        })
        .await
}
