//! What is known of the installation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::Condition;
use crate::open_enum::open_enum;

/// Observed state of the KubeVirt installation.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeVirtStatus {
    /// Stage of the installation: `Deploying`, `Deployed`, `Deleting` or `Deleted`.
    pub phase: Option<KubeVirtPhase>,
    /// Health conditions such as `Available`, `Progressing` and `Degraded`.
    pub conditions: Option<Vec<Condition>>,
    /// Version of the operator managing the installation.
    pub operator_version: Option<String>,
    /// Image registry the operator is rolling out from.
    pub target_kube_virt_registry: Option<String>,
    /// Version the operator is rolling out.
    pub target_kube_virt_version: Option<String>,
    /// Install settings being rolled out, as JSON text.
    pub target_deployment_config: Option<String>,
    /// Hash identifying the install settings being rolled out.
    #[serde(rename = "targetDeploymentID")]
    pub target_deployment_id: Option<String>,
    /// Image registry of the last completed rollout.
    pub observed_kube_virt_registry: Option<String>,
    /// Version of the last completed rollout; equals the target once an update is done.
    pub observed_kube_virt_version: Option<String>,
    /// Install settings of the last completed rollout, as JSON text.
    pub observed_deployment_config: Option<String>,
    /// Hash identifying the install settings of the last completed rollout.
    #[serde(rename = "observedDeploymentID")]
    pub observed_deployment_id: Option<String>,
    /// Number of running instances still on an older virt-launcher image.
    #[schemars(extend("format" = null))]
    pub outdated_virtual_machine_instance_workloads: Option<i64>,
    /// Generation of this object's spec the operator last acted on.
    pub observed_generation: Option<i64>,
    /// CPU architecture given to machines that name none, e.g. `amd64`.
    pub default_architecture: Option<String>,
    /// Last applied generation of each object the operator manages, to spot outside changes.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub generations: Option<Vec<GenerationStatus>>,
    /// Addresses other clusters connect to for cross-cluster live migration.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub synchronization_addresses: Option<Vec<String>>,
}

/// Last applied revision of one object managed by the operator.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenerationStatus {
    /// API group of the object.
    pub group: String,
    /// Plural resource name of the object, e.g. `deployments`.
    pub resource: String,
    /// Namespace of the object; empty for cluster-wide ones.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Value of `metadata.generation` after the operator last wrote the object.
    pub last_generation: i64,
    /// Content hash for objects that carry no generation, such as Secrets and ConfigMaps.
    pub hash: Option<String>,
}

open_enum! {
    /// Stage of the installation: `Deploying`, `Deployed`, `Deleting` or `Deleted`.
    pub enum KubeVirtPhase {
        Deploying = "Deploying",
        Deployed = "Deployed",
        Deleting = "Deleting",
        Deleted = "Deleted",
    }
}
