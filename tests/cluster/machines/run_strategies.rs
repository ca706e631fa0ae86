//! When a machine runs: each run strategy, what users ask for, and what guests do by themselves.

use anyhow::{Context, Result};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use kubevirt_api::vm::status::PrintableStatus;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test};

use super::disks;
use super::guest::{
    Guest, instances, machines, may_boot, phase, wait_for_phase, wait_for_status, wait_for_successor,
};
use super::manifest::{guest, idle, machine};

/// Says what the subresources of virt-api say for users.
async fn ask(test: &Test, name: &str, requests: Value) -> Result<()> {
    let patch = json!({"status": {"stateChangeRequests": requests}});
    machines(test).patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn set_strategy(test: &Test, name: &str, strategy: &str) -> Result<()> {
    let patch = json!({"spec": {"runStrategy": strategy}});
    machines(test).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

#[tokio::test]
async fn always_and_halted() -> Result<()> {
    KUBEVIRT
        .run("machine-always", async |test| {
            test.apply(&machine("vm", "Always", idle())).await?;
            let first = wait_for_phase(test, "vm", VmiPhase::Running).await?.uid().context("no UID")?;
            wait_for_status(test, "vm", PrintableStatus::Running).await?;
            instances(test).delete("vm", &DeleteParams::default()).await?;
            wait_for_successor(test, "vm", &first).await?;
            set_strategy(test, "vm", "Halted").await?;
            wait_for_status(test, "vm", PrintableStatus::Stopped).await?;
            test.wait_until_gone(&instances(test), "vm").await
        })
        .await
}

#[tokio::test]
async fn manual_does_as_it_is_told() -> Result<()> {
    KUBEVIRT
        .run("machine-manual", async |test| {
            test.apply(&machine("vm", "Manual", idle())).await?;
            wait_for_status(test, "vm", PrintableStatus::Stopped).await?;
            ask(test, "vm", json!([{"action": "Start"}])).await?;
            let first = wait_for_phase(test, "vm", VmiPhase::Running).await?.uid().context("no UID")?;
            let restart = json!([{"action": "Stop", "uid": first}, {"action": "Start"}]);
            ask(test, "vm", restart).await?;
            let second = wait_for_successor(test, "vm", &first).await?.uid();
            ask(test, "vm", json!([{"action": "Stop", "uid": second}])).await?;
            wait_for_status(test, "vm", PrintableStatus::Stopped).await?;
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_guest_that_shuts_down_stays_down_unless_it_should_always_run() -> Result<()> {
    KUBEVIRT
        .run("machine-shutdown", async |test| {
            let _leave = may_boot().await?;
            test.apply(&machine("vm", "RerunOnFailure", guest("vm")?)).await?;
            let shell = Guest::wait(test, "vm").await?;
            shell.start("sleep 1; poweroff");
            wait_for_status(test, "vm", PrintableStatus::Stopped).await?;

            set_strategy(test, "vm", "Always").await?;
            let shell = Guest::wait(test, "vm").await?;
            let first = instances(test).get("vm").await?.uid().context("no UID")?;
            shell.start("sleep 1; poweroff");
            wait_for_successor(test, "vm", &first).await?;
            Ok(())
        })
        .await
}

/// Of three guests that end by themselves, only one is started again.
#[tokio::test]
async fn once_means_once() -> Result<()> {
    KUBEVIRT
        .run("machine-once", async |test| {
            for (name, strategy) in [("once", "Once"), ("rerun", "RerunOnFailure"), ("always", "Always")] {
                test.apply(&machine(name, strategy, disks::brief(test)?)).await?;
            }
            let ended = wait_for_phase(test, "once", VmiPhase::Succeeded).await?;
            wait_for_status(test, "once", PrintableStatus::Stopped).await?;
            wait_for_status(test, "rerun", PrintableStatus::Stopped).await?;
            test.wait_until_gone(&instances(test), "rerun").await?;
            let again = wait_for_phase(test, "always", VmiPhase::Running).await?.uid().context("no UID")?;
            wait_for_successor(test, "always", &again).await?;

            let still = instances(test).get("once").await?;
            assert_eq!((still.uid(), phase(&still)), (ended.uid(), Some(VmiPhase::Succeeded)));
            assert!(instances(test).get_opt("rerun").await?.is_none());
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_guest_that_reboots_stays_the_same_instance() -> Result<()> {
    KUBEVIRT
        .run("machine-reboot", async |test| {
            let _leave = may_boot().await?;
            test.apply(&machine("vm", "Always", guest("vm")?)).await?;
            let shell = Guest::wait(test, "vm").await?;
            let boot = shell.boot()?;
            let before = instances(test).get("vm").await?.uid();
            shell.start("sleep 1; reboot");
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            shell.wait_for_ssh().await?;
            assert_ne!(shell.boot()?, boot);
            assert_eq!(instances(test).get("vm").await?.uid(), before);
            Ok(())
        })
        .await
}
