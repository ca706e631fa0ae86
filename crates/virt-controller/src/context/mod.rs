//! What every controller has at hand: the client, the stores, the queues and the settings.

mod queues;
mod stores;
pub(crate) mod trim;
mod types;
mod wakes;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use kube::{Api, Client, Resource};
use kubevirt_admission::ClusterConfig;
use kubevirt_component::{Configuration, NamespacedName, Next, Queue, Recorder};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use queues::Queues;
pub use stores::{Stores, index};
pub use types::Types;
pub use wakes::{claim_name, controller, is_active};

use crate::metrics::Counts;
use crate::vmi::pod;

/// Who reports the events of machines and instances.
pub const REPORTER: &str = "virtualmachine-controller";

/// What the program was started with, as far as controllers need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The image of launchers.
    pub launcher_image: String,
    /// The image of what serves exports.
    pub exporter_image: String,
    /// The secret to pull these images with, or nothing.
    pub image_pull_secret: String,
    /// How long a launcher waits at least for its machine to be asked for, in seconds.
    pub launcher_qemu_timeout: u64,
    /// The group that volumes of a launcher belong to.
    pub launcher_subgid: i64,
    /// How often nodes are labelled with the frequencies of time stamp counters.
    pub node_topology_update_period: Duration,
    /// Further annotations that follow from an instance to its pod; `prefix*` stands for many.
    pub mirrored_annotations: Vec<String>,
    /// Further labels that follow from an instance to its pod; `prefix*` stands for many.
    pub mirrored_labels: Vec<String>,
    /// The namespace of the installation.
    pub namespace: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            launcher_image: String::new(),
            exporter_image: String::new(),
            image_pull_secret: String::new(),
            launcher_qemu_timeout: pod::TIMEOUT,
            launcher_subgid: pod::USER,
            node_topology_update_period: Duration::from_secs(30),
            mirrored_annotations: vec![],
            mirrored_labels: vec![],
            namespace: String::new(),
        }
    }
}

/// What every controller has at hand. Clones share everything.
#[derive(Clone)]
pub struct Context {
    /// Speaks to the API server.
    pub client: Client,
    /// The settings of the cluster, which change while the program runs.
    pub configuration: Configuration,
    /// What the program was started with.
    pub settings: Arc<Settings>,
    /// Reports events.
    pub recorder: Recorder,
    /// What the cluster has, as last heard.
    pub stores: Arc<Stores>,
    /// The work of each controller.
    pub queues: Queues,
    /// What is counted as it happens.
    pub counts: Counts,
    /// Ends all work.
    pub stop: CancellationToken,
}

impl Context {
    /// Starts watching all that controllers need. Work may begin when [`Stores::ready`] has come back.
    pub fn start(
        client: Client,
        configuration: Configuration,
        settings: Settings,
        counts: Counts,
        stop: CancellationToken,
    ) -> Self {
        let queues = Queues::new();
        Self {
            stores: Arc::new(Stores::start(&client, &queues, &counts, &settings.namespace, &stop)),
            recorder: Recorder::new(client.clone(), REPORTER),
            settings: Arc::new(settings),
            client,
            configuration,
            queues,
            counts,
            stop,
        }
    }

    /// The same, for a controller that reports events under a name of its own.
    pub fn reporting_as(&self, reporter: &'static str) -> Self {
        Self { recorder: self.recorder.reporting_as(reporter), ..self.clone() }
    }

    /// Works on the keys of a queue until told to stop, once all stores were filled.
    pub fn work_on<W, E>(
        &self,
        queue: &Queue,
        workers: usize,
        work: impl Fn(Self, NamespacedName) -> W + Send + Sync + 'static,
    ) -> JoinHandle<()>
    where
        W: Future<Output = Result<Next, E>> + Send,
        E: Display + Send,
    {
        let (context, queue) = (self.clone(), queue.clone());
        tokio::spawn(async move {
            if context.stop.run_until_cancelled(context.stores.ready()).await.is_some() {
                queue.work(workers, &context.stop, |key| work(context.clone(), key)).await;
            }
        })
    }

    /// The settings of the cluster as they are now.
    pub fn config(&self) -> Arc<ClusterConfig> {
        self.configuration.now()
    }

    /// The API of a kind in a namespace.
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The API of a kind that is in no namespace.
    pub fn cluster_api<K: Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }
}
