//! The server of one resource: it listens beside the kubelet, registers, and does so again when the kubelet is new.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kubevirt_launcher_rpc::connect::listen;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, Response, Status};
use tracing::{info, warn};

use super::kubelet::api::device_plugin_server::{DevicePlugin, DevicePluginServer};
use super::kubelet::{self, api};
use super::resource::Resource;
use crate::devices::hand_over;

/// How long to wait between attempts to register.
const BACK_OFF: [u64; 4] = [1, 2, 5, 10];
/// How often to look whether the kubelet is still the same, in case nobody tells.
const CHECK: Duration = Duration::from_secs(10);
/// How long the kubelet may take to hear that nothing is left.
const FAREWELL: Duration = Duration::from_secs(1);

/// What is told to the kubelet.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The resource.
    pub resource: Resource,
    /// Its devices and how they are.
    pub devices: Vec<api::Device>,
}

/// Where plugins work.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder of the sockets.
    pub folder: PathBuf,
    /// The root of the node's files.
    pub root: PathBuf,
    /// Counts changes in the folder.
    pub changes: watch::Receiver<u64>,
    /// Is told when a plugin was registered, or is no longer.
    pub registered: mpsc::UnboundedSender<(String, bool)>,
}

/// A resource that is offered.
pub struct Plugin {
    offer: watch::Sender<Arc<Offer>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Plugin {
    /// Offers a resource from now on.
    pub fn start(offer: Offer, place: Place) -> Self {
        let (sender, receiver) = watch::channel(Arc::new(offer));
        let stop = CancellationToken::new();
        let task = tokio::spawn(keep(receiver, place, stop.clone()));
        Self { offer: sender, stop, task }
    }

    /// Changes what is offered.
    pub fn update(&self, offer: Offer) {
        self.offer.send_if_modified(|current| {
            let changed = **current != offer;
            if changed {
                *current = Arc::new(offer);
            }
            changed
        });
    }

    /// Tells the kubelet that nothing is left, and ends.
    pub async fn end(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}

/// Keeps a resource registered until it is told to stop.
async fn keep(offer: watch::Receiver<Arc<Offer>>, mut place: Place, stop: CancellationToken) {
    let (name, socket) = {
        let now = offer.borrow();
        (now.resource.name.clone(), now.resource.socket())
    };
    let mut failures = 0;
    while !stop.is_cancelled() {
        place.changes.mark_unchanged();
        let kubelet = identity(&place.folder.join(kubelet::SOCKET));
        let outcome = attempt(&offer, &place, &socket, &name, &stop).await;
        match &outcome {
            Ok(_) => {
                info!(resource = name, "the kubelet knows of the device plugin");
                failures = 0;
                let _ = place.registered.send((name.clone(), true));
            }
            Err(error) => warn!(resource = name, "cannot offer devices to the kubelet: {error}"),
        }
        let wait = outcome.is_err().then(|| Duration::from_secs(BACK_OFF[failures.min(BACK_OFF.len() - 1)]));
        failures += usize::from(outcome.is_err());
        until_needed(&mut place, &socket, kubelet, wait, &stop).await;
        let _ = place.registered.send((name.clone(), false));
        if let Ok(server) = outcome {
            server.end().await;
        }
    }
    let _ = std::fs::remove_file(place.folder.join(&socket));
}

/// Listens and registers.
async fn attempt(
    offer: &watch::Receiver<Arc<Offer>>,
    place: &Place,
    socket: &str,
    name: &str,
    stop: &CancellationToken,
) -> Result<Serving, AttemptError> {
    let server = Serving::start(&place.folder.join(socket), offer.clone(), place.root.clone())?;
    tokio::select! {
        registered = kubelet::register(&place.folder, socket, name) => registered?,
        () = stop.cancelled() => {}
    }
    Ok(server)
}

#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error("cannot listen: {0}")]
    Listen(#[from] io::Error),
    #[error(transparent)]
    Register(#[from] kubelet::RegisterError),
}

/// Returns when it is time for another attempt: the kubelet is another one, our socket is gone, or time has passed.
async fn until_needed(
    place: &mut Place,
    socket: &str,
    kubelet: Option<Identity>,
    wait: Option<Duration>,
    stop: &CancellationToken,
) {
    let registered = wait.is_none();
    let mut time = pin!(tokio::time::sleep(wait.unwrap_or_default()));
    loop {
        let now = identity(&place.folder.join(kubelet::SOCKET));
        let gone = registered && identity(&place.folder.join(socket)).is_none();
        if gone || (now.is_some() && now != kubelet) {
            return;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = &mut time, if !registered => return,
            () = tokio::time::sleep(CHECK), if registered => {}
            // Without its sender nothing is told anymore, but the offer stands.
            told = place.changes.changed() => if told.is_err() { stop.cancelled().await },
        }
    }
}

/// What tells a socket from a later one with the same name.
pub(super) type Identity = (u64, i64, i64);

pub(super) fn identity(path: &Path) -> Option<Identity> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.ino(), found.ctime(), found.ctime_nsec()))
}

/// A server that listens.
struct Serving {
    /// Ends the server, also when nobody waits for it.
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Serving {
    fn start(path: &Path, offer: watch::Receiver<Arc<Offer>>, root: PathBuf) -> io::Result<Self> {
        let incoming = listen(path)?;
        let stop = CancellationToken::new();
        let server = DevicePluginServer::new(Server { offer, root, stop: stop.clone() });
        let ended = stop.clone().cancelled_owned();
        let task = tokio::spawn(async move {
            let serve = tonic::transport::Server::builder().add_service(server);
            if let Err(error) = serve.serve_with_incoming_shutdown(incoming, ended).await {
                warn!("a device plugin ended: {error}");
            }
        });
        Ok(Self { stop: stop.drop_guard(), task })
    }

    async fn end(mut self) {
        drop(self.stop);
        if tokio::time::timeout(FAREWELL, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

struct Server {
    offer: watch::Receiver<Arc<Offer>>,
    root: PathBuf,
    stop: CancellationToken,
}

#[tonic::async_trait]
impl DevicePlugin for Server {
    type ListAndWatchStream = ReceiverStream<Result<api::ListAndWatchResponse, Status>>;

    async fn get_device_plugin_options(
        &self,
        _: Request<api::Empty>,
    ) -> Result<Response<api::DevicePluginOptions>, Status> {
        Ok(Response::new(api::DevicePluginOptions { pre_start_required: false }))
    }

    async fn list_and_watch(
        &self,
        _: Request<api::Empty>,
    ) -> Result<Response<Self::ListAndWatchStream>, Status> {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(tell(self.offer.clone(), sender, self.stop.clone()));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn allocate(
        &self,
        request: Request<api::AllocateRequest>,
    ) -> Result<Response<api::AllocateResponse>, Status> {
        let offer = self.offer.borrow().clone();
        let mut container_responses = Vec::new();
        for container in request.into_inner().container_requests {
            let given = offer.resource.allocate(&container.device_ids);
            container_responses.push(given.map_err(|error| Status::not_found(error.to_string()))?);
            for path in offer.resource.hand_over(&container.device_ids) {
                hand_over(&self.root, &path)
                    .map_err(|error| Status::internal(format!("cannot hand over {path}: {error}")))?;
            }
        }
        Ok(Response::new(api::AllocateResponse { container_responses }))
    }

    async fn pre_start_container(
        &self,
        _: Request<api::PreStartContainerRequest>,
    ) -> Result<Response<api::PreStartContainerResponse>, Status> {
        Ok(Response::new(api::PreStartContainerResponse {}))
    }
}

/// Sends all devices, again when they change, and none at the end, so that the kubelet gives out no more.
async fn tell(
    mut offer: watch::Receiver<Arc<Offer>>,
    kubelet: mpsc::Sender<Result<api::ListAndWatchResponse, Status>>,
    stop: CancellationToken,
) {
    loop {
        let devices = offer.borrow_and_update().devices.clone();
        if kubelet.send(Ok(api::ListAndWatchResponse { devices })).await.is_err() {
            return;
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = kubelet.closed() => return,
            told = offer.changed() => if told.is_err() { break },
        }
    }
    let _ = kubelet.send(Ok(api::ListAndWatchResponse { devices: Vec::new() })).await;
}
