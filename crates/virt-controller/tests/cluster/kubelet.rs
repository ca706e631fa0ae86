//! What a scheduler and a kubelet would do to a pod.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

/// Puts a pod on a node.
pub async fn schedule(pods: &Api<Pod>, pod: &str, node: &str) -> Result<()> {
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let _: serde_json::Value =
        pods.create_subresource("binding", pod, &PostParams::default(), &binding).await?;
    Ok(())
}

/// Reports that all containers of a pod run, and whether the guest's is ready.
pub async fn run(pods: &Api<Pod>, pod: &str, ready: bool) -> Result<()> {
    let found = pods.get(pod).await?;
    let containers = found.spec.unwrap_or_default().containers;
    let statuses: Vec<_> = containers
        .iter()
        .map(|container| {
            json!({
                "name": container.name, "image": container.image, "imageID": "", "restartCount": 0,
                "ready": ready || container.name != "compute",
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            })
        })
        .collect();
    let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }});
    let status =
        json!({"status": {"phase": "Running", "containerStatuses": statuses, "conditions": [condition]}});
    pods.patch_status(pod, &PatchParams::default(), &Patch::Strategic(status)).await?;
    Ok(())
}

/// Has a pod gone, as after its grace period.
pub async fn remove(pods: &Api<Pod>, pod: &str) -> Result<()> {
    pods.delete(pod, &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}
