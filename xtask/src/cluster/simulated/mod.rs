//! Nodes that only pretend to run pods, for tests of many: kwok says for them what kubelets would.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::binaries::recipes;
use super::layout::Layout;
use super::state::State;
use super::{Cluster, lock, processes};

/// The label of simulated nodes, and the key of their taint; its value is [`FAKE`].
pub const MARK: &str = "kwok.x-k8s.io/node";
/// The value of [`MARK`].
pub const FAKE: &str = "fake";

const STAGES: &str = include_str!("stages.yaml");
const READY_WITHIN: Duration = Duration::from_secs(60);
const COMPONENT: &str = "kwok";
/// The addresses that pods on them pretend to have.
const POD_RANGE: &str = "10.201.0.0/16";

impl Cluster {
    /// Sees to it that the simulated nodes `simulated-1` to `simulated-COUNT` are there and ready, and no
    /// others. They have a taint, so that only pods that tolerate it come to them.
    pub fn simulate_nodes(&self, count: u32) -> Result<()> {
        self.binaries.ensure(&[recipes::SIMULATED_NODES])?;
        let _lock = lock::folder(self.layout.root(), || {})?;
        ensure!(State::read(&self.layout).is_some(), "no cluster {}", self.layout.name());
        let kubectl = self.client();
        let names = kubectl.run(&["get", "nodes", "--selector", MARK, "--output=name"])?;
        let wanted: Vec<String> = (1..=count).map(name).collect();
        let extra: Vec<&str> = names
            .lines()
            .filter(|line| !wanted.iter().any(|name| line.ends_with(&format!("/{name}"))))
            .collect();
        if !extra.is_empty() {
            kubectl.run(&[&["delete", "--wait=false"], extra.as_slice()].concat())?;
        }
        if count == 0 {
            return processes::stop(self.layout.root(), |process| process.component == COMPONENT);
        }
        let mut started = Vec::new();
        if !processes::running(self.layout.root())?.iter().any(|process| process.is(COMPONENT)) {
            fs::write(stages(&self.layout), STAGES)?;
            let mut command = vec![self.binaries.program(&recipes::SIMULATED_NODES).into_os_string()];
            command.extend(arguments(&self.layout).into_iter().map(Into::into));
            started.push(processes::start(&self.layout, COMPONENT, &command)?);
        }
        let nodes: Vec<Value> = wanted.iter().map(|name| node(name)).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": nodes}).to_string();
        kubectl.run_with_input(&["apply", "--server-side", "--filename=-"], &list)?;
        processes::wait_until(&mut started, COMPONENT, READY_WITHIN, || {
            // In one question: `kubectl wait` asks for one node after the other, and a hundred take it too long.
            let answer = kubectl.run(&["get", "nodes", "--selector", MARK, "--output", READINESS])?;
            let ready = answer.split_whitespace().filter(|status| *status == "True").count();
            ensure!(ready == wanted.len(), "{ready} of {} nodes are ready", wanted.len());
            Ok(())
        })
    }
}

/// Of each node, whether it is ready.
const READINESS: &str = r#"jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}"#;

fn name(number: u32) -> String {
    format!("simulated-{number}")
}

fn stages(layout: &Layout) -> PathBuf {
    layout.root().join("kwok.yaml")
}

fn arguments(layout: &Layout) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", layout.kubeconfig().display()),
        format!("--config={}", stages(layout).display()),
        format!("--manage-nodes-with-annotation-selector={MARK}={FAKE}"),
        "--node-lease-duration-seconds=40".into(),
        format!("--cidr={POD_RANGE}"),
    ]
}

fn node(name: &str) -> Value {
    let amounts = json!({"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {MARK: FAKE},
            "labels": {
                MARK: FAKE,
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": {"taints": [{"key": MARK, "value": FAKE, "effect": "NoSchedule"}]},
        "status": {"capacity": amounts, "allocatable": amounts},
    })
}
