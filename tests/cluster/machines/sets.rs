//! Replica sets and pools, scaled out and in.

use std::fmt::Debug;

use anyhow::{Context, Result};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, ListParams};
use kube::{Resource, ResourceExt};
use kubevirt_api::pool::VirtualMachinePool;
use kubevirt_api::replica_set::VirtualMachineInstanceReplicaSet;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use test_kit::{KUBEVIRT, Test};

use super::guest::{PATIENCE, instances, machines};
use super::manifest::idle;

/// Waits until a set has so many, all of them ready.
async fn wait_for<K>(test: &Test, name: &str, count: usize) -> Result<()>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let ready = |set: &K| {
        let status = serde_json::to_value(set).map(|set| set["status"].clone()).unwrap_or_default();
        status["readyReplicas"] == count && status["replicas"] == count
    };
    test.wait_within(PATIENCE, &test.api::<K>(), name, &format!("has {count} ready"), ready).await.map(drop)
}

/// The names of those that are not about to go.
fn names<K: Resource>(all: Vec<K>) -> Vec<String> {
    let staying = all.iter().filter(|one| one.meta().deletion_timestamp.is_none());
    let mut names: Vec<_> = staying.map(ResourceExt::name_any).collect();
    names.sort();
    names
}

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
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": idle()},
                },
            }))
            .await?;
            let scale = |count: &str| test.kubectl(&["scale", "virtualmachineinstancereplicaset/set", count]);
            let all = async || anyhow::Ok(names(instances(test).list(&ListParams::default()).await?.items));
            let ready =
                async |count: usize| wait_for::<VirtualMachineInstanceReplicaSet>(test, "set", count).await;
            ready(1).await?;
            let first = all().await?;
            scale("--replicas=3")?;
            ready(3).await?;
            let three = all().await?;
            assert!(three.len() == 3 && three.contains(&first[0]), "{first:?} became {three:?}");

            instances(test).delete(&three[0], &DeleteParams::default()).await?;
            test.wait_until_gone(&instances(test), &three[0]).await?;
            ready(3).await?;
            let replaced = all().await?;
            assert!(replaced.len() == 3 && !replaced.contains(&three[0]), "{three:?} became {replaced:?}");

            scale("--replicas=1")?;
            ready(1).await?;
            assert_eq!(all().await?.len(), 1);
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
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "virtualMachineTemplate": {"metadata": {"labels": labels}, "spec": vm},
                },
            }))
            .await?;
            for (count, expected) in
                [(1, &["pool-0"][..]), (3, &["pool-0", "pool-1", "pool-2"]), (1, &["pool-0"])]
            {
                test.kubectl(&["scale", "virtualmachinepool/pool", &format!("--replicas={count}")])?;
                wait_for::<VirtualMachinePool>(test, "pool", count).await.context("pool")?;
                let found = names(machines(test).list(&ListParams::default()).await?.items);
                assert_eq!(found.len(), count, "{found:?}");
                // Which of them goes is the pool's own choice.
                assert!(count == 1 || found == expected, "{found:?}");
            }
            Ok(())
        })
        .await
}
