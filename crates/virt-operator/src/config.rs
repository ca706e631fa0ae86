//! What an installation may be told.

use kubevirt_api::kubevirt::configuration::KubeVirtConfiguration;
use kubevirt_api::kubevirt::install::NodePlacement;

use crate::certificates::Certificates;

/// All that the objects of an installation depend on.
#[derive(Clone, Debug)]
pub struct InstallConfig {
    /// The namespace of the components.
    pub namespace: String,
    /// What runs.
    pub images: Images,
    /// How many of virt-api and virt-controller there are.
    pub replicas: u8,
    /// How much the components log.
    pub verbosity: u8,
    /// Where virt-api and virt-controller run; without an affinity to nodes, rather on the control plane.
    pub infra: NodePlacement,
    /// Where virt-handler runs, and with it machines.
    pub workloads: NodePlacement,
    /// The `configuration` of the `KubeVirt` object.
    pub configuration: KubeVirtConfiguration,
    /// Whether the cluster's API server is told of the subresources that virt-api serves.
    pub api_services: bool,
    /// How the components know each other.
    pub certificates: Certificates,
}

/// The images, and how nodes get them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Of virt-api, virt-controller and virt-handler.
    pub components: String,
    /// Of the pods that run machines.
    pub launcher: String,
    /// `Always`, `IfNotPresent` or `Never`.
    pub pull_policy: String,
    /// Secrets with passwords of the registry.
    pub pull_secrets: Vec<String>,
}

impl InstallConfig {
    /// The usual installation with these images and certificates.
    pub fn new(namespace: &str, images: Images, certificates: Certificates) -> Self {
        Self {
            namespace: namespace.to_owned(),
            images,
            replicas: 2,
            verbosity: 2,
            infra: NodePlacement::default(),
            workloads: NodePlacement::default(),
            configuration: KubeVirtConfiguration::default(),
            api_services: true,
            certificates,
        }
    }
}
