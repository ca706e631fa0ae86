//! What comes late, or while nobody could look.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use kubevirt_api::data_volume::DataVolume;
use kubevirt_api::names::conditions::vm::FAILURE;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::json;
use test_kit::Test;
use test_kit::conditions::has;

use crate::controllers::{run, run_alone, until};
use crate::instances::{create, hand_over, pod_of};
use crate::kubelet;
use crate::vm::manifest;

#[tokio::test]
async fn an_api_server_that_was_restarted_is_followed_again() -> Result<()> {
    run_alone("restart", async |test| {
        let vmis = test.api::<VirtualMachineInstance>();
        let (_, pod) = hand_over(test, &create(test, "before", json!([])).await?).await?;
        let goes = create(test, "goes", json!([])).await?;
        pod_of(test, &goes).await?;

        test.cluster().kill_component("kube-apiserver")?;
        // Long enough for watches to fail.
        tokio::time::sleep(Duration::from_secs(3)).await;
        test.cluster().start_component("kube-apiserver")?;
        // Our own kinds are served a moment later than the rest.
        until("an instance can be made", async || Ok(create(test, "after", json!([])).await.is_ok())).await?;
        vmis.delete("goes", &DeleteParams::default()).await?;

        pod_of(test, &vmis.get("after").await?).await?;
        test.wait_until_gone(&vmis, "goes").await?;
        kubelet::remove(&test.api(), &pod).await?;
        vmis.delete("before", &DeleteParams::default()).await?;
        let ended = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
        vmis.patch("before", &PatchParams::default(), &ended).await?;
        test.wait_until_gone(&vmis, "before").await
    })
    .await
}

const DATA_VOLUMES: &str = "datavolumes.cdi.kubevirt.io";

/// Brings the kind of the importer, as far as anybody looks.
async fn serve_data_volumes(test: &Test) -> Result<()> {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any},
    });
    let names = json!({"kind": "DataVolume", "plural": "datavolumes", "singular": "datavolume"});
    let spec = json!({
        "group": "cdi.kubevirt.io", "scope": "Namespaced", "names": names, "versions": [version],
    });
    let kind = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": DATA_VOLUMES}, "spec": spec,
    });
    test.apply(&kind).await?;
    Ok(())
}

async fn stop_serving_data_volumes(test: &Test) -> Result<()> {
    let kinds: Api<CustomResourceDefinition> = Api::all(test.client());
    kinds.delete(DATA_VOLUMES, &DeleteParams::default()).await?;
    test.wait_until_gone(&kinds, DATA_VOLUMES).await
}

async fn machine_with_disk(test: &Test) -> Result<()> {
    let disk = json!({"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}}});
    test.apply(&manifest(json!({"runStrategy": "Always", "dataVolumeTemplates": [disk]}))).await?;
    test.wait(&test.api::<VirtualMachine>(), "web", "says what it lacks", has(FAILURE)).await?;
    Ok(())
}

#[tokio::test]
async fn an_importer_that_comes_later_is_noticed_each_time() -> Result<()> {
    run_alone("importer", async |test| {
        let rounds = async || {
            for round in 0..2 {
                machine_with_disk(test).await?;
                // The pauses between its own attempts get longer than the time that it takes to notice.
                tokio::time::sleep(Duration::from_secs(25)).await;
                serve_data_volumes(test).await?;
                let made = |disk: &DataVolume| !disk.owner_references().is_empty();
                let within = Duration::from_secs(20);
                let volumes = test.api::<DataVolume>();
                test.wait_within(within, &volumes, "disk", &format!("is made in round {round}"), made)
                    .await?;
                stop_serving_data_volumes(test).await?;
                // It notices that as well, before the next one comes.
                test.api::<VirtualMachine>().delete("web", &DeleteParams::default()).await?;
                test.wait_until_gone(&test.api::<VirtualMachine>(), "web").await?;
            }
            anyhow::Ok(())
        };
        let outcome = rounds().await;
        // Other tests count on its absence.
        let kinds: Api<CustomResourceDefinition> = Api::all(test.client());
        let _ = kinds.delete(DATA_VOLUMES, &DeleteParams::default()).await;
        outcome
    })
    .await
}

#[tokio::test]
async fn a_machine_starts_as_soon_as_its_instance_type_comes() -> Result<()> {
    run("late-type", async |test| {
        let reference = json!({"name": "late", "kind": "VirtualMachineInstancetype"});
        let mut vm = manifest(json!({"runStrategy": "Always", "instancetype": reference}));
        vm["spec"]["template"]["spec"]["domain"] = json!({
            "machine": {"type": "q35"}, "devices": {"autoattachPodInterface": false},
        });
        test.apply(&vm).await?;
        test.wait(&test.api::<VirtualMachine>(), "web", "says what it lacks", has(FAILURE)).await?;
        // Long enough for its own attempts to be far apart.
        tokio::time::sleep(Duration::from_secs(30)).await;
        test.apply(&json!({
            "apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineInstancetype",
            "metadata": {"name": "late"}, "spec": {"cpu": {"guest": 2}, "memory": {"guest": "128Mi"}},
        }))
        .await?;
        let vmis = test.api::<VirtualMachineInstance>();
        let soon = Duration::from_secs(3);
        test.wait_within(soon, &vmis, "web", "is made at once", |_| true).await?;
        Ok(())
    })
    .await
}
