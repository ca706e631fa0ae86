//! The life of the program: everything that looks after a node, put together.

mod serve;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Parser;
use kube::Client;
use kubevirt_api::names::labels::{MIGRATION_TARGET_NODE_NAME, NODE_NAME};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::tls::{Files, Policy};
use kubevirt_component::{
    Change, Configuration, Health, Limits, Metrics, NamespacedName, Queue, Recorder, Role, Store, Watch,
    start,
};
use kubevirt_domain::Layout;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::arguments::Arguments;
use crate::domains::Domains;
use crate::downward_metrics::Tellers;
use crate::labels::facts::{FILE, Facts, QEMU_FILE};
use crate::launchers::{Launchers, Notice, Settings};
use crate::metrics::{self, Own};
use crate::prepare::Folders;
use crate::recall::recall;
use crate::server::{Server, Trust};
use crate::vmi::{Instances, Memories, topology};
use crate::{devices, heartbeat, labels, server};

/// How many instances are looked after at a time.
const WORKERS: usize = 10;

/// Where what may have left something on the node is written down, in the private folder.
const RECORDS: &str = "ghost-records";

/// Runs virt-handler; its name is the first argument.
pub fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let arguments = Arguments::parse_from(arguments);
    let common = arguments.common.clone();
    start::run(Role::Handler, &common, async |stop| live(arguments, stop).await)
}

async fn live(arguments: Arguments, stop: CancellationToken) -> Result<ExitCode> {
    let node = arguments.node().context("this node has no name: say --hostname-override")?;
    let metrics = Metrics::new();
    let limits = Limits::new(Role::Handler.default_rate());
    let client = arguments.common.client(Role::Handler, &limits, &metrics).await?;
    let configuration = Configuration::follow(client.clone(), &arguments.common.namespace(), &stop).await;
    let policy =
        configuration.apply(Role::Handler, arguments.common.verbosity, Some(node.clone()), &limits, &stop);
    let health = Health::new(Role::Handler, &metrics);
    let own = metrics::register(&metrics);
    let (notices, heard) = mpsc::unbounded_channel();
    let instances = Arc::new(instances(&arguments, &node, &client, &configuration, notices, own, &stop)?);
    instances.queue.measure(&metrics);
    let status = serve::Server {
        health: health.clone(),
        metrics,
        instances: instances.clone(),
        requests: arguments.max_metric_requests,
        facts: arguments.node_labeller_dir.join(FILE),
        kubelet: arguments.kubelet_root.clone(),
    };
    status.start(&arguments.common, policy.clone(), &stop).await?;

    let tasks = TaskTracker::new();
    tasks.spawn(answer_users(arguments.clone(), client.clone(), instances.clone(), policy, stop.clone()));
    look_after_node(&tasks, &arguments, &node, &client, &configuration, &stop);
    tasks.spawn(pass_on(instances.clone(), heard, stop.clone()));
    tasks.close();
    if stop.run_until_cancelled(adopt(&instances)).await.is_some() {
        health.set_ready(true);
        tracing::info!(node, "looks after instances");
    }
    let queue = instances.queue.clone();
    queue
        .work(WORKERS, &stop, |key| {
            let instances = instances.clone();
            async move { instances.look_after(&key).await }
        })
        .await;
    // The node is taken out of service; machines and their launchers stay as they are.
    health.set_ready(false);
    tasks.wait().await;
    Ok(ExitCode::SUCCESS)
}

/// Passes on to launchers what virt-api asks for.
async fn answer_users(
    arguments: Arguments,
    client: Client,
    instances: Arc<Instances>,
    policy: watch::Receiver<Policy>,
    stop: CancellationToken,
) {
    let common = &arguments.common;
    let address = SocketAddr::new(common.listen, arguments.console_server_port);
    let authority = server::authority(&client, &common.namespace(), &arguments.ca_configmap_name, &stop);
    let own = common.certificate(Role::Handler);
    let server = Server {
        here: instances.here.clone(),
        domains: instances.domains.clone(),
        launchers: instances.launchers.clone(),
        folders: instances.folders.clone(),
        private: Layout::default().private.into(),
        recorder: instances.recorder.clone(),
        to_guests: Files {
            certificate: arguments.vsock_client_cert_file,
            key: arguments.vsock_client_key_file,
        },
        trust: if arguments.externally_managed { Trust::ExternallyManaged } else { Trust::Named },
        stop: stop.clone(),
    };
    if let Err(error) = server.listen(address, own, authority, policy).await {
        // Without it nobody reaches a console; the kubelet starts us again, and machines do not notice.
        tracing::error!("users cannot reach their machines: {error:#}");
        stop.cancel();
    }
}

/// Looks after what an earlier handler looked after, whether it still exists or not.
async fn adopt(instances: &Instances) {
    recall(&instances.domains, &instances.folders).await;
    // Launchers have something to tell, whether the API answers or not.
    instances.launchers.adopt();
    instances.here.ready().await;
    instances.coming.ready().await;
    for owner in instances.domains.all() {
        instances.queue.add(owner.key);
    }
}

/// Everything that is needed to look after instances.
fn instances(
    arguments: &Arguments,
    node: &str,
    client: &Client,
    configuration: &Configuration,
    notices: mpsc::UnboundedSender<Notice>,
    own: Own,
    stop: &CancellationToken,
) -> Result<Instances> {
    let queue = Queue::new("virt-handler-vm");
    let private = &arguments.kubevirt_private_dir;
    let records = private.join(RECORDS);
    let domains = Arc::new(Domains::load(&records).with_context(|| format!("records in {records:?}"))?);
    let settings = Settings::new(arguments.kubelet_pods_dir.clone(), arguments.watchdog_timeout);
    let launchers = Arc::new(Launchers::new(settings, domains.clone(), queue.clone(), notices));
    let here = watch_instances(client, &format!("{NODE_NAME}={node}"), &queue, stop);
    let coming = watch_instances(client, &format!("{MIGRATION_TARGET_NODE_NAME}={node}"), &queue, stop);
    let facts = Facts::read(&arguments.node_labeller_dir.join(FILE));
    let host_model = facts.is_ok_and(|facts| facts.cpu.model.is_some());
    let folders = Folders::new(&arguments.kubelet_pods_dir, private);
    let tellers = Tellers::new(node, launchers.clone(), folders.clone(), Layout::default());
    Ok(Instances {
        node: node.to_owned(),
        client: client.clone(),
        here,
        coming,
        domains,
        launchers,
        queue,
        folders,
        recorder: Recorder::new(client.clone(), Role::Handler.name()),
        configuration: configuration.clone(),
        topology: topology(),
        qemu: qemu_answers(&arguments.node_labeller_dir),
        host_model: Arc::new(AtomicBool::new(host_model)),
        own,
        tellers,
        memory: Memories::default(),
    })
}

/// What QEMU was asked on this node. Without it, launchers ask for themselves.
fn qemu_answers(folder: &Path) -> Vec<u8> {
    let path = folder.join(QEMU_FILE);
    std::fs::read(&path).unwrap_or_else(|error| {
        tracing::warn!(path = %path.display(), %error, "each launcher has to ask its QEMU");
        Vec::new()
    })
}

fn watch_instances(
    client: &Client,
    selector: &str,
    queue: &Queue,
    stop: &CancellationToken,
) -> Store<VirtualMachineInstance> {
    let key = |change: &Change<'_, VirtualMachineInstance>| {
        change.latest().map(|vmi| NamespacedName::of(&**vmi)).into_iter().collect()
    };
    Watch::all(client.clone()).labels(selector).feeds(queue, key).start(stop)
}

/// What a node has to offer: devices, labels and signs of life.
fn look_after_node(
    tasks: &TaskTracker,
    arguments: &Arguments,
    node: &str,
    client: &Client,
    configuration: &Configuration,
    stop: &CancellationToken,
) {
    let (ready, is_ready) = watch::channel(false);
    let root = &arguments.kubelet_root;
    let lend = devices::Options {
        plugins: root.join("device-plugins"),
        max_devices: arguments.max_devices,
        node: Some((client.clone(), node.to_owned())),
        ..devices::Options::default()
    };
    tasks.spawn(devices::run(configuration.clone(), lend, ready, stop.clone()));
    let beat = heartbeat::Options { cpu_manager_state: vec![root.join("cpu_manager_state")] };
    let (client, node) = (client.clone(), node.to_owned());
    tasks.spawn(heartbeat::run(
        client.clone(),
        node.clone(),
        configuration.clone(),
        is_ready,
        beat,
        stop.clone(),
    ));
    if arguments.enable_node_labeller {
        let recorder = Recorder::new(client.clone(), Role::Handler.name());
        let facts = arguments.node_labeller_dir.join(FILE);
        let (follow, sysfs) = (configuration.clone(), PathBuf::from("/sys"));
        tasks.spawn(labels::ksm::run(client.clone(), node.clone(), follow.clone(), sysfs, stop.clone()));
        tasks.spawn(labels::run(client, node, follow, facts, recorder, stop.clone()));
    }
}

/// Tells users what launchers have for them.
async fn pass_on(
    instances: Arc<Instances>,
    mut heard: mpsc::UnboundedReceiver<Notice>,
    stop: CancellationToken,
) {
    while let Some(Some(notice)) = stop.run_until_cancelled(heard.recv()).await {
        instances.pass_on(notice);
    }
}
