//! A node: a process tree in namespaces of its own, with containerd, the kubelet and kube-proxy.

pub mod config;
pub mod init;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::binaries::{Binaries, recipes};
use super::kubectl::Kubectl;
use super::layout::{Layout, Node};
use super::processes::{self, Started};
use super::{cgroups, network, registry};

const STARTS_WITHIN: Duration = Duration::from_secs(60);
const READY_WITHIN: Duration = Duration::from_secs(120);
/// What a node says it has of local storage, which the kubelet does not measure here.
const EPHEMERAL_STORAGE: &str = "20Gi";

/// The node's first process, which holds its namespaces.
pub const INIT: &str = "init";
/// The components of a node, in the order in which they start.
pub const COMPONENTS: &[&str] = &[INIT, "containerd", "kube-proxy", "kubelet"];

/// Writes the node's files, makes its cgroups and starts it as far as it needs no API server: its
/// namespaces, its network and containerd, with the image of pods' first containers.
pub fn boot(
    layout: &Layout,
    binaries: &Binaries,
    hub: u32,
    node: &Node,
    others: &[Node],
) -> Result<Vec<Started>> {
    for folder in init::folders(node).iter().chain([&layout.shared()]) {
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    fs::write(node.root.join("containerd.toml"), config::containerd(binaries, node))?;
    let registries = config::registries(node).join("_default");
    fs::create_dir_all(&registries)?;
    fs::write(registries.join("hosts.toml"), registry::hosts())?;
    fs::write(node.root.join("kubelet.json"), serde_json::to_vec_pretty(&config::kubelet(layout, node))?)?;
    let network = serde_json::to_vec_pretty(&config::pod_network(node))?;
    fs::write(init::own(node, "etc/cni/net.d").join("10-pods.conflist"), network)?;
    cgroups::create(node)?;

    let mut started = vec![start_init(layout, node)?];
    let init = node.component(INIT);
    let mut inside = 0;
    processes::wait_until(&mut started, &init, STARTS_WITHIN, || {
        inside = first_process(layout, node)?;
        let ready = format!("/proc/{inside}/root{}", init::READY);
        ensure!(Path::new(&ready).exists(), "folders are not in place");
        Ok(())
    })?;
    network::connect(hub, inside, node, others).with_context(|| format!("network of {}", node.name))?;

    started.push(start(layout, binaries, node, "containerd")?);
    let containerd = node.component("containerd");
    processes::wait_until(&mut started, &containerd, STARTS_WITHIN, || {
        ctr(layout, binaries, node, &["version"], Stdio::null())
    })?;
    load_image(layout, binaries, node, &binaries.pause_image())?;
    Ok(started)
}

/// Starts kube-proxy and the kubelet, which need the API server.
pub fn join(layout: &Layout, binaries: &Binaries, node: &Node) -> Result<Vec<Started>> {
    for (setting, value) in config::KERNEL_SETTINGS {
        let file = node.root.join("settings").join(setting);
        fs::create_dir_all(file.parent().unwrap_or(&node.root))?;
        fs::write(file, value)?;
    }
    ["kube-proxy", "kubelet"].into_iter().map(|program| start(layout, binaries, node, program)).collect()
}

/// The beginning of a command that sees [`config::KERNEL_SETTINGS`] of its own, and all else as the node does.
fn apart_from_settings(node: &Node) -> Vec<OsString> {
    let mut script = "mount --make-private /proc".to_owned();
    for (setting, _) in config::KERNEL_SETTINGS {
        let file = node.root.join("settings").join(setting);
        script += &format!(" && mount --bind {} /proc/sys/{setting}", file.display());
    }
    script += r#" && exec "$@""#;
    ["unshare", "--mount", "--propagation=unchanged", "sh", "-c", &script, "sh"].map(OsString::from).to_vec()
}

/// Waits until the kubelet of the node says that it is ready, and lets pods ask for local storage on it.
/// `since` is the kubelet's last word before it was restarted, see [`last_word`].
pub fn wait_until_ready(started: &mut [Started], kubectl: &Kubectl, node: &Node, since: &str) -> Result<()> {
    processes::wait_until(started, &node.component("kubelet"), READY_WITHIN, || {
        let word = last_word(kubectl, node)?;
        ensure!(word != since && word.starts_with("True"), "node {} is not ready: {word}", node.name);
        Ok(())
    })?;
    let amount = format!(r#"{{"ephemeral-storage": "{EPHEMERAL_STORAGE}"}}"#);
    let patch = format!(r#"{{"status": {{"capacity": {amount}, "allocatable": {amount}}}}}"#);
    kubectl.run(&["patch", "node", &node.name, "--subresource=status", "--patch", &patch]).map(drop)
}

/// Whether the node is ready, when its kubelet said so, and why.
pub fn last_word(kubectl: &Kubectl, node: &Node) -> Result<String> {
    let path = r#"jsonpath={.status.conditions[?(@.type=="Ready")]['status','lastHeartbeatTime','message']}"#;
    kubectl.run(&["get", "node", &node.name, "--output", path])
}

/// Imports the images of an archive.
pub fn load_image(layout: &Layout, binaries: &Binaries, node: &Node, archive: &Path) -> Result<()> {
    // By its contents: the node may not see the path.
    let file = File::open(archive).with_context(|| format!("open {}", archive.display()))?;
    ctr(layout, binaries, node, &["--namespace=k8s.io", "images", "import", "-"], file.into())
        .with_context(|| format!("load {} on {}", archive.display(), node.name))
}

fn start_init(layout: &Layout, node: &Node) -> Result<Started> {
    let script = init::script(node, &layout.shared());
    let command = [
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--uts",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
    ];
    let command: Vec<OsString> = command.into_iter().chain([script.as_str()]).map(OsString::from).collect();
    processes::start(layout, &node.component(INIT), &command)
}

/// Starts one component on a node whose namespaces are there.
pub fn start(layout: &Layout, binaries: &Binaries, node: &Node, program: &str) -> Result<Started> {
    let mut command = enter(layout, node)?;
    let (recipe, arguments) = match program {
        "containerd" => {
            let configuration = format!("--config={}", node.root.join("containerd.toml").display());
            (&recipes::CONTAINER_DAEMON, vec![configuration])
        }
        "kube-proxy" => (&recipes::PROXY, config::proxy_arguments(layout, node)),
        "kubelet" => {
            command.extend(apart_from_settings(node));
            (&recipes::KUBELET, config::kubelet_arguments(layout, node))
        }
        _ => bail!("{program} cannot be started by itself"),
    };
    command.push(binaries.program(recipe).into());
    command.extend(arguments.into_iter().map(OsString::from));
    processes::start(layout, &node.component(program), &command)
}

fn ctr(layout: &Layout, binaries: &Binaries, node: &Node, arguments: &[&str], input: Stdio) -> Result<()> {
    let command = enter(layout, node)?;
    let program = binaries.folder(&recipes::CONTAINER_DAEMON).join("ctr");
    let output = Command::new(&command[0])
        .args(&command[1..])
        .arg(program)
        .args(arguments)
        .stdin(input)
        .output()
        .context("run ctr")?;
    ensure!(output.status.success(), "ctr: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// The beginning of a command that runs in the node.
pub fn enter(layout: &Layout, node: &Node) -> Result<Vec<OsString>> {
    let target = format!("--target={}", first_process(layout, node)?);
    Ok(["nsenter", &target, "--net", "--mount", "--pid", "--uts", "--"].map(OsString::from).to_vec())
}

fn first_process(layout: &Layout, node: &Node) -> Result<u32> {
    let component = node.component(INIT);
    let running = processes::running(layout.root())?;
    let first =
        running.iter().find(|process| process.component == component && process.is_first_in_namespace);
    let first = first.with_context(|| format!("{} does not run", node.name))?;
    Ok(u32::try_from(first.id)?)
}
