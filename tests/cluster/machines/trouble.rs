//! Machines that do not get as far as a guest: what holds them up is named, and they recover.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use kubevirt_api::condition::{self, Condition};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::PrintableStatus;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::json;
use test_kit::{KUBEVIRT, Test, conditions};

use super::disks;
use super::guest::{
    PATIENCE, instances, launcher, machines, wait_for_event, wait_for_phase, wait_for_status,
};
use super::manifest::{idle, instance, machine};

/// Waits until the instance says that it is held up, and returns the phase and what it says.
async fn held_up(test: &Test, name: &str) -> Result<(VmiPhase, Condition)> {
    let unable = conditions::is::<VirtualMachineInstance>("Synchronized", "False");
    let vmi = test.wait_within(PATIENCE, &instances(test), name, "is held up", unable).await?;
    let status = vmi.status.context("no status")?;
    let said = condition::find(status.conditions.as_deref(), "Synchronized").context("no condition")?;
    Ok((status.phase.context("no phase")?, said.clone()))
}

#[tokio::test]
async fn what_holds_a_machine_up_is_named_on_its_instance() -> Result<()> {
    KUBEVIRT
        .run("trouble", async |test| {
            test.apply(&instance("broken", disks::broken(test)?)).await?;
            test.apply(&instance("diskless", disks::without_disk(test)?)).await?;

            let (phase, said) = held_up(test, "broken").await?;
            ensure!(phase == VmiPhase::Failed, "{phase}: {said:?}");
            ensure!(said.reason.as_deref() == Some("ContainerFailed"), "{said:?}");
            let words = said.message.unwrap_or_default();
            ensure!(
                words.contains("container volumeroot") && words.contains("pod failed with exit code"),
                "{words}"
            );

            let (phase, said) = held_up(test, "diskless").await?;
            ensure!(phase == VmiPhase::Scheduled, "{phase}: {said:?}");
            let words = said.message.unwrap_or_default();
            ensure!(words.contains("the image of volume \"root\" does not have its file"), "{words}");
            wait_for_event(test, "diskless", "SyncFailed").await.map(drop)
        })
        .await
}

/// Its launcher has nothing to wait for, so its pod goes long before launchers lose their patience.
#[tokio::test]
async fn an_instance_that_can_never_start_leaves_no_pod_waiting() -> Result<()> {
    KUBEVIRT
        .run("hopeless", async |test| {
            let mut spec = idle();
            spec["domain"]["devices"]["interfaces"] = json!([{"name": "default", "masquerade": {}}]);
            // There is no address in it for a guest.
            spec["networks"] = json!([{"name": "default", "pod": {"vmNetworkCIDR": "10.0.2.0/31"}}]);
            test.apply(&instance("hopeless", spec)).await?;
            let vmi = wait_for_phase(test, "hopeless", VmiPhase::Failed).await?;
            let pod = launcher(test, &vmi).await?.name_any();
            let over = |pod: &Pod| {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                matches!(phase, Some("Succeeded" | "Failed"))
            };
            test.wait_within(Duration::from_secs(60), &test.api::<Pod>(), &pod, "is over", over)
                .await
                .map(drop)
        })
        .await
}

/// Only a guest that never came up counts: one that ran and ended is started again at once.
#[tokio::test]
async fn a_machine_that_never_comes_up_is_tried_again_later_and_recovers() -> Result<()> {
    KUBEVIRT
        .run("back-off", async |test| {
            test.apply(&machine("vm", "Always", disks::broken(test)?)).await?;
            wait_for_status(test, "vm", PrintableStatus::CrashLoopBackOff).await?;
            let failures = |vm: &VirtualMachine| {
                vm.status.as_ref()?.start_failure.as_ref()?.consecutive_fail_count
            };
            let twice = |vm: &VirtualMachine| failures(vm).is_some_and(|failures| failures > 1);
            let vm = test.wait_within(PATIENCE, &machines(test), "vm", "has failed twice", twice).await?;
            let failure = vm.status.and_then(|status| status.start_failure).context("no failure")?;
            ensure!(failure.retry_after_timestamp.is_some(), "{failure:?}");

            let spec = Patch::Merge(json!({"spec": {"template": {"spec": {"volumes": null, "domain": {"devices": {"disks": null}}}}}}));
            machines(test).patch("vm", &PatchParams::default(), &spec).await?;
            wait_for_phase(test, "vm", VmiPhase::Running).await?;
            wait_for_status(test, "vm", PrintableStatus::Running).await?;
            let forgotten = |vm: &VirtualMachine| failures(vm).is_none();
            test.wait(&machines(test), "vm", "has no failures to tell of", forgotten).await.map(drop)
        })
        .await
}
