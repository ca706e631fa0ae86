//! How the components are placed, updated and customised.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, Toleration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::duration::Duration;
use crate::open_enum::open_enum;

/// How running VMs move to new launcher pods after a KubeVirt upgrade.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadUpdateStrategy {
    /// Methods to use, gentlest first: `LiveMigrate`, `Evict`; empty leaves running VMs as they are.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub workload_update_methods: Option<Vec<WorkloadUpdateMethod>>,
    /// VMs evicted per batch; 10 if unset.
    #[schemars(extend("format" = null))]
    pub batch_eviction_size: Option<i64>,
    /// Pause between eviction batches, such as 2m; one minute if unset.
    pub batch_eviction_interval: Option<Duration>,
}

/// How KubeVirt's internal certificates are renewed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRotateStrategy {
    /// Lifetimes of the self-signed certificates KubeVirt issues itself.
    pub self_signed: Option<SelfSignConfiguration>,
}

/// Lifetimes of the self-signed CA and server certificates.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelfSignConfiguration {
    /// Deprecated: CA lifetime; use `ca.duration`, which this overrides when set.
    pub ca_rotate_interval: Option<Duration>,
    /// Deprecated: server certificate lifetime; use `server.duration`, which this overrides when set.
    pub cert_rotate_interval: Option<Duration>,
    /// Deprecated: how long old and new CA overlap; use `ca.renewBefore`, which this overrides when set.
    pub ca_overlap_interval: Option<Duration>,
    /// Lifetime of the CA; 7 days if unset, and old CAs stay trusted until they expire.
    pub ca: Option<CertConfig>,
    /// Lifetime of server certificates; 24 hours if unset, never longer than the CA's.
    pub server: Option<CertConfig>,
}

/// Lifetime and renewal point of a certificate.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertConfig {
    /// How long the certificate is valid, such as 168h.
    pub duration: Option<Duration>,
    /// How long before expiry to renew; a fifth of the duration if unset, and never more than all of it.
    pub renew_before: Option<Duration>,
}

/// Placement and scale of a group of KubeVirt components.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentConfig {
    /// Nodes the components may run on.
    pub node_placement: Option<NodePlacement>,
    /// Copies of each control plane component; 2 if unset, and setting it stops virt-api scaling with
    /// nodes.
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0, "maximum": 255 }))]
    pub replicas: Option<i64>,
}

/// Scheduling rules for KubeVirt's own pods.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePlacement {
    /// Labels a node must have.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Node and pod affinity rules, merged with the built-in ones.
    pub affinity: Option<Affinity>,
    /// Taints the pods tolerate in addition to the built-in ones.
    pub tolerations: Option<Vec<Toleration>>,
}

/// Changes applied to the resources virt-operator installs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomizeComponents {
    /// Patches to installed resources, applied on every reconcile.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub patches: Option<Vec<CustomizeComponentsPatch>>,
    /// Command-line flags for the main components.
    pub flags: Option<Flags>,
}

/// A patch to one installed resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomizeComponentsPatch {
    /// Name of the resource to patch, such as virt-controller.
    #[schemars(extend("minLength" = 1))]
    pub resource_name: String,
    /// Kind of the resource to patch, such as Deployment.
    #[schemars(extend("minLength" = 1))]
    pub resource_type: String,
    /// The patch body as a JSON string.
    pub patch: String,
    /// Format of the patch: `json`, `merge` or `strategic`.
    pub type_: PatchType,
}

/// Command-line flags by component; a component's flags replace its standard arguments.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Flags {
    /// Flags for virt-api, name without dashes to value; an empty value gives a bare flag.
    pub api: Option<BTreeMap<String, String>>,
    /// Flags for virt-controller, name without dashes to value; an empty value gives a bare flag.
    pub controller: Option<BTreeMap<String, String>>,
    /// Flags for virt-handler, name without dashes to value; an empty value gives a bare flag.
    pub handler: Option<BTreeMap<String, String>>,
}

open_enum! {
    /// Way to renew a running VM: `LiveMigrate` keeps it up, `Evict` shuts it down.
    pub enum WorkloadUpdateMethod {
        LiveMigrate = "LiveMigrate",
        Evict = "Evict",
    }
}

open_enum! {
    /// On removal with VMs present: `RemoveWorkloads` deletes them, `BlockUninstallIfWorkloadsExist`
    /// refuses.
    pub enum UninstallStrategy {
        RemoveWorkloads = "RemoveWorkloads",
        BlockUninstallIfWorkloadsExist = "BlockUninstallIfWorkloadsExist",
    }
}

open_enum! {
    /// Patch format: `json` (RFC 6902), `merge` (RFC 7386) or `strategic`.
    pub enum PatchType {
        Json = "json",
        Merge = "merge",
        Strategic = "strategic",
    }
}
