//! What shapes a pod and is not in its VMI.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kubevirt_admission::ClusterConfig;

use super::{TIMEOUT, USER};

/// What shapes a launcher pod and is not in its VMI.
#[derive(Clone, Debug)]
pub struct Surroundings<'a> {
    /// What the installation is set to.
    pub config: &'a ClusterConfig,
    /// Image of launchers.
    pub launcher_image: &'a str,
    /// Seconds that launchers wait at least for their machines to be asked for.
    pub timeout: u64,
    /// The group that volumes belong to.
    pub group: i64,
    /// Secrets by which the installation's own images are pulled.
    pub pull_secrets: Vec<String>,
    /// The claims that exist of those that [`claims`](super::claims) names, by their names.
    pub claims: BTreeMap<String, Claim>,
    /// Name of the claim that holds the state of the machine's firmware and TPM, if it is there.
    pub state_claim: Option<String>,
    /// Container disks can be image volumes: the gate `ImageVolume` is on and every schedulable node can mount them.
    pub image_volumes: bool,
    /// Images of container disks with their digests, by volume, where a machine that moves must keep them.
    pub images: BTreeMap<String, String>,
    /// Resources that networks need, by the networks' names in the VMI. A network whose definition was found and needs
    /// none has an empty text.
    pub network_resources: BTreeMap<String, String>,
    /// The VMI's namespace.
    pub namespace: NamespaceFacts,
    /// How many pods were made for this VMI before; part of the pod's name.
    pub attempt: u32,
    /// What the pod is for.
    pub purpose: Purpose,
}

impl<'a> Surroundings<'a> {
    /// A cluster of which nothing more is known.
    pub fn new(config: &'a ClusterConfig, launcher_image: &'a str) -> Self {
        Self {
            config,
            launcher_image,
            timeout: TIMEOUT,
            group: USER,
            pull_secrets: Vec::new(),
            claims: BTreeMap::new(),
            state_claim: None,
            image_volumes: false,
            images: BTreeMap::new(),
            network_resources: BTreeMap::new(),
            namespace: NamespaceFacts::default(),
            attempt: 0,
            purpose: Purpose::Run,
        }
    }
}

/// What a launcher pod is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// It runs the machine.
    #[default]
    Run,
    /// It ends at once: it is only scheduled so that claims that wait for their first consumer are bound where the
    /// machine will run.
    Provision,
}

/// What is known of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Its UID.
    pub uid: String,
    /// It is a block device.
    pub block: bool,
}

impl From<&PersistentVolumeClaim> for Claim {
    fn from(claim: &PersistentVolumeClaim) -> Self {
        let mode = claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref());
        Self { uid: claim.metadata.uid.clone().unwrap_or_default(), block: mode == Some("Block") }
    }
}

/// What of a namespace shapes its pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// A quota of it counts CPU limits, so every pod must have one.
    pub quota_of_cpu_limits: bool,
    /// A quota of it counts memory limits, so every pod must have one.
    pub quota_of_memory_limits: bool,
}
