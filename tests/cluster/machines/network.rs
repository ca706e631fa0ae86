//! What guests reach, and who reaches them: masquerade and bridge, across nodes, through a Service.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use serde_json::json;
use test_kit::{KUBEVIRT, Test};

use super::guest::{Guest, may_boot};
use super::manifest::{guest, instance, on_node};

/// The port of Services that lead to a guest's ssh server.
const PORT: u16 = 2222;

/// The address of a Service.
async fn address(test: &Test, namespace: &str, name: &str) -> Result<String> {
    let service = Api::<Service>::namespaced(test.client(), namespace).get(name).await?;
    service.spec.and_then(|spec| spec.cluster_ip).with_context(|| format!("{name} has no address"))
}

async fn expose(test: &Test, name: &str) -> Result<String> {
    test.apply(&json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": PORT, "targetPort": 22}]},
    }))
    .await?;
    address(test, test.namespace(), name).await
}

/// An ssh server greets whoever comes from a guest.
fn greets(guest: &Guest<'_>, address: &str, port: u16) -> Result<()> {
    let greeting = guest.run(&format!("nc -w 20 {address} {port} </dev/null | head -c 4"))?;
    ensure!(greeting == "SSH-", "{address}:{port} says {greeting:?}");
    Ok(())
}

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
            let services = [expose(test, "first").await?, expose(test, "second").await?];
            let first = Guest::wait(test, "first").await?;
            let second = Guest::wait(test, "second").await?;
            // A masqueraded guest has an address of its own, a bridged one that of its pod.
            ensure!(first.run("ip -4 addr")?.contains("10.0.2.2/24"));
            ensure!(second.run("ip -4 addr")?.contains(second.address()));

            // Outside of the pods' network: the API server is on another machine than the nodes.
            let api = address(test, "default", "kubernetes").await?;
            for (guest, other, service) in [(&first, &second, &services[1]), (&second, &first, &services[0])]
            {
                greets(guest, other.address(), 22).context("from guest to guest")?;
                greets(guest, service, PORT).context("through a Service")?;
                guest.run(&format!("nc -w 20 {api} 443 </dev/null")).context("to the outside")?;
            }
            Ok(())
        })
        .await
}
