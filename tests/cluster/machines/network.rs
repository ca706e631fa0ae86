//! What guests reach, and who reaches them: masquerade and bridge, across nodes, through a Service.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use serde_json::json;
use test_kit::KUBEVIRT;

use super::guest::{Guest, may_boot};
use super::manifest::{guest, instance, on_node};

#[tokio::test]
async fn two_guests_on_two_nodes_and_a_service() -> Result<()> {
    KUBEVIRT
        .run("network", async |test| {
            let _leave = (may_boot().await?, may_boot().await?);
            let first = on_node(guest("first")?, "node01");
            let mut second = on_node(guest("second")?, "node02");
            second["domain"]["devices"]["interfaces"][0] = json!({"name": "default", "bridge": {}});
            test.apply(&instance("first", first)).await?;
            test.apply(&instance("second", second)).await?;
            test.apply(&json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "first"},
                "spec": {"selector": {"app": "first"}, "ports": [{"port": 2222, "targetPort": 22}]},
            }))
            .await?;
            let first = Guest::wait(test, "first").await?;
            let second = Guest::wait(test, "second").await?;
            // A masqueraded guest has an address of its own, a bridged one that of its pod.
            ensure!(first.run("ip -4 addr")?.contains("10.0.2.2/24"));
            ensure!(second.run("ip -4 addr")?.contains("10.200."));

            let services = test.api::<Service>();
            let address = services.get("first").await?.spec.and_then(|spec| spec.cluster_ip);
            let address = address.context("a Service without address")?;
            // From one guest to the other, through the Service: an ssh server greets first.
            let greeting = second.run(&format!("nc -w 5 {address} 2222 </dev/null | head -c 4"))?;
            ensure!(greeting == "SSH-", "the Service says {greeting:?}");
            // And out of the cluster's own network: the API server is on another machine than the nodes.
            let api = Api::<Service>::namespaced(test.client(), "default").get("kubernetes").await?;
            let api = api.spec.and_then(|spec| spec.cluster_ip).context("an API server without address")?;
            first.run(&format!("nc -w 5 {api} 443 </dev/null"))?;
            Ok(())
        })
        .await
}
