//! The way of an instance from its creation to its node, and to its end.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kubevirt_api::condition;
use kubevirt_api::names::{finalizers, labels};
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};
use test_kit::{Test, conditions};

use crate::controllers::{IMAGE, run};
use crate::kubelet;

pub async fn create(test: &Test, name: &str, volumes: Value) -> Result<VirtualMachineInstance> {
    let vmi = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "finalizers": [finalizers::FOREGROUND_DELETE]},
        "spec": {
            "architecture": "amd64",
            "domain": {
                "cpu": {"cores": 1, "model": "host-passthrough"}, "machine": {"type": "q35"}, "memory": {"guest": "64Mi"},
                "devices": {"disks": [], "interfaces": []}, "firmware": {"uuid": "b8511fdf-37f2-40d8-af9b-aac3933f3d74"},
            },
            "volumes": volumes,
        },
        "status": {"phase": "Pending", "runtimeUser": 107},
    });
    let vmi = serde_json::from_value(vmi)?;
    Ok(test.api().create(&PostParams::default(), &vmi).await?)
}

pub fn is_in(phase: &str) -> impl Fn(&VirtualMachineInstance) -> bool {
    let phase = phase.to_owned();
    move |vmi| vmi.status.as_ref().and_then(|it| it.phase.as_ref()).is_some_and(|it| it.as_str() == phase)
}

/// The one pod of an instance, once it is there.
pub async fn pod_of(test: &Test, vmi: &VirtualMachineInstance) -> Result<String> {
    let vmis = test.api::<VirtualMachineInstance>();
    test.wait(&vmis, &vmi.name_any(), "is being scheduled", is_in("Scheduling")).await?;
    let own = ListParams::default().labels(&format!("{}={}", labels::CREATED_BY, vmi.uid().unwrap()));
    let pods = test.api::<Pod>().list(&own).await?.items;
    anyhow::ensure!(pods.len() == 1, "{} pods", pods.len());
    Ok(pods[0].name_any())
}

/// Takes an instance to its node.
pub async fn hand_over(
    test: &Test,
    vmi: &VirtualMachineInstance,
) -> Result<(VirtualMachineInstance, String)> {
    let pods = test.api::<Pod>();
    let pod = pod_of(test, vmi).await?;
    kubelet::schedule(&pods, &pod, "node1").await?;
    kubelet::run(&pods, &pod, false).await?;
    let vmis = test.api::<VirtualMachineInstance>();
    let vmi = test.wait(&vmis, &vmi.name_any(), "is handed over", is_in("Scheduled")).await?;
    Ok((vmi, pod))
}

#[tokio::test]
async fn an_instance_gets_a_pod_and_is_handed_over_to_its_node() -> Result<()> {
    run("hand-over", async |test| {
        let created = create(test, "web", json!([])).await?;
        let (vmi, pod) = hand_over(test, &created).await?;
        let status = vmi.status.clone().context("no status")?;
        assert_eq!(status.node_name.as_deref(), Some("node1"));
        assert_eq!(vmi.labels()[labels::NODE_NAME], "node1");
        assert_eq!(status.launcher_container_image_version.as_deref(), Some(IMAGE));
        assert_eq!(
            status.active_pods.map(|pods| pods.into_values().collect()),
            Some(vec!["node1".to_owned()])
        );
        assert_eq!(status.runtime_user, Some(107));
        // The kind has no status of its own, so each write of the status counts.
        assert_eq!(vmi.metadata.generation, Some(3), "more than two writes");

        let unpaused = conditions::has("kubevirt.io/virtual-machine-unpaused");
        let pod = test.wait(&test.api::<Pod>(), &pod, "can be reached", unpaused).await?;
        assert_eq!(pod.labels()[labels::NODE_NAME], "node1");
        let made = ListParams::default().fields("involvedObject.name=web,reason=SuccessfulCreate");
        assert_eq!(test.api::<Event>().list(&made).await?.items.len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_deleted_instance_takes_its_pod_along() -> Result<()> {
    run("deletion", async |test| {
        let created = create(test, "web", json!([])).await?;
        let (_, pod) = hand_over(test, &created).await?;
        let (vmis, pods) = (test.api::<VirtualMachineInstance>(), test.api::<Pod>());
        vmis.delete("web", &DeleteParams::default()).await?;
        let leaving = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        test.wait(&pods, &pod, "is told to go", leaving).await?;
        assert!(vmis.get_opt("web").await?.is_some(), "it goes before its pod");
        kubelet::remove(&pods, &pod).await?;
        test.wait_until_gone(&vmis, "web").await
    })
    .await
}

#[tokio::test]
async fn an_instance_that_is_deleted_before_its_node_leaves_nothing() -> Result<()> {
    run("early-deletion", async |test| {
        let created = create(test, "web", json!([])).await?;
        let pod = pod_of(test, &created).await?;
        let vmis = test.api::<VirtualMachineInstance>();
        vmis.delete("web", &DeleteParams::default()).await?;
        test.wait_until_gone(&vmis, "web").await?;
        test.wait_until_gone(&test.api::<Pod>(), &pod).await
    })
    .await
}

#[tokio::test]
async fn a_pod_that_is_lost_on_its_way_fails_the_instance() -> Result<()> {
    run("lost-pod", async |test| {
        let created = create(test, "web", json!([])).await?;
        let pod = pod_of(test, &created).await?;
        kubelet::remove(&test.api::<Pod>(), &pod).await?;
        let vmis = test.api::<VirtualMachineInstance>();
        test.wait(&vmis, "web", "has failed", is_in("Failed")).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_claim_that_is_missing_is_waited_for() -> Result<()> {
    run("missing-claim", async |test| {
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
        let created = create(test, "web", volumes).await?;
        let vmis = test.api::<VirtualMachineInstance>();
        let is_told = |vmi: &VirtualMachineInstance| {
            let conditions = vmi.status.as_ref().and_then(|status| status.conditions.as_deref());
            condition::find(conditions, "Synchronized")
                .is_some_and(|it| it.reason.as_deref() == Some("FailedPvcNotFound"))
        };
        test.wait(&vmis, "web", "says what is missing", is_told).await?;
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        let claims = test.api::<PersistentVolumeClaim>();
        claims.create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
        pod_of(test, &created).await?;
        assert!(!is_told(&vmis.get("web").await?));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_plugged_volume_is_held_beside_the_guest() -> Result<()> {
    run("plug", async |test| {
        let created = create(test, "web", json!([])).await?;
        hand_over(test, &created).await?;
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        let claims = test.api::<PersistentVolumeClaim>();
        claims.create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
        let vmis = test.api::<VirtualMachineInstance>();
        let change = json!({
            "spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data", "hotpluggable": true}}]},
            "status": {"phase": "Running", "selinuxContext": "none"},
        });
        vmis.patch("web", &PatchParams::default(), &Patch::Merge(change)).await?;
        let phase = |phase: &'static str| {
            move |vmi: &VirtualMachineInstance| {
                let volumes = vmi.status.iter().flat_map(|status| status.volume_status.iter().flatten());
                volumes.into_iter().any(|it| it.name == "data" && it.phase.as_ref().is_some_and(|it| it.as_str() == phase))
            }
        };
        let vmi = test.wait(&vmis, "web", "has its volume on the node", phase("AttachedToNode")).await?;
        let volume = &vmi.status.unwrap().volume_status.unwrap()[0];
        let holder = volume.hotplug_volume.as_ref().and_then(|it| it.attach_pod_name.clone()).unwrap();
        let pod = test.api::<Pod>().get(&holder).await?;
        assert_eq!(pod.labels()[labels::APP], "hotplug-disk");

        let change = json!({"spec": {"volumes": []}});
        vmis.patch("web", &PatchParams::default(), &Patch::Merge(change)).await?;
        test.wait_until_gone(&test.api::<Pod>(), &holder).await?;
        let none = |vmi: &VirtualMachineInstance| {
            vmi.status.as_ref().and_then(|status| status.volume_status.as_ref()).is_none_or(Vec::is_empty)
        };
        test.wait(&vmis, "web", "has forgotten the volume", none).await?;
        Ok(())
    })
    .await
}
