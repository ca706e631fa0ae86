//! Labels that tell the scheduler what guests this node can run.
//!
//! [`program`] asks the QEMU of the launcher's image, once, in an init container; [`facts`] is what it writes down.
//! [`decide`] makes labels of the facts and the configuration, and [`run`] keeps the node's labels like that. [`ksm`]
//! looks after the merging of same memory pages.

mod ask;
pub mod decide;
pub mod facts;
pub mod ksm;
mod obsolete;
pub mod program;

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use kubevirt_admission::ClusterConfig;
use kubevirt_api::names::events;
use kubevirt_component::events::Kind;
use kubevirt_component::{Configuration, Recorder};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use self::facts::{Facts, FactsError};

/// How often the labels are looked at even if nothing is known to have changed.
const PERIOD: Duration = Duration::from_secs(180);
/// How soon after a failure.
const RETRY: Duration = Duration::from_secs(10);

/// Why a node has no labels.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// Nobody wrote down what QEMU can do.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// The API server did not take them.
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// Keeps the labels of the node right until it is told to stop.
pub async fn run(
    client: Client,
    node: String,
    mut configuration: Configuration,
    facts: PathBuf,
    recorder: Recorder,
    stop: CancellationToken,
) {
    let nodes = Api::all(client);
    loop {
        let config = configuration.now();
        let result = once(&nodes, &node, &config, &facts, &recorder).await;
        let wait = match result {
            Ok(()) => crate::jitter(PERIOD),
            Err(error) => {
                error!(node, "cannot label the node: {error}");
                crate::jitter(RETRY)
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
            () = configuration.changed() => {}
        }
    }
}

/// Looks at the node once, and patches it if something is not as it should be.
pub async fn once(
    nodes: &Api<Node>,
    name: &str,
    config: &ClusterConfig,
    facts: &std::path::Path,
    recorder: &Recorder,
) -> Result<(), LabelError> {
    let facts = Facts::read(facts)?;
    let node = nodes.get(name).await?;
    let wanted = decide::labels(&facts, config, is_realtime());
    let Some(patch) = decide::patch(&node, &wanted) else { return Ok(()) };
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    info!(node = name, labels = wanted.len(), "labelled the node");
    if decide::has_obsolete_host(&facts, config) {
        let model = facts.cpu.model.as_deref().unwrap_or_default();
        let message =
            format!("the CPU of this node is a {model}, which the cluster's configuration calls obsolete");
        recorder.event(&node, Kind::Warning, events::node::HOST_MODEL_IS_OBSOLETE, message);
    }
    Ok(())
}

/// Whether the kernel lets real-time threads run without a pause.
fn is_realtime() -> bool {
    let text = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
    text.trim() == "-1"
}
