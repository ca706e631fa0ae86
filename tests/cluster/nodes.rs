//! Nodes: there, killed, and started again.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use test_kit::{NODES, conditions};

use crate::pods::{address, load_probe, probe, service, serving_pod, wait_until_ready};

#[tokio::test]
async fn both_nodes_are_ready() -> Result<()> {
    NODES
        .run("nodes", async |test| {
            let nodes: Api<Node> = Api::all(test.client());
            for name in ["node01", "node02"] {
                test.wait(&nodes, name, "is ready", conditions::has("Ready")).await?;
            }
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_killed_node_is_noticed_and_its_pods_come_back_with_it() -> Result<()> {
    NODES
        .run_alone("killed-node", async |test| {
            let image = load_probe(test)?;
            test.apply(&serving_pod("one", "node01", &image)).await?;
            test.apply(&service("one")).await?;
            test.apply(&serving_pod("two", "node02", &image)).await?;
            wait_until_ready(test, "one").await?;
            wait_until_ready(test, "two").await?;

            test.cluster().stop_node("node02")?;
            let nodes: Api<Node> = Api::all(test.client());
            test.wait(&nodes, "node02", "is unknown", conditions::is("Ready", "Unknown")).await?;
            test.wait(&test.api::<Pod>(), "two", "is not ready", conditions::is("Ready", "False")).await?;
            assert!(!test.cluster().is_whole()?);

            test.cluster().start_node("node02")?;
            let restarted = |pod: &Pod| {
                let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
                statuses.is_some_and(|statuses| statuses[0].restart_count == 1)
            };
            test.wait(&test.api::<Pod>(), "two", "has restarted", restarted).await?;
            wait_until_ready(test, "two").await?;
            let there = format!("{}:80", address(test, "one").await?);
            assert_eq!(probe(test, "two", &["get", &there])?, "I am one");
            assert!(test.cluster().is_whole()?);
            Ok(())
        })
        .await
}
