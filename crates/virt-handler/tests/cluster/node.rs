//! What virt-handler does for its node: labels and signs of life on a node object, devices on a real kubelet.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kubevirt_admission::ClusterConfig;
use kubevirt_api::kubevirt::KubeVirt;
use kubevirt_api::names::{annotations, events, labels, resources};
use kubevirt_component::{Configuration, Recorder};
use kubevirt_virt_handler::labels::facts::{Facts, write};
use kubevirt_virt_handler::{devices, heartbeat, labels as labeller};
use serde_json::{Value, json};
use test_kit::{API_SERVER, Shared, Test};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A node on which no other handler offers the same devices.
static NODE: Shared = Shared::new("test-node", 1);

/// As long as a loaded machine may need.
const PATIENCE: Duration = Duration::from_secs(120);

fn config(configuration: &Value) -> Arc<ClusterConfig> {
    let object = json!({ "metadata": { "name": "kubevirt" }, "spec": { "configuration": configuration } });
    Arc::new(ClusterConfig::of(&serde_json::from_value::<KubeVirt>(object).unwrap()))
}

fn label<'a>(node: &'a Node, name: &str) -> Option<&'a str> {
    node.metadata.labels.as_ref()?.get(name).map(String::as_str)
}

/// A node that nobody runs, with this namespace's name, and its end.
struct Bare {
    nodes: Api<Node>,
    name: String,
}

impl Bare {
    async fn new(test: &Test, marks: &Value) -> Result<Self> {
        let nodes: Api<Node> = Api::all(test.client());
        let name = test.namespace().to_owned();
        let mut object = json!({ "metadata": marks });
        object["metadata"]["name"] = name.as_str().into();
        nodes.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(Self { nodes, name })
    }

    async fn get(&self) -> Result<Node> {
        Ok(self.nodes.get(&self.name).await?)
    }

    async fn delete(self) -> Result<()> {
        self.nodes.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }
}

#[tokio::test]
async fn a_node_is_labelled_once_and_for_all() -> Result<()> {
    API_SERVER
        .run("labels", async |test| {
            let stale = json!({ "labels": { "cpu-model.node.kubevirt.io/Stale": "true", "zone": "one" } });
            let node = Bare::new(test, &stale).await?;
            let (facts, _) = labeller::program::gather(None).await?;
            let folder = std::env::temp_dir().join(&node.name);
            std::fs::create_dir_all(&folder)?;
            let path = folder.join(labeller::facts::FILE);
            write(&facts, &path)?;
            let recorder = Recorder::new(test.client(), "virt-handler");

            let (configuration, configured) = watch::channel(config(&json!({})));
            let stop = CancellationToken::new();
            let running = tokio::spawn(labeller::run(
                test.client(),
                node.name.clone(),
                Configuration::told(configured),
                path.clone(),
                recorder,
                stop.clone(),
            ));
            let machine = format!("{}{}", labels::MACHINE_TYPE_PREFIX, facts.machine_types[0].name);
            test.wait(&node.nodes, &node.name, "has labels", |node| label(node, &machine) == Some("true"))
                .await?;
            let seen = node.get().await?;
            assert_eq!(label(&seen, "cpu-model.node.kubevirt.io/Stale"), None);
            assert_eq!(label(&seen, "zone"), Some("one"));
            assert_eq!(label(&seen, labels::OBSOLETE_HOST_MODEL), None);

            // A new configuration is followed, and the cluster is told of a CPU that is too old.
            let Facts { cpu, .. } = facts;
            let model = cpu.model.context("this host has no model")?;
            configuration.send_replace(config(&json!({ "obsoleteCPUModels": { &model: true } })));
            test.wait(&node.nodes, &node.name, "is obsolete", |node| {
                label(node, labels::OBSOLETE_HOST_MODEL) == Some("true")
            })
            .await?;
            let told = async {
                loop {
                    let list = ListParams::default().fields(&format!("involvedObject.name={}", node.name));
                    let found = Api::<Event>::all(test.client()).list(&list).await?;
                    if let Some(event) = found.items.into_iter().next() {
                        return anyhow::Ok(event.reason);
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            };
            let reason = tokio::time::timeout(PATIENCE, told).await??;
            assert_eq!(reason.as_deref(), Some(events::node::HOST_MODEL_IS_OBSOLETE));

            // Nothing is written where nothing is to change.
            let before = node.get().await?.metadata.resource_version;
            configuration
                .send_replace(config(&json!({ "obsoleteCPUModels": { &model: true, "other": true } })));
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(node.get().await?.metadata.resource_version, before);
            stop.cancel();
            running.await?;
            std::fs::remove_dir_all(&folder)?;
            node.delete().await
        })
        .await
}

#[tokio::test]
async fn a_node_takes_instances_while_its_handler_is_ready() -> Result<()> {
    API_SERVER
        .run("heartbeat", async |test| {
            let node = Bare::new(test, &json!({ "labels": { labels::NODE_SCHEDULABLE: "true" } })).await?;
            let (ready, readiness) = watch::channel(false);
            let stop = CancellationToken::new();
            let running = tokio::spawn(heartbeat::run(
                test.client(),
                node.name.clone(),
                Configuration::fixed(ClusterConfig::default()),
                readiness,
                heartbeat::Options::default(),
                stop.clone(),
            ));
            let is =
                |value: &'static str| move |node: &Node| label(node, labels::NODE_SCHEDULABLE) == Some(value);
            test.wait(&node.nodes, &node.name, "takes nothing yet", is("false")).await?;
            ready.send_replace(true);
            test.wait(&node.nodes, &node.name, "takes instances", is("true")).await?;
            let seen = node.get().await?;
            let beat =
                seen.metadata.annotations.context("no annotations")?[annotations::NODE_HEARTBEAT].clone();
            let age = jiff::Timestamp::now().as_second() - beat.parse::<jiff::Timestamp>()?.as_second();
            assert!((0..600).contains(&age), "{beat}");
            stop.cancel();
            running.await?;
            assert!(is("false")(&node.get().await?), "a handler that leaves takes its node out of service");
            node.delete().await
        })
        .await
}

/// What a pod runs that has a tap: opening it for reading and writing needs the node and the permission.
const OPEN_TAP: &str = r#"
fn main() {
    std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun").unwrap();
}
"#;

/// The kubelet of a node learns of the devices, gives one to a pod, and forgets them when the handler ends.
#[tokio::test]
async fn a_kubelet_knows_the_devices() -> Result<()> {
    NODE
        .run_alone("devices", async |test| {
            let name = "node01";
            let nodes: Api<Node> = Api::all(test.client());
            let options = devices::Options {
                root: "/".into(),
                sysfs: "/sys".into(),
                plugins: plugins(test, name)?,
                max_devices: 7,
                node: None,
            };
            let (ready, mut readiness) = watch::channel(false);
            let stop = CancellationToken::new();
            let configured = Configuration::fixed(ClusterConfig::default());
            let running = tokio::spawn(devices::run(configured, options, ready, stop.clone()));
            tokio::time::timeout(PATIENCE, readiness.wait_for(|ready| *ready)).await??;

            let amount = |node: &Node, resource: &str| {
                let all = node.status.as_ref()?.allocatable.as_ref()?;
                all.get(resource).map(|amount| amount.0.clone())
            };
            let has = |resource: &'static str, count: &'static str| {
                move |node: &Node| amount(node, resource).as_deref() == Some(count)
            };
            test.wait(&nodes, name, "has taps", has(resources::TUN, "7")).await?;
            if kubevirt_host::kvm::probe() == kubevirt_host::kvm::Kvm::Usable {
                test.wait(&nodes, name, "has KVM", has(resources::KVM, "7")).await?;
            } else {
                test.wait(&nodes, name, "has no KVM", has(resources::KVM, "0")).await?;
            }

            let image = test.load_program("open-tap", OPEN_TAP)?;
            test.apply(&json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": { "name": "tap" },
                "spec": {
                    "nodeSelector": { "kubernetes.io/hostname": name },
                    "restartPolicy": "Never",
                    "containers": [{
                        "name": "tap",
                        "image": image,
                        "resources": { "limits": { resources::TUN: "1" } },
                    }],
                },
            }))
            .await?;
            let succeeded = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Succeeded");
            test.wait(&test.api::<Pod>(), "tap", "has opened its tap", succeeded).await?;

            stop.cancel();
            running.await?;
            test.wait(&nodes, name, "has no taps", has(resources::TUN, "0")).await?;
            let gone = json!({ "status": {
                "capacity": { resources::TUN: null, resources::KVM: null, resources::VHOST_NET: null, resources::SEV: null },
                "allocatable": { resources::TUN: null, resources::KVM: null, resources::VHOST_NET: null, resources::SEV: null },
            } });
            nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&gone)).await?;
            Ok(())
        })
        .await
}

/// The folder of device plugins, as a process of the node sees it; paths of sockets must be short.
fn plugins(test: &Test, node: &str) -> Result<PathBuf> {
    let enter = test.cluster().enter_node(node)?;
    let mut words = enter.iter().map(|word| word.to_string_lossy().into_owned());
    let process = words.find_map(|word| word.strip_prefix("--target=").map(str::to_owned));
    let process = process.context("no process to enter")?;
    Ok(format!("/proc/{process}/root/var/lib/kubelet/device-plugins").into())
}
