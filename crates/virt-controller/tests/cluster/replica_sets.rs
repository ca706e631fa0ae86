//! Replica sets: as many instances as wanted, of which some are taken over and some let go.

use anyhow::Result;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kubevirt_api::names::conditions::replica_set::REPLICA_PAUSED;
use kubevirt_api::replica_set::VirtualMachineInstanceReplicaSet;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};
use test_kit::Test;
use test_kit::conditions::has;

use crate::controllers::{run, until};
use crate::vm::template;

/// Takes the finalizers of the template away, so that instances go at once.
fn plain_template() -> Value {
    let mut template = template();
    template["metadata"] = json!({"labels": {"app": "web"}});
    template
}

async fn apply(test: &Test, replicas: u32) -> Result<VirtualMachineInstanceReplicaSet> {
    let set = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceReplicaSet", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": plain_template(),
        },
    });
    test.apply(&set).await?;
    Ok(test.api().get("web").await?)
}

async fn change(test: &Test, spec: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": spec}));
    test.api::<VirtualMachineInstanceReplicaSet>().patch("web", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The instances that belong to the set, and those that belong to nobody.
async fn instances(test: &Test) -> Result<(Vec<String>, Vec<String>)> {
    let all = test.api::<VirtualMachineInstance>().list(&ListParams::default()).await?.items;
    let staying = all.into_iter().filter(|vmi| vmi.metadata.deletion_timestamp.is_none());
    let (orphans, members): (Vec<_>, Vec<_>) = staying.partition(|vmi| vmi.owner_references().is_empty());
    let names = |all: Vec<VirtualMachineInstance>| all.iter().map(ResourceExt::name_any).collect();
    Ok((names(members), names(orphans)))
}

async fn until_there_are(test: &Test, members: usize, orphans: usize) -> Result<()> {
    let what = format!("there are {members} members and {orphans} orphans");
    until(&what, async || {
        let (mine, others) = instances(test).await?;
        Ok((mine.len(), others.len()) == (members, orphans))
    })
    .await
}

/// Gives time for something that should not happen.
async fn pause() {
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
}

#[tokio::test]
async fn a_set_scales_and_rests_while_it_is_paused() -> Result<()> {
    run("set-scale", async |test| {
        apply(test, 2).await?;
        until_there_are(test, 2, 0).await?;
        let sets = test.api::<VirtualMachineInstanceReplicaSet>();
        let counted = |set: &VirtualMachineInstanceReplicaSet| {
            set.status.as_ref().is_some_and(|status| status.replicas == Some(2))
        };
        test.wait(&sets, "web", "has counted them", counted).await?;

        change(test, json!({"paused": true})).await?;
        let is_paused = has(REPLICA_PAUSED);
        test.wait(&sets, "web", "is paused", &is_paused).await?;
        change(test, json!({"replicas": 4})).await?;
        pause().await;
        until_there_are(test, 2, 0).await?;
        change(test, json!({"paused": false})).await?;
        until_there_are(test, 4, 0).await?;
        test.wait(&sets, "web", "goes on", |set| !is_paused(set)).await?;
        change(test, json!({"replicas": 1})).await?;
        until_there_are(test, 1, 0).await?;

        let own = ListParams::default().fields("involvedObject.kind=VirtualMachineInstanceReplicaSet");
        let events = test.api::<Event>().list(&own).await?.items;
        let reporters = events.iter().filter_map(|event| event.source.as_ref()?.component.as_deref());
        assert!(reporters.into_iter().all(|it| it == "virtualmachinereplicaset-controller"), "{events:?}");
        let count = |reason| events.iter().filter(|it| it.reason.as_deref() == Some(reason)).count();
        assert_eq!(["SuccessfulPaused", "SuccessfulResumed"].map(count), [1, 1]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_set_takes_over_what_it_selects_and_lets_go_of_the_rest() -> Result<()> {
    run("set-claim", async |test| {
        let vmis = test.api::<VirtualMachineInstance>();
        let orphan = json!({
            "metadata": {"name": "orphan", "labels": {"app": "web"}}, "spec": plain_template()["spec"],
        });
        vmis.create(&PostParams::default(), &serde_json::from_value(orphan)?).await?;
        let set = apply(test, 2).await?;
        let ours = |vmi: &VirtualMachineInstance| {
            vmi.owner_references().iter().any(|it| Some(&it.uid) == set.metadata.uid.as_ref())
        };
        test.wait(&vmis, "orphan", "is taken over", ours).await?;
        until_there_are(test, 2, 0).await?;

        let other = Patch::Merge(json!({"metadata": {"labels": {"app": "other"}}}));
        vmis.patch("orphan", &PatchParams::default(), &other).await?;
        until_there_are(test, 2, 1).await?;
        assert!(!ours(&vmis.get("orphan").await?));
        // One that comes back is one too many.
        let again = Patch::Merge(json!({"metadata": {"labels": {"app": "web"}}}));
        vmis.patch("orphan", &PatchParams::default(), &again).await?;
        until_there_are(test, 2, 0).await
    })
    .await
}

#[tokio::test]
async fn a_set_that_goes_leaves_everything_as_it_is() -> Result<()> {
    run("set-end", async |test| {
        apply(test, 2).await?;
        until_there_are(test, 2, 0).await?;
        let sets = test.api::<VirtualMachineInstanceReplicaSet>();
        let orphan =
            DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
        sets.delete("web", &orphan).await?;
        let vmis = test.api::<VirtualMachineInstance>();
        let (members, _) = instances(test).await?;
        let other = Patch::Merge(json!({"metadata": {"labels": {"app": "other"}}}));
        vmis.patch(&members[0], &PatchParams::default(), &other).await?;
        pause().await;
        until_there_are(test, 2, 0).await?;
        // What the garbage collector does.
        let nobody = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
        for member in &members {
            vmis.patch(member, &PatchParams::default(), &nobody).await?;
        }
        pause().await;
        until_there_are(test, 0, 2).await?;
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        sets.patch("web", &PatchParams::default(), &free).await?;
        test.wait_until_gone(&sets, "web").await?;
        until_there_are(test, 0, 2).await
    })
    .await
}
