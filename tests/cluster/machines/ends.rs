//! How guests end by force, and what their machines make of it: a killed QEMU, a killed launcher.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use kubevirt_api::vmi::status::VmiPhase;
use test_kit::{KUBEVIRT, Test};

use super::guest::{instances, launcher, wait_for_event, wait_for_phase, wait_for_successor};
use super::leftovers::Traces;
use super::manifest::{idle, instance, machine};

/// Ends a process of a pod, by the name of its program.
pub fn kill(test: &Test, pod: &Pod, program: &str, signal: &str) -> Result<()> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("a pod without node")?;
    let uid = pod.uid().context("a pod without UID")?;
    // Control groups name their pod, whatever the program says of itself.
    let script = format!(
        "for p in /proc/[0-9]*; do grep -q {uid} $p/cgroup 2>/dev/null || continue; \
         tr '\\0' ' ' <$p/cmdline | grep -qE '^([^ ]*/)?{program}' && kill -{signal} ${{p#/proc/}} && exit 0; done; exit 1"
    );
    let killed = test.run_on(&node, &script);
    killed.with_context(|| format!("no {program} in pod {}", pod.name_any())).map(drop)
}

/// Programs of a pod whose end is the guest's end, and what is said of it.
const ENDS: [(&str, &str); 2] = [
    ("qemu-system", "The VirtualMachineInstance crashed"),
    ("virt-launcher", "The guest is lost: the launcher has ended"),
];

#[tokio::test]
async fn a_guest_that_is_killed_fails_with_a_reason_and_leaves_nothing() -> Result<()> {
    KUBEVIRT
        .run("end-killed", async |test| {
            for (program, _) in ENDS {
                test.apply(&instance(program, idle())).await?;
            }
            for (program, words) in ENDS {
                let vmi = wait_for_phase(test, program, VmiPhase::Running).await?;
                let traces = Traces::of(test, &vmi).await?;
                kill(test, &launcher(test, &vmi).await?, program, "KILL")?;
                wait_for_phase(test, program, VmiPhase::Failed).await?;
                let events = wait_for_event(test, program, words).await?;
                let end = events.lines().find(|line| line.contains(words)).unwrap_or_default();
                ensure!(end.contains("Warning") && end.contains("Stopped"), "{end}");
                instances(test).delete(program, &DeleteParams::default()).await?;
                test.wait_until_gone(&instances(test), program).await?;
                traces.vanish(test).await.context(program)?;
            }
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_machine_whose_guest_is_killed_starts_again() -> Result<()> {
    KUBEVIRT
        .run("end-again", async |test| {
            for (strategy, name) in [("Always", "always"), ("RerunOnFailure", "rerun")] {
                test.apply(&machine(name, strategy, idle())).await?;
            }
            for name in ["always", "rerun"] {
                for (program, _) in ENDS {
                    let vmi = wait_for_phase(test, name, VmiPhase::Running).await?;
                    let traces = Traces::of(test, &vmi).await?;
                    kill(test, &launcher(test, &vmi).await?, program, "KILL")?;
                    wait_for_successor(test, name, &vmi.uid().context("no UID")?).await?;
                    traces.vanish(test).await.with_context(|| format!("{program} of {name}"))?;
                }
            }
            Ok(())
        })
        .await
}
