//! A launcher's pod as it is seen from the node.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kubevirt_host::cgroup::Cgroups;
use kubevirt_host::inside::Inside;
use kubevirt_host::process::Process;
use kubevirt_network::NetNs;
use tokio::time::timeout;

use crate::prepare::{PrepareError, failed};

/// We are in no launcher's pod.
const OURSELVES: &str = "/proc/thread-self";
/// Nor is the node's first process, whose mounts are not ours if we are in a pod.
const FIRST: &str = "/proc/1";

/// How long it may take to find a pod. Whoever is asked answers at once, unless something is broken.
const PATIENCE: Duration = Duration::from_secs(10);

/// Folders of the node, as the handler sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// Where the kubelet keeps pods; mounts that are made in it must reach the pods.
    pub pods: PathBuf,
    /// What only handlers may write, and what outlives them.
    pub private: PathBuf,
    /// The node's root folder.
    pub host_root: PathBuf,
}

impl Folders {
    /// Those of a handler in a pod that sees the node's processes.
    pub fn new(pods: impl Into<PathBuf>, private: impl Into<PathBuf>) -> Self {
        Self { pods: pods.into(), private: private.into(), host_root: "/proc/1/root".into() }
    }

    /// A pod's UID becomes part of paths.
    pub(crate) fn check(&self, pod_uid: &str) -> Result<(), PrepareError> {
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !pod_uid.is_empty() && pod_uid.bytes().all(letters) {
            return Ok(());
        }
        Err(failed(format_args!("{pod_uid:?} is no UID of a pod")))
    }

    /// A pod's empty folder, by the name of the volume.
    pub(crate) fn empty_dir(&self, pod_uid: &str, volume: &str) -> PathBuf {
        self.pods.join(pod_uid).join("volumes/kubernetes.io~empty-dir").join(volume)
    }
}

/// A launcher's pod.
#[derive(Clone, Debug)]
pub struct Place(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pod_uid: String,
    folders: Folders,
    launcher: Process,
    root: Inside,
    network: NetNs,
    groups: Cgroups,
}

impl Place {
    /// Finds the pod whose launcher listens on a socket.
    pub fn find(pod_uid: &str, socket: &Path, folders: &Folders) -> Result<Self, PrepareError> {
        folders.check(pod_uid)?;
        let not_yet =
            |error| PrepareError::NotYet(format!("the launcher of pod {pod_uid} does not listen: {error}"));
        let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(failed(format_args!("{} is no path of a socket", socket.display())));
        };
        let socket = Inside::folder(folder).and_then(|folder| folder.beneath(name)).map_err(not_yet)?;
        let launcher = isolated(&socket).map_err(not_yet)?;
        Self::of(pod_uid, launcher, folders).map_err(not_yet)
    }

    /// As [`Self::find`], away from the threads that serve everyone: one pod keeps nobody waiting for another.
    pub(crate) async fn seek(
        pod_uid: &str,
        socket: PathBuf,
        folders: &Folders,
    ) -> Result<Self, PrepareError> {
        let (uid, folders) = (pod_uid.to_owned(), folders.clone());
        let find = tokio::task::spawn_blocking(move || Self::find(&uid, &socket, &folders));
        match timeout(PATIENCE, find).await {
            Ok(found) => found.map_err(failed)?,
            Err(_) => Err(PrepareError::NotYet(format!(
                "the launcher of pod {pod_uid} was not found within {PATIENCE:?}"
            ))),
        }
    }

    fn of(pod_uid: &str, launcher: Process, folders: &Folders) -> std::io::Result<Self> {
        let root = launcher.root()?;
        let network = NetNs::from(launcher.network()?);
        let groups = groups(&launcher, &folders.host_root)?;
        let (pod_uid, folders) = (pod_uid.to_owned(), folders.clone());
        Ok(Self(Arc::new(Inner { pod_uid, folders, launcher, root, network, groups })))
    }

    /// UID of the pod.
    pub fn pod_uid(&self) -> &str {
        &self.0.pod_uid
    }

    /// Number of the launcher's process.
    pub fn launcher_id(&self) -> u32 {
        self.0.launcher.id()
    }

    /// Whether the launcher has not ended.
    pub fn is_alive(&self) -> bool {
        self.0.launcher.is_alive().unwrap_or(false)
    }

    /// Number of QEMU's process, once there is one.
    pub fn qemu_id(&self) -> Option<u32> {
        self.qemu().map(|qemu| qemu.id())
    }

    pub(crate) fn qemu(&self) -> Option<Process> {
        let is_qemu = |name: String| name.starts_with("qemu-") || name.starts_with("kvm");
        let children = self.0.launcher.children().ok()?;
        children.into_iter().find(|child| child.name().is_ok_and(is_qemu))
    }

    pub(crate) fn launcher(&self) -> &Process {
        &self.0.launcher
    }

    /// The root folder that the launcher sees.
    pub(crate) fn root(&self) -> &Inside {
        &self.0.root
    }

    pub(crate) fn network(&self) -> &NetNs {
        &self.0.network
    }

    pub(crate) fn groups(&self) -> &Cgroups {
        &self.0.groups
    }

    pub(crate) fn folders(&self) -> &Folders {
        &self.0.folders
    }

    /// A pod's empty folder, by the name of the volume. What is in it is the pod's.
    pub(crate) fn empty_dir(&self, volume: &str) -> std::io::Result<Inside> {
        Inside::folder(&self.0.folders.empty_dir(&self.0.pod_uid, volume))
    }
}

/// The process that listens on a socket of a pod. One that shares the mounts of someone outside is none of a pod:
/// whatever it wants to have mounted would be the node's.
pub(crate) fn isolated(socket: &Inside) -> std::io::Result<Process> {
    let process = Process::listening_on(socket)?;
    let shares_with_first = match process.shares_mounts_with(Path::new(FIRST)) {
        // Where the first process is hidden from us, we are not the handler of a node.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => false,
        known => known?,
    };
    if shares_with_first || process.shares_mounts_with(Path::new(OURSELVES))? {
        let problem = format!("process {} behind {} is not in a pod", process.id(), socket.shown().display());
        return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, problem));
    }
    Ok(process)
}

/// The launcher's control groups, as paths that we can use.
fn groups(launcher: &Process, host_root: &Path) -> std::io::Result<Cgroups> {
    let (Some(of_first), true) = (host_root.parent(), host_root != Path::new("/")) else {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        return Ok(Cgroups::parse(&launcher.text("cgroup")?, &mounts));
    };
    // Ours may be hidden from us; the node's first process sees all.
    let mounts = std::fs::read_to_string(of_first.join("mountinfo"))?;
    let seen = launcher.groups_seen_from(&of_first.join("ns/cgroup"))?;
    Ok(Cgroups::parse(&seen, &mounts).below(host_root))
}
