//! The installation itself: `KubeVirt`.

pub mod configuration;
pub mod devices;
pub mod install;
pub mod migrations;
pub mod network;
pub mod status;

use k8s_openapi::api::core::v1::LocalObjectReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::kind::kind;
use crate::kubevirt::configuration::KubeVirtConfiguration;
use crate::kubevirt::install::{
    CertificateRotateStrategy, ComponentConfig, CustomizeComponents, UninstallStrategy,
    WorkloadUpdateStrategy,
};
use crate::kubevirt::status::KubeVirtStatus;

kind! {
    /// The KubeVirt installation of a cluster, deployed and configured by the operator.
    KubeVirt: KUBEVIRT, "v1", "kubevirts", NamespaceResourceScope;
    spec: KubeVirtSpec,
    status: KubeVirtStatus
}

/// Desired version, placement and configuration of KubeVirt.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeVirtSpec {
    /// Tag of the component images; the operator's own tag if unset, and changing it starts an upgrade.
    pub image_tag: Option<String>,
    /// Registry and prefix of the component images; those of the operator's image if unset.
    pub image_registry: Option<String>,
    /// Always, Never or IfNotPresent for the KubeVirt components; guest pods have their own setting.
    #[schemars(extend("x-strict" = { "enum": ["Always", "IfNotPresent", "Never"] }))]
    pub image_pull_policy: Option<String>,
    /// Registry credentials Secrets for pulling the component images; none if unset.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,
    /// Namespace of Prometheus; openshift-monitoring, then monitoring, are tried if unset.
    pub monitor_namespace: Option<String>,
    /// Namespace to create the ServiceMonitor in; the monitoring namespace if unset.
    pub service_monitor_namespace: Option<String>,
    /// Service account of Prometheus that may scrape the components; prometheus-k8s if unset.
    pub monitor_account: Option<String>,
    /// How running guests move to the new launcher after an upgrade; they are left alone if unset.
    pub workload_update_strategy: Option<WorkloadUpdateStrategy>,
    /// RemoveWorkloads deletes guests on uninstall, BlockUninstallIfWorkloadsExist refuses while any exist.
    pub uninstall_strategy: Option<UninstallStrategy>,
    /// Lifetime and renewal of the certificates KubeVirt issues to itself.
    pub certificate_rotate_strategy: Option<CertificateRotateStrategy>,
    /// Value of the app.kubernetes.io/version label on components; KubeVirt's version if unset.
    pub product_version: Option<String>,
    /// Value of the app.kubernetes.io/part-of label on components; no label if unset.
    pub product_name: Option<String>,
    /// Value of the app.kubernetes.io/component label on components; kubevirt if unset.
    pub product_component: Option<String>,
    /// Port, as a string, for syncing VMI state in cross-cluster migrations; 9185 if unset.
    pub synchronization_port: Option<String>,
    /// Cluster-wide settings: feature gates, defaults, migration limits, permitted devices and more.
    pub configuration: Option<KubeVirtConfiguration>,
    /// Placement and replica count of the control plane, such as virt-api and virt-controller.
    pub infra: Option<ComponentConfig>,
    /// Placement of the node-level components, and so of the nodes that can run guests.
    pub workloads: Option<ComponentConfig>,
    /// Patches and command-line flags applied to the deployed components; unsupported territory.
    pub customize_components: Option<CustomizeComponents>,
}
