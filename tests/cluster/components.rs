//! Components that are killed and started again.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use test_kit::{NODES, Shared};

use crate::pods::{load_probe, probe, serving_pod, wait_until_ready};

/// Of its own, so that no other test waits for the API server meanwhile.
static RESTARTED: Shared = Shared::new("test-api-restart", 0);

#[tokio::test]
async fn the_api_server_comes_back_with_what_it_knew() -> Result<()> {
    RESTARTED
        .run_alone("api-server", async |test| {
            let note = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "note"}});
            test.apply(&note).await?;
            test.cluster().kill_component("kube-apiserver")?;
            assert!(test.kubectl(&["get", "configmap", "note"]).is_err(), "it is gone");
            test.cluster().start_component("kube-apiserver")?;
            test.wait(&test.api::<ConfigMap>(), "note", "is there", |_| true).await?;
            let refused = test.cluster().kill_component("node01/kubelet").unwrap_err().to_string();
            assert!(refused.contains("none of etcd, kube-apiserver"), "{refused}");
            Ok(())
        })
        .await?;
    xtask::cluster::Cluster::named("test-api-restart")?.down().map(drop)
}

#[tokio::test]
async fn pods_outlive_their_kubelet() -> Result<()> {
    NODES
        .run_alone("kubelet", async |test| {
            let image = load_probe(test)?;
            test.apply(&serving_pod("one", "node01", &image)).await?;
            let before = wait_until_ready(test, "one").await?;
            test.cluster().restart_component("node01/kubelet")?;
            test.apply(&serving_pod("two", "node01", &image)).await?;
            wait_until_ready(test, "two").await?;
            let after = wait_until_ready(test, "one").await?;
            let restarts = after.status.unwrap().container_statuses.unwrap()[0].restart_count;
            assert_eq!((restarts, &after.metadata.uid), (0, &before.metadata.uid));
            assert_eq!(probe(test, "one", &["get", "127.0.0.1:8080"])?, "I am one");
            Ok(())
        })
        .await
}
