//! Nothing remains of an instance on its node: no process, mount, namespace, link or control group.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use kubevirt_api::vmi::status::VmiPhase;
use test_kit::{KUBEVIRT, Test};

use super::guest::{instances, launcher, may_boot, wait_for_phase};
use super::manifest::{guest, instance};

/// What of a pod is still on its node, in words.
pub fn of_pod(test: &Test, pod: &Pod) -> Result<String> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("a pod without node")?;
    let uid = pod.uid().context("a pod without UID")?;
    let script = format!(
        "grep {uid} /proc/self/mountinfo; \
         grep -l {uid} /proc/[0-9]*/cgroup 2>/dev/null; \
         find /sys/fs/cgroup -type d -name '*{uid}*' 2>/dev/null; \
         find /var/run/kubevirt /var/run/kubevirt-private /var/lib/kubelet/pods -path '*{uid}*' 2>/dev/null; true"
    );
    let enter = test.cluster().enter_node(&node)?;
    let output = Command::new(&enter[0]).args(&enter[1..]).args(["sh", "-c", &script]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[tokio::test]
async fn nothing_remains_of_a_deleted_instance() -> Result<()> {
    KUBEVIRT
        .run("leftovers", async |test| {
            let _leave = may_boot().await?;
            test.apply(&instance("vmi", guest("vmi")?)).await?;
            let vmi = wait_for_phase(test, "vmi", VmiPhase::Running).await?;
            let pod = launcher(test, &vmi).await?;
            ensure!(!of_pod(test, &pod)?.is_empty(), "the search finds nothing of a running instance");
            instances(test).delete("vmi", &DeleteParams::default()).await?;
            test.wait_until_gone(&instances(test), "vmi").await?;
            test.wait_until_gone(&test.api::<Pod>(), &pod.name_any()).await?;
            let begin = Instant::now();
            loop {
                let left = of_pod(test, &pod)?;
                if left.is_empty() {
                    return Ok(());
                }
                ensure!(begin.elapsed() < Duration::from_secs(60), "this remains:\n{left}");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        })
        .await
}
