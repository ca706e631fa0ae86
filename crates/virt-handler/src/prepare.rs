//! What a launcher's pod needs from outside, in three moments: before its machine starts, while it runs, after its end.

use std::path::{Path, PathBuf};

use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_network::Wiring;

/// Folders of the node, as the handler sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// Where the kubelet keeps pods; mounts that are made in it must reach the pods.
    pub pods: PathBuf,
    /// What only handlers may write, and what outlives them.
    pub private: PathBuf,
}

impl Folders {
    /// Those of a handler in a pod that sees the node's processes.
    pub fn new(pods: impl Into<PathBuf>, private: impl Into<PathBuf>) -> Self {
        Self { pods: pods.into(), private: private.into() }
    }
}

/// A launcher's pod.
#[derive(Clone, Debug)]
pub struct Place {}

impl Place {
    /// Finds the pod whose launcher listens on a socket.
    pub fn find(_pod_uid: &str, _socket: &Path, _folders: &Folders) -> Result<Self, PrepareError> {
        Ok(Self {})
    }
}

/// How far a plugged volume has got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HotplugState {
    /// Name of the volume.
    pub name: String,
    /// Whether the pod has it.
    pub mounted: bool,
}

/// A pod that is ready for its machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    /// How each network is wired up, for the launcher.
    pub network: Vec<Wiring>,
    /// How far hotplugged volumes have got.
    pub hotplug: Vec<HotplugState>,
    /// The launcher's SELinux context, or `none` where the host has no SELinux.
    pub selinux_context: String,
    /// What the user should hear of, as events with the reason `ToleratedSmallPV`.
    pub notes: Vec<String>,
}

/// A running machine's pod, brought in line with its VMI.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Running {
    /// How each network is wired up, for the launcher.
    pub network: Vec<Wiring>,
    /// How far hotplugged volumes have got.
    pub hotplug: Vec<HotplugState>,
    /// What could not be plugged or unplugged, and why; the rest of the machine does not suffer from it.
    pub problems: Vec<String>,
}

/// Why something is not ready.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// It takes a little longer.
    #[error("{0}")]
    NotYet(String),
    /// It does not work like this.
    #[error("{0}")]
    Failed(String),
}

/// Makes a pod ready for its machine to start in.
pub async fn before_start(
    _vmi: &VirtualMachineInstance,
    _place: &Place,
    _config: &ClusterConfig,
) -> Result<Prepared, PrepareError> {
    Ok(Prepared { selinux_context: "none".into(), ..Prepared::default() })
}

/// Brings the pod of a running machine in line with its VMI: volumes and interfaces that come and go.
pub async fn while_running(
    _vmi: &VirtualMachineInstance,
    _place: &Place,
    _config: &ClusterConfig,
) -> Result<Running, PrepareError> {
    Ok(Running::default())
}

/// Takes back all that was done for a pod, which may be gone already. Then nothing is known of it any more.
pub async fn after_end(_pod_uid: &str, _folders: &Folders) -> Result<(), PrepareError> {
    Ok(())
}
