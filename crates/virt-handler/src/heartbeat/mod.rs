//! The sign of life of this node's handler, and whether the node takes instances.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::Patch;
use kube::{Api, Client};
use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::names::{annotations, labels};
use kubevirt_component::{Configuration, patch};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How often a sign of life is given. The node controller gives a node up after five minutes.
const PERIOD: Duration = Duration::from_secs(60);
/// How soon after a failure.
const RETRY: Duration = Duration::from_secs(5);
/// How long the last one may take.
const FAREWELL: Duration = Duration::from_secs(10);

/// What the heartbeat looks at.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the kubelet writes down how it gives out CPUs; the first file that is there counts.
    pub cpu_manager_state: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { cpu_manager_state: vec!["/var/lib/kubelet/cpu_manager_state".into()] }
    }
}

/// Gives signs of life until it is told to stop; then the node takes no more instances, and this returns.
///
/// The node takes instances while `ready` is true: before that, they would be sent away by the kubelet.
pub async fn run(
    client: Client,
    node: String,
    configuration: Configuration,
    mut ready: watch::Receiver<bool>,
    options: Options,
    stop: CancellationToken,
) {
    let nodes = Api::all(client);
    while !stop.is_cancelled() {
        let schedulable = *ready.borrow_and_update();
        let config = configuration.now();
        let wait = match beat(&nodes, &node, schedulable, &config, &options).await {
            Ok(()) => crate::jitter(PERIOD),
            Err(error) => {
                warn!(node, "cannot give a sign of life: {error}");
                crate::jitter(RETRY)
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
            // Without anybody to say otherwise, what was said last holds.
            Ok(()) = ready.changed() => {}
        }
    }
    let config = configuration.now();
    let last = async {
        while let Err(error) = beat(&nodes, &node, false, &config, &options).await {
            warn!(node, "cannot take the node out of service: {error}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        info!(node, "takes no more instances");
    };
    if tokio::time::timeout(FAREWELL, last).await.is_err() {
        warn!(node, "leaves without having taken the node out of service");
    }
}

/// Gives one sign of life.
async fn beat(
    nodes: &Api<Node>,
    name: &str,
    schedulable: bool,
    config: &ClusterConfig,
    options: &Options,
) -> Result<(), kube::Error> {
    let cpu_manager = config.enabled(Gate::CpuManager) && gives_out_cpus(options);
    let sign = sign(schedulable, cpu_manager, Timestamp::now());
    patch::overwrite(nodes, name, &Patch::Merge(sign)).await
}

/// The merge patch of a sign of life.
fn sign(schedulable: bool, cpu_manager: bool, now: Timestamp) -> Value {
    let cpu_manager = cpu_manager.to_string();
    json!({
        "metadata": {
            "labels": {
                labels::NODE_SCHEDULABLE: schedulable.to_string(),
                labels::CPU_MANAGER: cpu_manager,
                labels::DEPRECATED_CPU_MANAGER: cpu_manager,
            },
            "annotations": { annotations::NODE_HEARTBEAT: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string() },
        },
    })
}

/// Whether the kubelet gives out CPUs to pods for themselves.
fn gives_out_cpus(options: &Options) -> bool {
    let file = options.cpu_manager_state.iter().find_map(|path| std::fs::read(path).ok());
    file.is_some_and(|text| is_static(&text))
}

fn is_static(state: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct State {
        policy_name: String,
    }
    serde_json::from_slice::<State>(state).is_ok_and(|state| state.policy_name == "static")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::testing::Tree;

    #[test]
    fn says_when_and_whether() {
        let now = "2026-11-16T04:05:06.789Z".parse().unwrap();
        let patch = sign(true, false, now);
        assert_eq!(
            patch["metadata"],
            json!({
                "labels": { "kubevirt.io/schedulable": "true", "kubevirt.io/cpumanager": "false", "cpumanager": "false" },
                "annotations": { "kubevirt.io/heartbeat": "2026-11-16T04:05:06Z" },
            })
        );
    }

    #[test]
    fn reads_how_the_kubelet_gives_out_cpus() {
        for (state, expected) in [
            (r#"{"policyName":"static","defaultCpuSet":"0-1","checksum":1}"#, true),
            (r#"{"policyName":"none","defaultCpuSet":""}"#, false),
            ("{}", false),
            ("", false),
        ] {
            assert_eq!(is_static(state.as_bytes()), expected, "{state}");
        }
        let tree = Tree::new();
        tree.file("second", r#"{"policyName":"static"}"#);
        let paths = |names: &[&str]| Options {
            cpu_manager_state: names.iter().map(|name| tree.path().join(name)).collect(),
        };
        assert!(gives_out_cpus(&paths(&["first", "second"])));
        assert!(!gives_out_cpus(&paths(&["first"])));
    }
}
