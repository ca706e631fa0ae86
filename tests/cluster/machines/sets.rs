//! Replica sets and pools, scaled out and in.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use kubevirt_api::pool::VirtualMachinePool;
use kubevirt_api::replica_set::VirtualMachineInstanceReplicaSet;
use serde_json::json;
use test_kit::KUBEVIRT;

use super::guest::{PATIENCE, instances, machines};
use super::manifest::idle;

#[tokio::test]
async fn a_replica_set_follows_its_scale() -> Result<()> {
    KUBEVIRT
        .run("replica-set", async |test| {
            let labels = json!({"app": "set"});
            test.apply(&json!({
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachineInstanceReplicaSet",
                "metadata": {"name": "set"},
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": idle()},
                },
            }))
            .await?;
            let sets = test.api::<VirtualMachineInstanceReplicaSet>();
            let ready = |count: i32| {
                move |set: &VirtualMachineInstanceReplicaSet| {
                    let status = set.status.clone().unwrap_or_default();
                    status.ready_replicas == Some(count) && status.replicas == Some(count)
                }
            };
            test.wait_within(PATIENCE, &sets, "set", "has two ready", ready(2)).await?;
            test.kubectl(&["scale", "virtualmachineinstancereplicaset/set", "--replicas=1"])?;
            test.wait_within(PATIENCE, &sets, "set", "has one ready", ready(1)).await?;
            let only = instances(test).list(&ListParams::default()).await?;
            let active = only.items.iter().filter(|vmi| vmi.metadata.deletion_timestamp.is_none()).count();
            ensure!(active == 1, "{active} instances");
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_pool_numbers_its_machines() -> Result<()> {
    KUBEVIRT
        .run("pool", async |test| {
            let labels = json!({"app": "pool"});
            let vm = json!({"runStrategy": "Always", "template": {"metadata": {"labels": labels}, "spec": idle()}});
            test.apply(&json!({
                "apiVersion": "pool.kubevirt.io/v1beta1",
                "kind": "VirtualMachinePool",
                "metadata": {"name": "pool"},
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": labels},
                    "virtualMachineTemplate": {"metadata": {"labels": labels}, "spec": vm},
                },
            }))
            .await?;
            let pools = test.api::<VirtualMachinePool>();
            let ready = |count: i32| move |pool: &VirtualMachinePool| {
                let status = pool.status.clone().unwrap_or_default();
                status.ready_replicas == Some(count) && status.replicas == Some(count)
            };
            test.wait_within(PATIENCE, &pools, "pool", "has two ready", ready(2)).await?;
            let mut names: Vec<_> =
                machines(test).list(&ListParams::default()).await?.items.iter().map(ResourceExt::name_any).collect();
            names.sort();
            assert_eq!(names, ["pool-0", "pool-1"]);
            let smaller = json!({"spec": {"replicas": 1}});
            pools.patch("pool", &PatchParams::default(), &Patch::Merge(smaller)).await?;
            test.wait_within(PATIENCE, &pools, "pool", "has one ready", ready(1)).await?;
            Ok(())
        })
        .await
}
