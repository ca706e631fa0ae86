//! Machines that are to leave their node: the wish is written down, and can be called off.

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use kubevirt_api::migration::VirtualMachineInstanceMigration;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::json;
use test_kit::{Test, conditions};

use super::ask::refused;
use super::client::{CLIENTS, Client};
use crate::machines::guest::{PATIENCE, instances, launcher};

/// Each client asks for a migration and calls it off.
pub async fn migrations_are_asked_for(test: &Test) -> Result<()> {
    let movable = conditions::has::<VirtualMachineInstance>("LiveMigratable");
    test.wait_within(PATIENCE, &instances(test), "vm", "can be moved", movable).await?;
    let api: Api<VirtualMachineInstanceMigration> = test.api();
    for client in CLIENTS {
        client.run(test, &["migrate", "vm", "--dry-run"])?;
        ensure!(api.list(&ListParams::default()).await?.items.is_empty(), "{client:?}: a plan made one");
        client.run(test, &["migrate", "vm", "--addedNodeSelector=disk=fast"])?;
        let all = api.list(&ListParams::default()).await?.items;
        let [migration] = &all[..] else { anyhow::bail!("{client:?}: {} migrations", all.len()) };
        let name = migration.name_any();
        ensure!(name.starts_with("kubevirt-migrate-vm-"), "{client:?}: {name}");
        let spec = json!({"vmiName": "vm", "addedNodeSelector": {"disk": "fast"}});
        ensure!(json!(migration.spec) == spec, "{client:?}: {:?}", migration.spec);
        let said = client.fail(test, &["migrate", "vm"])?;
        ensure!(said.contains(&name), "{client:?}: two at once: {said}");
        client.run(test, &["migrate-cancel", "vm"])?;
        // It goes once nobody has anything to do with it.
        let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        if api.get_opt(&name).await?.is_some() {
            api.patch(&name, &PatchParams::default(), &released).await.context("release")?;
        }
        test.wait_until_gone(&api, &name).await?;
        let said = client.fail(test, &["migrate-cancel", "vm"])?;
        ensure!(said.contains("o migration to cancel"), "{client:?}: {said}");
    }
    Ok(())
}

/// Evicts the pod of the guest, which stays; returns what is said.
async fn evict(test: &Test) -> Result<String> {
    let pod = launcher(test, &instances(test).get("vm").await?).await?.name_any();
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", test.namespace());
    let evict = ["create", "--raw", &path, "--filename=-"];
    match test.cluster().kubectl_with_input(&evict, &eviction.to_string()) {
        Ok(said) => anyhow::bail!("the pod of a guest that can move was evicted: {said}"),
        Err(error) => Ok(format!("{error:#}")),
    }
}

async fn leaves(test: &Test) -> Result<Option<String>> {
    Ok(instances(test).get("vm").await?.status.and_then(|status| status.evacuation_node_name))
}

/// An eviction marks the instance, and each client takes the mark away.
pub async fn evacuations_are_called_off(test: &Test) -> Result<()> {
    const CANCEL: &str = "virtualmachines/vm/evacuate/cancel";
    let node = instances(test).get("vm").await?.status.and_then(|status| status.node_name);
    for client in CLIENTS {
        let said = evict(test).await?;
        ensure!(said.contains("triggered evacuation"), "{client:?}: {said}");
        ensure!(leaves(test).await? == node, "{client:?}: it is not marked");
        let said = evict(test).await?;
        ensure!(said.contains("in progress"), "{client:?}: {said}");
        let other = json!({"evacuationNodeName": "other"});
        refused(test, (Method::PUT, CANCEL, other), 409, "evacuationNodeName").await?;
        client.run(test, &["evacuate-cancel", "vm", "vm", "--dry-run"])?;
        ensure!(leaves(test).await? == node, "{client:?}: a plan took the mark away");
        let kind = if client == Client::Original { "vm" } else { "vmi" };
        client.run(test, &["evacuate-cancel", kind, "vm"])?;
        ensure!(leaves(test).await?.is_none(), "{client:?}: it is still marked");
        // Nothing is left to call off, which is no mistake.
        client.run(test, &["evacuate-cancel", kind, "vm"])?;
    }
    Ok(())
}
