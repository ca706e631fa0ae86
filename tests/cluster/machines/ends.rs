//! How guests end by force: a killed QEMU, a killed launcher, a deleted machine.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use kubevirt_api::vmi::status::VmiPhase;
use test_kit::{KUBEVIRT, Test};

use super::guest::{instances, launcher, machines, wait_for_event, wait_for_phase, wait_for_successor};
use super::manifest::{idle, instance, machine};

/// Ends a process of the pod's node whose command line holds both words: the program's name and the pod's machine.
pub fn kill(test: &Test, pod: &Pod, program: &str, signal: &str) -> Result<()> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("a pod without node")?;
    let uid = pod.uid().context("a pod without UID")?;
    // Control groups name their pod, whatever the program says of itself.
    let script = format!(
        "for p in /proc/[0-9]*; do grep -q {uid} $p/cgroup 2>/dev/null || continue; \
         tr '\\0' ' ' <$p/cmdline | grep -qE '^([^ ]*/)?{program}' && kill -{signal} ${{p#/proc/}} && exit 0; done; exit 1"
    );
    let enter = test.cluster().enter_node(&node)?;
    let status = Command::new(&enter[0]).args(&enter[1..]).args(["sh", "-c", &script]).status()?;
    ensure!(status.success(), "no {program} in pod {}", pod.name_any());
    Ok(())
}

#[tokio::test]
async fn a_killed_qemu_fails_its_instance_with_a_reason() -> Result<()> {
    KUBEVIRT
        .run("end-qemu", async |test| {
            test.apply(&instance("vmi", idle())).await?;
            let vmi = wait_for_phase(test, "vmi", VmiPhase::Running).await?;
            kill(test, &launcher(test, &vmi).await?, "qemu-system", "KILL")?;
            wait_for_phase(test, "vmi", VmiPhase::Failed).await?;
            let events = wait_for_event(test, "vmi", "The guest crashed").await?;
            let crash = events.lines().find(|line| line.contains("The guest crashed")).unwrap_or_default();
            ensure!(crash.contains("Warning") && crash.contains("Stopped"), "{crash}");
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_killed_launcher_fails_its_instance_and_the_machine_starts_again() -> Result<()> {
    KUBEVIRT
        .run("end-launcher", async |test| {
            test.apply(&machine("vm", "Always", idle())).await?;
            let vmi = wait_for_phase(test, "vm", VmiPhase::Running).await?;
            kill(test, &launcher(test, &vmi).await?, "virt-launcher", "KILL")?;
            wait_for_successor(test, "vm", &vmi.uid().context("no UID")?).await?;
            Ok(())
        })
        .await
}

#[tokio::test]
async fn machines_can_be_deleted_at_any_moment() -> Result<()> {
    KUBEVIRT
        .run("end-deleted", async |test| {
            for (number, phase) in
                [None, Some(VmiPhase::Scheduling), Some(VmiPhase::Running)].into_iter().enumerate()
            {
                let name = format!("vm{number}");
                test.apply(&machine(&name, "Always", idle())).await?;
                if let Some(phase) = phase {
                    let past = |vmi: &kubevirt_api::vmi::VirtualMachineInstance| {
                        let seen = super::guest::phase(vmi);
                        seen == Some(phase.clone()) || seen == Some(VmiPhase::Running)
                    };
                    test.wait(&instances(test), &name, "is on its way", past).await?;
                }
                machines(test).delete(&name, &DeleteParams::default()).await?;
                test.wait_until_gone(&machines(test), &name).await?;
                test.wait_until_gone(&instances(test), &name).await?;
            }
            Ok(())
        })
        .await
}
