//! The whole of it with a kubelet that is a real server on a real socket.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kubevirt_api::kubevirt::KubeVirt;
use kubevirt_launcher_rpc::connect;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_stream::StreamExt;
use tonic::{Request, Response, Status};

use super::kubelet::api::device_plugin_client::DevicePluginClient;
use super::kubelet::api::registration_server::{Registration, RegistrationServer};
use super::testing::Tree;
use super::*;

/// As long as a loaded machine may need.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Default)]
struct Kubelet {
    /// Sockets by resource.
    known: Arc<Mutex<BTreeMap<String, String>>>,
    changed: Arc<Notify>,
}

#[tonic::async_trait]
impl Registration for Kubelet {
    async fn register(
        &self,
        request: Request<kubelet::api::RegisterRequest>,
    ) -> Result<Response<kubelet::api::Empty>, Status> {
        let told = request.into_inner();
        assert_eq!(told.version, "v1beta1");
        self.known.lock().unwrap().insert(told.resource_name, told.endpoint);
        self.changed.notify_one();
        Ok(Response::new(kubelet::api::Empty {}))
    }
}

/// A node with a kubelet and a handler.
struct Scene {
    tree: Tree,
    kubelet: Kubelet,
    listening: Option<tokio::task::JoinHandle<()>>,
    configuration: watch::Sender<Arc<ClusterConfig>>,
    ready: watch::Receiver<bool>,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

impl Scene {
    fn new() -> Self {
        let tree = Tree::new();
        tree.file("root/dev/net/tun", "");
        tree.file("plugins/kubelet_internal_checkpoint", "");
        let options = Options {
            root: tree.path().join("root"),
            sysfs: tree.path().join("sys"),
            plugins: tree.path().join("plugins"),
            max_devices: 2,
            node: None,
        };
        let (configuration, configured) = watch::channel(config(json!({})));
        let (sender, ready) = watch::channel(false);
        let stop = CancellationToken::new();
        let running = tokio::spawn(run(Configuration::told(configured), options, sender, stop.clone()));
        Self { tree, kubelet: Kubelet::default(), listening: None, configuration, ready, stop, running }
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.tree.path().join("plugins").join(name)
    }

    /// Starts the kubelet anew, which removes all sockets, as a real one does.
    fn restart_kubelet(&mut self) {
        if let Some(old) = self.listening.take() {
            old.abort();
        }
        let folder = self.tree.path().join("plugins");
        std::fs::create_dir_all(&folder).unwrap();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "sock") {
                // A plugin that ends at the same moment takes its socket away itself.
                let _ = std::fs::remove_file(path);
            }
        }
        // Who still speaks to the old one tells nothing to the new one.
        self.kubelet = Kubelet::default();
        let incoming = connect::listen(&self.socket(kubelet::SOCKET)).unwrap();
        let server =
            tonic::transport::Server::builder().add_service(RegistrationServer::new(self.kubelet.clone()));
        self.listening =
            Some(tokio::spawn(async move { server.serve_with_incoming(incoming).await.unwrap() }));
    }

    async fn until_known(&self, resource: &str) -> PathBuf {
        let wait = async {
            loop {
                let found = self.kubelet.known.lock().unwrap().get(resource).cloned();
                if let Some(found) = found {
                    return self.socket(&found);
                }
                self.kubelet.changed.notified().await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{resource} was not registered"))
    }

    async fn until_ready(&mut self, ready: bool) {
        tokio::time::timeout(PATIENCE, self.ready.wait_for(|now| *now == ready)).await.unwrap().unwrap();
    }

    /// What a plugin tells: all lists from now on. One that registers again is not there for a moment.
    async fn watch(&self, resource: &str) -> Lists {
        let begin = std::time::Instant::now();
        loop {
            let socket = self.until_known(resource).await;
            if let Some(lists) = Lists::of(&socket).await {
                return lists;
            }
            assert!(begin.elapsed() < PATIENCE, "{resource} does not answer");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

struct Lists {
    client: DevicePluginClient<tonic::transport::Channel>,
    lists: tonic::Streaming<kubelet::api::ListAndWatchResponse>,
}

impl Lists {
    async fn of(socket: &Path) -> Option<Self> {
        let (channel, _) = connect::channel(socket).await.ok()?;
        let mut client = DevicePluginClient::new(channel);
        let lists = client.list_and_watch(kubelet::api::Empty {}).await.ok()?.into_inner();
        Some(Self { client, lists })
    }

    async fn next(&mut self) -> Vec<(String, String)> {
        let list = tokio::time::timeout(PATIENCE, self.lists.next()).await.unwrap().unwrap().unwrap();
        list.devices.into_iter().map(|device| (device.id, device.health)).collect()
    }
}

fn config(configuration: Value) -> Arc<ClusterConfig> {
    let object = json!({ "metadata": { "name": "kubevirt" }, "spec": { "configuration": configuration } });
    Arc::new(ClusterConfig::of(&serde_json::from_value::<KubeVirt>(object).unwrap()))
}

fn pair(name: &str, health: &str) -> Vec<(String, String)> {
    (0..2).map(|number| (format!("{name}{number}"), health.to_owned())).collect()
}

#[tokio::test]
async fn offers_devices_and_follows_them() {
    let mut scene = Scene::new();
    scene.restart_kubelet();
    scene.until_ready(true).await;

    let mut taps = scene.watch("devices.kubevirt.io/tun").await;
    assert_eq!(taps.next().await, pair("tun", kubelet::HEALTHY));
    let mut vhost = scene.watch("devices.kubevirt.io/vhost-net").await;
    assert_eq!(vhost.next().await, pair("vhost-net", kubelet::UNHEALTHY));

    scene.tree.file("root/dev/vhost-net", "");
    assert_eq!(vhost.next().await, pair("vhost-net", kubelet::HEALTHY));
    std::fs::remove_file(scene.tree.path().join("root/dev/net/tun")).unwrap();
    assert_eq!(taps.next().await, pair("tun", kubelet::UNHEALTHY));

    let request = kubelet::api::ContainerAllocateRequest { device_ids: vec!["tun0".into()] };
    let answer =
        taps.client.allocate(kubelet::api::AllocateRequest { container_requests: vec![request] }).await;
    let given = answer.unwrap().into_inner().container_responses.remove(0).devices;
    assert_eq!((given[0].host_path.as_str(), given[0].permissions.as_str()), ("/dev/net/tun", "rw"));

    scene.stop.cancel();
    assert_eq!(taps.next().await, []);
    scene.running.await.unwrap();
    assert!(!scene.tree.path().join("plugins/kubevirt-tun.sock").exists());
    assert!(!*scene.ready.borrow());
}

/// A device that is there but runs no guest is not offered.
#[tokio::test]
async fn offers_no_kvm_that_does_not_work() {
    let mut scene = Scene::new();
    scene.restart_kubelet();
    let mut kvm = scene.watch("devices.kubevirt.io/kvm").await;
    assert_eq!(kvm.next().await, pair("kvm", kubelet::UNHEALTHY));
    scene.tree.link("root/dev/kvm", "/dev/null");
    assert_eq!(kvm.next().await, []);
    std::fs::remove_file(scene.tree.path().join("root/dev/kvm")).unwrap();
    assert_eq!(kvm.next().await, pair("kvm", kubelet::UNHEALTHY));
    scene.stop.cancel();
    scene.running.await.unwrap();
}

#[tokio::test]
async fn a_kubelet_that_comes_late_or_again_is_told() {
    let mut scene = Scene::new();
    // Without a kubelet the handler waits and is not ready.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!*scene.ready.borrow());
    scene.restart_kubelet();
    scene.until_ready(true).await;
    for _ in 0..3 {
        scene.restart_kubelet();
        let mut taps = scene.watch("devices.kubevirt.io/tun").await;
        assert_eq!(taps.next().await, pair("tun", kubelet::HEALTHY));
        scene.until_known("devices.kubevirt.io/kvm").await;
        scene.until_known("devices.kubevirt.io/vhost-net").await;
        scene.until_ready(true).await;
    }
    scene.stop.cancel();
    scene.running.await.unwrap();
}

#[tokio::test]
async fn the_configuration_changes_what_is_offered() {
    let mut scene = Scene::new();
    let at = "sys/bus/pci/devices/0000:65:00.0";
    scene.tree.file(&format!("{at}/uevent"), "PCI_ID=10DE:1EB8\n");
    scene.tree.link(&format!("{at}/driver"), "../../drivers/vfio-pci");
    scene.tree.link(&format!("{at}/iommu_group"), "../../../kernel/iommu_groups/45");
    scene.restart_kubelet();
    scene.until_ready(true).await;
    scene.configuration.send_replace(config(json!({ "permittedHostDevices": { "pciHostDevices":
        [{ "pciVendorSelector": "10de:1eb8", "resourceName": "nvidia.com/T4" }] } })));
    let mut cards = scene.watch("nvidia.com/T4").await;
    assert_eq!(cards.next().await, [("45".to_owned(), kubelet::UNHEALTHY.to_owned())]);
    // The folder comes with the first device in it.
    scene.tree.file("root/dev/vfio/vfio", "");
    scene.tree.file("root/dev/vfio/45", "");
    assert_eq!(cards.next().await, [("45".to_owned(), kubelet::HEALTHY.to_owned())]);
    scene.until_ready(true).await;

    scene.configuration.send_replace(config(json!({})));
    assert_eq!(cards.next().await, []);
    scene.until_ready(true).await;
    scene.stop.cancel();
    scene.running.await.unwrap();
}
