//! What virt-handler writes of instances, and what it leaves alone.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use kubevirt_admission::ClusterConfig;
use kubevirt_api::names::{events, labels, reasons};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_component::{Configuration, Metrics, NamespacedName, Queue, Recorder, Watch};
use kubevirt_domain::Layout;
use kubevirt_virt_handler::domains::{Domains, Owner};
use kubevirt_virt_handler::downward_metrics::Tellers;
use kubevirt_virt_handler::launchers::{Launchers, Settings};
use kubevirt_virt_handler::metrics::Own;
use kubevirt_virt_handler::prepare::Folders;
use kubevirt_virt_handler::vmi::{Instances, Memories, topology};
use serde_json::{Value, json};
use test_kit::{API_SERVER, Test};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The instances of a node that has this test's name and no pods at all.
async fn instances(test: &Test, stop: &CancellationToken) -> Result<Instances> {
    let node = test.namespace().to_owned();
    let folder = std::env::temp_dir().join(&node);
    let queue = Queue::new("test");
    let domains = Arc::new(Domains::load(&folder.join("records"))?);
    // An earlier handler looked after an instance that nobody remembers.
    let key = NamespacedName::new(test.namespace(), "forgotten");
    domains.note(&Owner { key: key.clone(), uid: "f0".into(), pod: "f0".into() })?;
    let (notices, _) = mpsc::unbounded_channel();
    let settings = Settings::new(folder.join("pods"), Duration::from_secs(30));
    let launchers = Arc::new(Launchers::new(settings, domains.clone(), queue.clone(), notices));
    let watch = |label: &str| {
        Watch::<VirtualMachineInstance>::within(test.client(), test.namespace())
            .labels(&format!("{label}={node}"))
            .feeds(&queue, |change| {
                change.latest().map(|vmi| NamespacedName::of(&**vmi)).into_iter().collect()
            })
            .start(stop)
    };
    let (here, coming) = (watch(labels::NODE_NAME), watch(labels::MIGRATION_TARGET_NODE_NAME));
    here.ready().await;
    coming.ready().await;
    launchers.adopt();
    queue.add(key);
    let folders = Folders::new(folder.join("pods"), folder.join("private"));
    let tellers = Tellers::new(&node, launchers.clone(), folders.clone(), Layout::default());
    Ok(Instances {
        client: test.client(),
        here,
        coming,
        domains,
        launchers,
        queue,
        folders,
        recorder: Recorder::new(test.client(), "virt-handler"),
        configuration: Configuration::fixed(ClusterConfig::default()),
        topology: topology(),
        qemu: Vec::new(),
        host_model: Arc::default(),
        own: Own::new(&Metrics::new()),
        tellers,
        memory: Memories::default(),
        node,
    })
}

fn vmi(name: &str, node: &str, status: Value) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "labels": {labels::NODE_NAME: node}},
        "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}},
        "status": status,
    })
}

#[tokio::test]
async fn an_instance_whose_pod_is_gone_fails_with_a_reason() -> Result<()> {
    API_SERVER
        .run("instances", async |test| {
            test.establish_crds().await?;
            let stop = CancellationToken::new();
            let node = test.namespace();
            let api: Api<VirtualMachineInstance> = test.api();
            let pods = json!({"b2a71875-905e-4c4b-92ba-e84018b91d3e": node});
            // The controller has not given this one to the node yet.
            test.apply(&vmi("early", node, json!({"phase": "Scheduled", "activePods": pods}))).await?;
            let early = api.get("early").await?;
            let given = json!({"phase": "Scheduled", "nodeName": node, "activePods": pods});
            test.apply(&vmi("lost", node, given)).await?;

            let instances = instances(test, &stop).await?;
            let queue = instances.queue.clone();
            let work = queue.work(10, &stop, |key| {
                let instances = &instances;
                async move { instances.look_after(&key).await }
            });
            let see = async {
                let failed = |vmi: &VirtualMachineInstance| {
                    vmi.status.as_ref().is_some_and(|status| status.phase == Some(VmiPhase::Failed))
                };
                let lost = test.wait(&api, "lost", "has failed", failed).await?;
                let status = lost.status.unwrap();
                assert_eq!(status.reason.as_deref(), Some(reasons::vmi::LAUNCHER_ENDED));
                let times = status.phase_transition_timestamps.unwrap();
                assert_eq!(times.last().unwrap().phase, Some(VmiPhase::Failed));
                // Once that is told, nothing of it is left, nor of the one that nobody remembers.
                let began = std::time::Instant::now();
                while !instances.domains.all().is_empty() {
                    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", instances.domains.all());
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                let all: Api<Event> = test.api();
                while !all.list(&ListParams::default()).await?.items.iter().any(is_stopped) {
                    assert!(began.elapsed() < Duration::from_secs(120), "nobody was told");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                let untouched = api.get("early").await?;
                assert_eq!(untouched.metadata.resource_version, early.metadata.resource_version);
                anyhow::Ok(())
            };
            tokio::select! {
                () = work => unreachable!("nobody stops it"),
                seen = see => seen?,
            }
            stop.cancel();
            std::fs::remove_dir_all(std::env::temp_dir().join(node))?;
            Ok(())
        })
        .await
}

fn is_stopped(event: &Event) -> bool {
    event.reason.as_deref() == Some(events::vmi::STOPPED)
        && event.involved_object.name.as_deref() == Some("lost")
}
