//! What outlives its owner when a user asks for that.

use std::fmt::Debug;

use anyhow::{Result, ensure};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{Api, DeleteParams, ListParams, PropagationPolicy};
use kube::{Resource, ResourceExt};
use kubevirt_api::pool::VirtualMachinePool;
use kubevirt_api::replica_set::VirtualMachineInstanceReplicaSet;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::status::VmiPhase;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test};

use super::guest::{PATIENCE, instances, machines, wait_for_phase};
use super::manifest::{idle, machine};

/// A set or a pool of two, told by their label.
fn pair(api: &str, kind: &str, template: (&str, Value)) -> Value {
    let labels = json!({"of": kind});
    let (field, mut template) = template;
    template["metadata"] = json!({"labels": labels});
    let mut spec = json!({"replicas": 2, "selector": {"matchLabels": labels}});
    spec[field] = template;
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": "two"}, "spec": spec})
}

/// Deletes an owner, but nothing that belongs to it.
async fn orphan<K>(test: &Test, name: &str) -> Result<()>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let propagation_policy = Some(PropagationPolicy::Orphan);
    let how = DeleteParams { propagation_policy, ..DeleteParams::default() };
    test.api::<K>().delete(name, &how).await?;
    test.wait_until_gone(&test.api::<K>(), name).await
}

/// Sees that these belong to nobody and stay, and go when they are told to.
async fn stay_until_deleted<K>(test: &Test, api: &Api<K>, label: &str, count: usize) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let left = api.list(&ListParams::default().labels(&format!("of={label}"))).await?.items;
    ensure!(left.len() == count, "{left:?}");
    for one in &left {
        let stays = one.meta().deletion_timestamp.is_none() && one.owner_references().is_empty();
        ensure!(stays, "{one:?}");
        api.delete(&one.name_any(), &DeleteParams::default()).await?;
    }
    for one in &left {
        test.wait_until_gone(api, &one.name_any()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_is_orphaned_stays_and_belongs_to_nobody() -> Result<()> {
    KUBEVIRT
        .run("orphans", async |test| {
            let halted = json!({"spec": {"runStrategy": "Halted", "template": {"spec": idle()}}});
            let pool = ("virtualMachineTemplate", halted);
            test.apply(&pair("pool.kubevirt.io/v1beta1", "VirtualMachinePool", pool)).await?;
            let set = ("template", json!({"spec": idle()}));
            test.apply(&pair("kubevirt.io/v1", "VirtualMachineInstanceReplicaSet", set)).await?;
            let mut single = machine("one", "Always", idle());
            single["spec"]["template"]["metadata"] = json!({"labels": {"of": "VirtualMachine"}});
            test.apply(&single).await?;
            let pools = test.api::<VirtualMachinePool>();
            let is_whole = |pool: &VirtualMachinePool| {
                pool.status.as_ref().is_some_and(|status| status.replicas == Some(2))
            };
            test.wait_within(PATIENCE, &pools, "two", "has two machines", is_whole).await?;
            let sets = test.api::<VirtualMachineInstanceReplicaSet>();
            let is_whole = |set: &VirtualMachineInstanceReplicaSet| {
                set.status.as_ref().is_some_and(|status| status.ready_replicas == Some(2))
            };
            test.wait_within(PATIENCE, &sets, "two", "has two instances", is_whole).await?;
            wait_for_phase(test, "one", VmiPhase::Running).await?;

            orphan::<VirtualMachinePool>(test, "two").await?;
            orphan::<VirtualMachineInstanceReplicaSet>(test, "two").await?;
            orphan::<VirtualMachine>(test, "one").await?;
            stay_until_deleted(test, &machines(test), "VirtualMachinePool", 2).await?;
            stay_until_deleted(test, &instances(test), "VirtualMachineInstanceReplicaSet", 2).await?;
            stay_until_deleted(test, &instances(test), "VirtualMachine", 1).await
        })
        .await
}
