//! The system on a test cluster: its images on every node, its objects applied, its components ready.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kubevirt_host::kvm::{self, Kvm};
use serde_json::json;

use crate::cluster::{Cluster, lock};
use crate::images::{Archive, Images};
use crate::sha256;

/// The namespace of the components.
pub const NAMESPACE: &str = "kubevirt";
/// For images that have to be unpacked on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
const COMPONENTS: [&str; 3] = ["deployment/virt-api", "deployment/virt-controller", "daemonset/virt-handler"];

/// Installs the system, or brings it up to date; does nothing if these images are installed already.
pub fn install(cluster: &Cluster, images: &Images, replicas: u8) -> Result<()> {
    let root = cluster.layout().root();
    let _lock =
        lock::file(&root.join("install.lock"), || eprintln!("another command installs, waiting for it"))?;
    let (done, wanted) = (root.join("installed"), format!("{} {replicas}", images.components.reference));
    if fs::read_to_string(&done).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    load(cluster, images)?;
    apply(cluster, images, replicas)?;
    wait(cluster)?;
    fs::write(&done, wanted).context("note the installation")
}

/// Loads the images on all nodes, each once in the life of the cluster.
pub fn load(cluster: &Cluster, images: &Images) -> Result<()> {
    images.all().into_iter().try_for_each(|archive| load_once(cluster, archive))
}

fn load_once(cluster: &Cluster, archive: &Archive) -> Result<()> {
    let folder = cluster.layout().root().join("loaded");
    fs::create_dir_all(&folder)?;
    let mark = folder.join(sha256::of_file(&archive.file)?);
    if !mark.exists() {
        cluster.load_image(&archive.file)?;
        fs::write(mark, &archive.reference)?;
    }
    Ok(())
}

/// Applies all objects: the definitions first, and the rest once the cluster serves them.
pub fn apply(cluster: &Cluster, images: &Images, replicas: u8) -> Result<()> {
    let apply = |manifests: &str| {
        // What the cluster's nodes cannot pull anyway is never asked for.
        let arguments = ["apply", "--server-side", "--force-conflicts", "--filename", "-"];
        cluster.kubectl_with_input(&arguments, manifests)
    };
    apply(&manifests(&images.program, &["--definitions"])?)?;
    let patience = format!("--timeout={}s", PATIENCE.as_secs());
    cluster.kubectl(&["wait", "--for=condition=Established", &patience, "crd", "--selector=kubevirt.io"])?;
    let certificates = cluster.layout().root().join("certificates");
    let certificates = certificates.to_str().context("a path that is no text")?;
    let replicas = replicas.to_string();
    let mut arguments = vec![
        "--no-definitions",
        "--namespace",
        NAMESPACE,
        "--image",
        &images.components.reference,
        "--launcher-image",
        &images.launcher.reference,
        "--replicas",
        &replicas,
        "--certificates",
        certificates,
    ];
    arguments.extend(emulation(&kvm::probe()));
    apply(&manifests(&images.program, &arguments)?).map(drop)
}

/// Nodes are this machine: where it cannot run guests with KVM, they are emulated.
fn emulation(kvm: &Kvm) -> Option<&'static str> {
    (*kvm != Kvm::Usable).then_some("--use-emulation")
}

/// Waits until every component is ready; says what became of them if one is not.
pub fn wait(cluster: &Cluster) -> Result<()> {
    for component in COMPONENTS {
        let patience = format!("--timeout={}s", PATIENCE.as_secs());
        let status = ["rollout", "status", "--namespace", NAMESPACE, &patience, component];
        cluster.kubectl(&status).with_context(|| format!("{component} is not ready\n{}", state(cluster)))?;
    }
    // The API server takes a moment to see that they answer.
    let patience = format!("--timeout={}s", PATIENCE.as_secs());
    let services = ["wait", "--for=condition=Available", &patience, "apiservice", "--selector=kubevirt.io"];
    cluster.kubectl(&services).with_context(|| format!("subresources are not served\n{}", state(cluster)))?;
    wait_for_nodes(cluster)
}

/// Waits until every node takes guests: its labels say so, and its kubelet has heard of it. Until then it refuses pods
/// that the scheduler chose it for, and an instance has only one.
fn wait_for_nodes(cluster: &Cluster) -> Result<()> {
    let begin = Instant::now();
    let patience = format!("--timeout={}s", PATIENCE.as_secs());
    let label = "--for=jsonpath={.metadata.labels.kubevirt\\.io/schedulable}=true";
    cluster.kubectl(&["wait", label, &patience, "node", "--all"])?;
    let nodes = cluster.kubectl(&["get", "nodes", "--output=jsonpath={.items[*].metadata.name}"])?;
    for node in nodes.split_whitespace() {
        while !takes_guests(cluster, node)? {
            ensure!(begin.elapsed() < PATIENCE, "the kubelet of {node} refuses guests");
        }
    }
    Ok(())
}

/// Whether the kubelet of a node lets a pod in that asks for a node that takes guests. What runs in it does not matter.
fn takes_guests(cluster: &Cluster, node: &str) -> Result<bool> {
    let name = format!("takes-guests-{node}");
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "nodeName": node,
            "nodeSelector": {"kubevirt.io/schedulable": "true"},
            "containers": [{"name": "none", "image": "localhost/none", "imagePullPolicy": "Never"}],
        },
    });
    cluster.kubectl_with_input(&["create", "--filename", "-"], &pod.to_string())?;
    let (patience, pod) = (format!("--timeout={}s", PATIENCE.as_secs()), format!("pod/{name}"));
    let within = ["--namespace", NAMESPACE, &pod];
    let seen = [&["wait", "--for=jsonpath={.status.startTime}", &patience][..], &within].concat();
    cluster.kubectl(&seen)?;
    let phase = cluster.kubectl(&[&["get", "--output=jsonpath={.status.phase}"][..], &within].concat())?;
    cluster.kubectl(&[&["delete", "--now"][..], &within].concat())?;
    Ok(phase.trim() != "Failed")
}

/// How the components are, in words.
fn state(cluster: &Cluster) -> String {
    let say = |arguments: &[&str]| {
        let arguments = [arguments, &["--namespace", NAMESPACE]].concat();
        cluster.kubectl(&arguments).unwrap_or_else(|error| error.to_string())
    };
    let pods = say(&["get", "pods", "--output=wide"]);
    let events = say(&["events", "--types=Warning"]);
    let logs = ["virt-api", "virt-controller", "virt-handler"].map(|component| {
        let selector = format!("--selector=kubevirt.io={component}");
        say(&["logs", &selector, "--all-containers", "--prefix", "--tail=8"])
    });
    [pods, events].into_iter().chain(logs).collect::<Vec<_>>().join("\n")
}

/// What the program prints.
fn manifests(program: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).arg("install-manifests").args(arguments).output();
    let output = output.with_context(|| format!("run {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubevirt install-manifests: {}", said.trim());
    String::from_utf8(output.stdout).context("read manifests")
}
