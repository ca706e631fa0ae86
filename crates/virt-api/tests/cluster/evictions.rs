//! Evictions of launcher pods.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use crate::fixture::{Server, Verdict, with_server};

async fn evict(server: &Server<'_>, pod: &str, annotations: Value, dry_run: bool) -> Result<Verdict> {
    let mode = if dry_run { json!(["All"]) } else { json!([]) };
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": { "name": pod, "annotations": annotations }, "deleteOptions": { "dryRun": mode },
    });
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", server.test.namespace());
    let request = axum::http::Request::post(path).header("content-type", "application/json");
    Verdict::of(&server.plain, request.body(serde_json::to_vec(&eviction)?)?).await
}

async fn launcher(server: &Server<'_>, name: &str, vmi: &str) -> Result<()> {
    let pods: Api<Pod> = server.test.api();
    let pod = serde_json::from_value(json!({
        "metadata": {
            "name": name, "labels": { "kubevirt.io": "virt-launcher" }, "annotations": { "kubevirt.io/domain": vmi },
        },
        "spec": { "nodeName": "node01", "containers": [{ "name": "compute", "image": "x" }] },
    }))?;
    pods.create(&PostParams::default(), &pod).await?;
    let running = Patch::Merge(json!({ "status": { "phase": "Running" } }));
    pods.patch_status(name, &PatchParams::default(), &running).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_can_move_is_told_to_leave() -> Result<()> {
    with_server("api-evict", async |server| {
        let accounts: Api<ServiceAccount> = server.test.api();
        let mut account = ServiceAccount::default();
        account.metadata.name = Some("default".into());
        accounts.create(&PostParams::default(), &account).await?;
        let vmi = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": { "name": "one" },
            "spec": {
                "evictionStrategy": "LiveMigrate",
                "domain": { "memory": { "guest": "64Mi" }, "devices": {} },
            },
        });
        server.create(&vmi).await?.accepted()?;
        let instances: Api<VirtualMachineInstance> = server.test.api();
        let marked = async || -> Result<(Option<String>, Option<String>)> {
            let one = instances.get("one").await?;
            let source = one.metadata.annotations.and_then(|all| all.get("kubevirt.io/eviction-source").cloned());
            Ok((one.status.context("status")?.evacuation_node_name, source))
        };
        launcher(server, "virt-launcher-one", "one").await?;

        let verdict = evict(server, "virt-launcher-one", json!({}), false).await?;
        assert_eq!(verdict.status, 429, "it cannot move yet: {verdict:?}");
        let ready = json!({ "status": {
            "nodeName": "node01", "phase": "Running", "conditions": [{ "type": "LiveMigratable", "status": "True" }],
        } });
        let own: Api<VirtualMachineInstance> = Api::namespaced(server.controller.clone(), server.test.namespace());
        own.patch("one", &PatchParams::default(), &Patch::Merge(ready)).await?;

        let verdict = evict(server, "virt-launcher-one", json!({}), true).await?;
        assert_eq!(verdict.status, 429, "{verdict:?}");
        assert_eq!(marked().await?, (None, None), "a dry run marks nothing");
        let by = json!({ "requested-by": "sigs.k8s.io/descheduler" });
        let verdict = evict(server, "virt-launcher-one", by, false).await?;
        assert_eq!(verdict.status, 429, "{verdict:?}");
        let message = verdict.body["message"].as_str().unwrap_or_default();
        let words = format!("triggered evacuation of VMI \"{}/one\"", server.test.namespace());
        assert!(message.contains(&words), "{message}");
        assert_eq!(marked().await?, (Some("node01".into()), Some("descheduler".into())));
        let verdict = evict(server, "virt-launcher-one", json!({}), false).await?;
        assert!(verdict.body["message"].to_string().contains("in progress"), "{verdict:?}");

        let pods: Api<Pod> = server.test.api();
        let other = serde_json::from_value(json!({
            "metadata": { "name": "other" }, "spec": { "containers": [{ "name": "a", "image": "x" }] },
        }))?;
        pods.create(&PostParams::default(), &other).await?;
        assert_eq!(evict(server, "other", json!({}), false).await?.status, 201);
        Ok(())
    })
    .await
}
