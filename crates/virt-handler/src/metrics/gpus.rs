//! Which card a launcher got, which only the kubelet knows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kubevirt_launcher_rpc::connect;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::debug;

use self::api::{ListPodResourcesRequest, PodResources};
use super::family::Families;
use super::list;

/// The kubelet's words.
#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    reason = "generated; the protocol file says what each is"
)]
pub mod api {
    tonic::include_proto!("v1");
}

/// The kubelet's socket, in its folder.
const SOCKET: &str = "pod-resources/kubelet.sock";
/// How long the kubelet's word counts.
const FRESH: Duration = Duration::from_secs(25);
/// How long the kubelet may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// What names of launchers' pods begin with.
const LAUNCHER: &str = "virt-launcher-";
/// What names of cards begin with.
const CARDS: &str = "nvidia.com";

/// Asks the kubelet now and then.
#[derive(Clone, Debug)]
pub struct Gpus {
    socket: PathBuf,
    node: String,
    known: Arc<Mutex<Option<(Instant, Families)>>>,
}

impl Gpus {
    /// For this node, whose kubelet has this folder.
    pub fn new(kubelet: &Path, node: &str) -> Self {
        Self { socket: kubelet.join(SOCKET), node: node.to_owned(), known: Arc::default() }
    }

    /// What is known. A kubelet that does not answer is asked again next time, and what it said before counts so long.
    pub async fn collect(&self) -> Families {
        let mut known = self.known.lock().await;
        if let Some((_, families)) = known.as_ref().filter(|(since, _)| since.elapsed() < FRESH) {
            return families.clone();
        }
        match tokio::time::timeout(PATIENCE, self.ask()).await {
            Ok(Ok(pods)) => *known = Some((Instant::now(), given(&pods, &self.node))),
            Ok(Err(error)) => debug!("the kubelet does not tell which devices it gave away: {error}"),
            Err(_) => debug!("the kubelet takes too long to tell which devices it gave away"),
        }
        known.as_ref().map(|(_, families)| families.clone()).unwrap_or_default()
    }

    async fn ask(&self) -> Result<Vec<PodResources>, Box<dyn std::error::Error + Send + Sync>> {
        let (channel, _) = connect::channel(&self.socket).await?;
        let mut kubelet = api::pod_resources_lister_client::PodResourcesListerClient::new(channel);
        Ok(kubelet.list(ListPodResourcesRequest {}).await?.into_inner().pod_resources)
    }
}

/// The cards of launchers.
fn given(pods: &[PodResources], node: &str) -> Families {
    let mut families = Families::default();
    for pod in pods.iter().filter(|pod| pod.name.starts_with(LAUNCHER)) {
        let devices = pod.containers.iter().flat_map(|container| &container.devices);
        for device in devices.filter(|device| device.resource_name.starts_with(CARDS)) {
            for id in &device.device_ids {
                let labels = [
                    ("node", node),
                    ("namespace", &pod.namespace),
                    ("pod", &pod.name),
                    ("resource", &device.resource_name),
                    ("uuid", id),
                ];
                let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
                families.add(list::GPU, labels.to_vec(), 1.0);
            }
        }
    }
    families
}

#[cfg(test)]
mod tests {
    use kubevirt_launcher_rpc::connect::listen;
    use tonic::{Request, Response, Status};

    use super::api::pod_resources_lister_server::{PodResourcesLister, PodResourcesListerServer};
    use super::api::{ContainerDevices, ContainerResources, ListPodResourcesResponse};
    use super::*;
    use crate::testing::Folder;

    struct Kubelet;

    #[tonic::async_trait]
    impl PodResourcesLister for Kubelet {
        async fn list(
            &self,
            _: Request<ListPodResourcesRequest>,
        ) -> Result<Response<ListPodResourcesResponse>, Status> {
            let devices = |resource: &str, ids: &[&str]| ContainerDevices {
                resource_name: resource.into(),
                device_ids: ids.iter().map(|&id| id.to_owned()).collect(),
            };
            let pod = |name: &str, devices: Vec<ContainerDevices>| PodResources {
                name: name.into(),
                namespace: "default".into(),
                containers: vec![ContainerResources { name: "compute".into(), devices }],
            };
            let kvm = devices("devices.kubevirt.io/kvm", &["kvm7"]);
            let pod_resources = vec![
                pod("virt-launcher-web-x", vec![kvm, devices("nvidia.com/T4", &["a", "b"])]),
                pod("training", vec![devices("nvidia.com/T4", &["c"])]),
            ];
            Ok(Response::new(ListPodResourcesResponse { pod_resources }))
        }
    }

    #[tokio::test]
    async fn the_kubelet_tells_which_cards_launchers_have() {
        let folder = Folder::new();
        let gpus = Gpus::new(folder.path(), "node01");
        assert_eq!(gpus.collect().await, Families::default(), "no kubelet, no cards");
        std::fs::create_dir(folder.path().join("pod-resources")).unwrap();
        let incoming = listen(&folder.path().join(SOCKET)).unwrap();
        let server = tonic::transport::Server::builder().add_service(PodResourcesListerServer::new(Kubelet));
        let server = tokio::spawn(server.serve_with_incoming(incoming));
        let told = gpus.collect().await;
        let samples = told.samples("kubevirt_vmi_gpu_info");
        let uuids: Vec<&str> = samples.iter().map(|(labels, _)| labels[4].1.as_str()).collect();
        assert_eq!(uuids, ["a", "b"]);
        assert_eq!(samples[0].0[2], ("pod".to_owned(), "virt-launcher-web-x".to_owned()));
        server.abort();
        assert_eq!(gpus.collect().await, told, "its word counts for a while");
    }
}
