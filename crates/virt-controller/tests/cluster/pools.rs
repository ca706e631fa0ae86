//! Pools: as many machines as wanted, also where a quota is in the way.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Event, ResourceQuota};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kubevirt_api::condition;
use kubevirt_api::names::conditions::pool::{REPLICA_FAILURE, REPLICA_PAUSED};
use kubevirt_api::names::finalizers;
use kubevirt_api::pool::VirtualMachinePool;
use kubevirt_api::vm::VirtualMachine;
use serde_json::{Value, json};
use test_kit::Test;
use test_kit::conditions::has;

use crate::controllers::{run, until};
use crate::vm::template;

async fn apply(test: &Test, replicas: u32) -> Result<()> {
    let pool = json!({
        "apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", "metadata": {"name": "desk"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "desk"}},
            "virtualMachineTemplate": {
                "metadata": {"labels": {"app": "desk"}},
                "spec": {"runStrategy": "Halted", "template": template()},
            },
        },
    });
    test.apply(&pool).await?;
    Ok(())
}

async fn change(test: &Test, spec: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": spec}));
    test.api::<VirtualMachinePool>().patch("desk", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The machines that belong to the pool.
async fn machines(test: &Test) -> Result<Vec<String>> {
    let all = test.api::<VirtualMachine>().list(&ListParams::default()).await?.items;
    let ours =
        |vm: &&VirtualMachine| vm.metadata.deletion_timestamp.is_none() && !vm.owner_references().is_empty();
    Ok(all.iter().filter(ours).map(ResourceExt::name_any).collect())
}

async fn until_there_are(test: &Test, names: &[&str]) -> Result<()> {
    until(&format!("there are {names:?}"), async || Ok(machines(test).await? == names)).await
}

#[tokio::test]
async fn a_pool_scales_rests_and_goes() -> Result<()> {
    run("pool-scale", async |test| {
        apply(test, 2).await?;
        until_there_are(test, &["desk-0", "desk-1"]).await?;
        let pools = test.api::<VirtualMachinePool>();
        change(test, json!({"paused": true})).await?;
        let is_paused = has(REPLICA_PAUSED);
        test.wait(&pools, "desk", "is paused", &is_paused).await?;
        change(test, json!({"replicas": 3})).await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        until_there_are(test, &["desk-0", "desk-1"]).await?;
        change(test, json!({"paused": false})).await?;
        until_there_are(test, &["desk-0", "desk-1", "desk-2"]).await?;
        test.wait(&pools, "desk", "goes on", |pool| !is_paused(pool)).await?;
        let policy = json!({"proactive": {"selectionPolicy": {"sortPolicy": "DescendingOrder"}}});
        change(test, json!({"replicas": 1, "scaleInStrategy": policy})).await?;
        until_there_are(test, &["desk-0"]).await?;

        let own = ListParams::default().fields("involvedObject.kind=VirtualMachinePool");
        let events = test.api::<Event>().list(&own).await?.items;
        let reporters = events.iter().filter_map(|event| event.source.as_ref()?.component.as_deref());
        assert!(reporters.into_iter().all(|it| it == "virtualmachinepool-controller"), "{events:?}");

        // The garbage collector is missing here, so its machine stays, free to go.
        pools.delete("desk", &DeleteParams::default()).await?;
        test.wait_until_gone(&pools, "desk").await?;
        let left = test.api::<VirtualMachine>().get("desk-0").await?;
        assert!(!left.finalizers().iter().any(|it| it == finalizers::POOL));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_machine_that_is_not_selected_leaves_the_pool_for_good() -> Result<()> {
    run("pool-release", async |test| {
        apply(test, 2).await?;
        until_there_are(test, &["desk-0", "desk-1"]).await?;
        let vms = test.api::<VirtualMachine>();
        let other = Patch::Merge(json!({"metadata": {"labels": {"app": "other"}}}));
        vms.patch("desk-0", &PatchParams::default(), &other).await?;
        until_there_are(test, &["desk-1", "desk-2"]).await?;
        assert!(vms.get("desk-0").await?.owner_references().is_empty());
        vms.delete("desk-0", &DeleteParams::default()).await?;
        test.wait_until_gone(&vms, "desk-0").await
    })
    .await
}

#[tokio::test]
async fn a_pool_against_a_full_quota_is_patient_and_says_why() -> Result<()> {
    run("pool-quota", async |test| {
        let quotas = test.api::<ResourceQuota>();
        let hard = json!({"count/virtualmachines.kubevirt.io": "0"});
        let quota = json!({"metadata": {"name": "full"}, "spec": {"hard": hard}});
        quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
        // What the quota controller does.
        let used = Patch::Merge(json!({"status": {"hard": hard, "used": hard}}));
        quotas.patch_status("full", &PatchParams::default(), &used).await?;
        apply(test, 9).await?;
        let pools = test.api::<VirtualMachinePool>();
        let pool = test.wait(&pools, "desk", "says what is wrong", has(REPLICA_FAILURE)).await?;
        let status = pool.status.context("no status")?;
        let failure = condition::find(status.conditions.as_deref(), REPLICA_FAILURE).context("no failure")?;
        let message = failure.message.clone().unwrap_or_default();
        assert!(message.contains("\"desk-0\"") && message.contains("exceeded quota"), "{message}");

        // Its attempts are few, and leave no traces.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let version = pools.get("desk").await?.resource_version();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(pools.get("desk").await?.resource_version(), version);
        let told =
            ListParams::default().fields("involvedObject.kind=VirtualMachinePool,reason=FailedScaleOut");
        assert_eq!(test.api::<Event>().list(&told).await?.items.len(), 1);

        quotas.delete("full", &DeleteParams::default()).await?;
        until("there is room", async || Ok(machines(test).await?.len() == 9)).await?;
        let is_well = |pool: &VirtualMachinePool| !has(REPLICA_FAILURE)(pool);
        test.wait(&pools, "desk", "is well again", is_well).await?;
        Ok(())
    })
    .await
}
