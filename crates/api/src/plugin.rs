//! Hooks into the making of virtual machines: `Plugin`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::duration::Duration;
use crate::kind::kind;
use crate::open_enum::open_enum;

kind! {
    /// Cluster-wide extension that adjusts VM domains or runs on nodes at lifecycle events; needs the
    /// Plugins gate.
    Plugin: PLUGIN, "v1alpha1", "plugins", ClusterResourceScope;
    spec: PluginSpec,
    status: PluginStatus
}

/// Hooks and admission references of a plugin; with none of either it does nothing.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginSpec {
    /// CEL test on `vmi` that a VM must pass before the plugin's hooks apply; every VM if unset.
    pub condition: Option<String>,
    /// What happens when a hook that sets no strategy fails: `Fail` (default) or `Ignore`.
    pub failure_strategy: Option<FailureStrategy>,
    /// Changes to the libvirt domain, run in order; plugins themselves run in order of name.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub domain_hooks: Option<Vec<DomainHook>>,
    /// Calls to services on the node, run in order; plugins themselves run in order of name.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub node_hooks: Option<Vec<NodeHook>>,
    /// MutatingAdmissionPolicy objects that belong to the plugin.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub mutating_admission_policies: Option<Vec<AdmissionReference>>,
    /// ValidatingAdmissionPolicy objects that belong to the plugin.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub validating_admission_policies: Option<Vec<AdmissionReference>>,
    /// MutatingWebhookConfiguration objects that belong to the plugin.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub mutating_admission_webhooks: Option<Vec<AdmissionReference>>,
    /// ValidatingWebhookConfiguration objects that belong to the plugin.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub validating_admission_webhooks: Option<Vec<AdmissionReference>>,
}

/// A change to the libvirt domain before a VM starts or migrates; set either `cel` or `sidecar`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DomainHook {
    /// Makes the change with a CEL expression; excludes `sidecar`.
    pub cel: Option<CelDomainHook>,
    /// Makes the change by calling a sidecar container; excludes `cel`.
    pub sidecar: Option<SidecarDomainHook>,
    /// CEL test a VM must also pass for this hook to run; no extra test if unset.
    pub condition: Option<String>,
    /// `Fail` stops the VM from starting, `Ignore` carries on; the plugin's strategy if unset.
    pub failure_strategy: Option<FailureStrategy>,
    /// How long to wait for the sidecar's answer, e.g. `10s`; 30 seconds if unset, and unused by CEL hooks.
    pub timeout: Option<Duration>,
}

/// A domain change written in CEL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelDomainHook {
    /// CEL expression that yields the changed domain; checked when the plugin is created.
    #[schemars(extend("minLength" = 1))]
    pub expression: String,
}

/// A domain change made by a sidecar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SidecarDomainHook {
    /// Unix socket the sidecar listens on; no `..` segments or doubled slashes.
    #[schemars(extend("minLength" = 1))]
    pub socket_path: String,
}

/// A service on the node called at VM lifecycle events; calls can repeat, so it must be idempotent.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeHook {
    /// Unix socket on the node where the service listens.
    #[schemars(extend("minLength" = 1))]
    pub socket: String,
    /// Events to be called for; at least one.
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "minItems" = 1))]
    pub permitted_hooks: Vec<NodeHookPoint>,
    /// CEL test on `vmi` that a VM must pass for the call to be made; every VM if unset.
    pub condition: Option<String>,
    /// `Fail` (default) blocks the operation when the call fails, `Ignore` only logs it.
    pub failure_strategy: Option<FailureStrategy>,
    /// How long to wait for the service's answer, e.g. `10s`; 30 seconds if unset.
    pub timeout: Option<Duration>,
}

/// Reference to an admission policy or webhook configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionReference {
    /// Name of the object; it is cluster-scoped, so no namespace.
    #[schemars(extend("minLength" = 1))]
    pub name: String,
}

/// Observed state of a plugin; has no fields yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {}

open_enum! {
    /// What a failing hook does: `Fail` aborts the operation, `Ignore` logs and continues.
    pub enum FailureStrategy {
        Fail = "Fail",
        Ignore = "Ignore",
    }
}

open_enum! {
    /// Moment in a VM's life when a node hook is called, before or after start, stop or migration.
    pub enum NodeHookPoint {
        PreVMStart = "PreVMStart",
        PostVMStart = "PostVMStart",
        PreVMStop = "PreVMStop",
        PostVMStop = "PostVMStop",
        PreMigrationSource = "PreMigrationSource",
        PreMigrationTarget = "PreMigrationTarget",
        PostMigrationTarget = "PostMigrationTarget",
    }
}
