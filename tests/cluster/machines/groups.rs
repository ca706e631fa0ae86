//! Control groups of machines.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use test_kit::Test;

/// What a script says on the node of a launcher pod, in the folder of the machine's control group that has this file.
/// Control groups are of either version, or both, and each kind of file is in one of the folders.
pub fn in_group(test: &Test, pod: &Pod, file: &str, script: &str) -> Result<String> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("a pod without node")?;
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    let compute = statuses.unwrap_or_default().iter().find(|it| it.name == "compute");
    let id = compute.and_then(|it| it.container_id.as_deref()?.split_once("://")).context("no container")?.1;
    let folders = format!("find /sys/fs/cgroup -type d -name '*{id}*'");
    let folder = format!("for it in $({folders}); do [ -e $it/{file} ] && echo $it; done | head -n 1");
    test.run_on(&node, &format!("cd \"$({folder})/.\" && [ -e {file} ] && {{ {script}; }}"))
}
