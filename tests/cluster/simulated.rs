//! Nodes that only pretend to run pods.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use serde_json::json;
use test_kit::{NODES, conditions};
use xtask::cluster::simulated::MARK;

#[tokio::test]
async fn simulated_nodes_run_pods() -> Result<()> {
    NODES
        .run("simulated", async |test| {
            test.cluster().simulate_nodes(3)?;
            let nodes: Api<Node> = Api::all(test.client());
            for name in ["simulated-1", "simulated-2", "simulated-3"] {
                test.wait(&nodes, name, "is ready", conditions::has("Ready")).await?;
            }
            test.apply(&json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "one"},
                "spec": {
                    "nodeSelector": {MARK: "fake"},
                    "tolerations": [{"key": MARK, "operator": "Exists"}],
                    "containers": [{"name": "none", "image": "localhost/there-is-no-such-image"}],
                },
            }))
            .await?;
            let pod = test.wait(&test.api::<Pod>(), "one", "is ready", conditions::has("Ready")).await?;
            let node = pod.spec.unwrap().node_name.unwrap();
            assert!(node.starts_with("simulated-"), "{node}");

            test.cluster().simulate_nodes(1)?;
            test.wait_until_gone(&nodes, "simulated-3").await?;
            test.cluster().simulate_nodes(0)?;
            test.wait_until_gone(&nodes, "simulated-1").await
        })
        .await
}
