//! A number of alike virtual machines: `VirtualMachinePool`.

use k8s_openapi::api::core::v1::NodeSelectorRequirement;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::Condition;
use crate::duration::Duration;
use crate::kind::kind;
use crate::open_enum::open_enum;
use crate::vm::VirtualMachineSpec;

kind! {
    /// A set of near-identical virtual machines kept at a wanted size from one template.
    VirtualMachinePool: POOL, "v1beta1", "virtualmachinepools", NamespaceResourceScope;
    spec: VirtualMachinePoolSpec,
    status: VirtualMachinePoolStatus
}

/// Size, template and update behavior of a pool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachinePoolSpec {
    /// Number of virtual machines to keep, 0 or more; 1 if unset.
    #[schemars(extend("minimum" = 0))]
    pub replicas: Option<i32>,
    /// Labels by which the pool recognizes its machines; must match the template's labels.
    pub selector: LabelSelector,
    /// Labels, annotations and spec of each machine the pool creates.
    pub virtual_machine_template: PoolTemplate,
    /// Stop creating, deleting and updating machines until set back to false.
    pub paused: Option<bool>,
    /// Whether referenced ConfigMaps and Secrets are told apart per machine by index.
    pub name_generation: Option<PoolNameGeneration>,
    /// Count or percentage of machines that may be not ready during an update; `100%` if unset.
    pub max_unavailable: Option<IntOrString>,
    /// How machines are removed when the pool shrinks; proactive if unset.
    pub scale_in_strategy: Option<PoolScaleInStrategy>,
    /// How template changes reach existing machines; proactive if unset.
    pub update_strategy: Option<PoolUpdateStrategy>,
    /// Replace machines that keep failing to start; off if unset.
    pub autohealing: Option<PoolAutohealingStrategy>,
}

/// Blueprint for the virtual machines of a pool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolTemplate {
    /// Labels, annotations and the rest of the standard metadata.
    #[schemars(extend("nullable" = true))]
    pub metadata: Option<ObjectMeta>,
    /// Spec given to each created virtual machine; DataVolume template names get the machine's index.
    pub spec: Option<VirtualMachineSpec>,
}

/// Per-machine naming of the objects that pool members refer to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolNameGeneration {
    /// Add the machine's index to ConfigMap names it refers to, e.g. `cfg-0`; false if unset.
    pub append_index_to_config_map_refs: Option<bool>,
    /// Add the machine's index to Secret names it refers to, e.g. `creds-0`; false if unset.
    pub append_index_to_secret_refs: Option<bool>,
}

/// How a pool sheds machines; set one of the three, proactive if none is set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolScaleInStrategy {
    /// Never delete machines; shrinking the pool is left to you.
    pub unmanaged: Option<PoolUnmanagedStrategy>,
    /// Never pick machines to delete, but clean up after ones deleted by someone else.
    pub opportunistic: Option<PoolOpportunisticScaleInStrategy>,
    /// Delete surplus machines at once when `replicas` is lowered; the default.
    pub proactive: Option<PoolProactiveScaleInStrategy>,
}

/// Empty object; its presence tells the pool to leave existing machines alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolUnmanagedStrategy {}

/// Shrink only as machines get deleted by other means.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolOpportunisticScaleInStrategy {
    /// `Disabled`, the default, drops a machine's disks; `Offline` or `Online` keeps them for reuse.
    #[schemars(extend("enum" = ["Disabled", "Offline", "Online"]))]
    pub state_preservation: Option<StatePreservation>,
}

/// Delete surplus machines right away.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolProactiveScaleInStrategy {
    /// Which machines are deleted first; random if unset.
    pub selection_policy: Option<PoolSelectionPolicy>,
    /// `Disabled`, the default, drops a machine's disks; `Offline` or `Online` keeps them for reuse.
    #[schemars(extend("enum" = ["Disabled", "Offline", "Online"]))]
    pub state_preservation: Option<StatePreservation>,
}

/// Order and filter for picking machines to delete or update.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolSelectionPolicy {
    /// `AscendingOrder` or `DescendingOrder` by index, `Newest`, `Oldest`, or `Random`, the default.
    #[schemars(extend("enum" = ["AscendingOrder", "DescendingOrder", "Newest", "Oldest", "Random"]))]
    pub sort_policy: Option<PoolSortPolicy>,
    /// Restrict the choice to machines that match; all are eligible if unset.
    pub selectors: Option<PoolSelectors>,
}

/// Filters on pool members; a machine must pass every one that is set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolSelectors {
    /// Match on the labels of the machine's instance template.
    pub label_selector: Option<LabelSelector>,
    /// Match on the `nodeSelector` entries in the machine's own template.
    pub node_selector_requirement_matcher: Option<Vec<NodeSelectorRequirement>>,
}

/// How a changed template reaches machines; set one of the three, proactive if none is set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolUpdateStrategy {
    /// Never update existing machines; only new ones use the changed template.
    pub unmanaged: Option<PoolUnmanagedStrategy>,
    /// Update the machine's spec now and let it take effect at its next restart.
    pub opportunistic: Option<PoolOpportunisticUpdateStrategy>,
    /// Update the machine's spec and restart its running guest where needed; the default.
    pub proactive: Option<PoolProactiveUpdateStrategy>,
}

/// Empty object; its presence defers guest updates to the next restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolOpportunisticUpdateStrategy {}

/// Apply template changes to running guests right away.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolProactiveUpdateStrategy {
    /// Which machines are updated first; random if unset.
    pub selection_policy: Option<PoolSelectionPolicy>,
}

/// When a machine that fails to start is deleted and created anew.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolAutohealingStrategy {
    /// Start failures in a row before replacing the machine, at least 1; 3 if unset.
    #[schemars(extend("minimum" = 1))]
    pub start_up_failure_threshold: Option<i32>,
    /// Time a machine must have been not ready before it is replaced, e.g. `10m`; 5 minutes if unset.
    pub min_failing_to_start_duration: Option<Duration>,
}

/// Observed size and health of a pool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachinePoolStatus {
    /// Number of machines the pool has now.
    pub replicas: Option<i32>,
    /// Number of those machines that are ready.
    pub ready_replicas: Option<i32>,
    /// `ReplicaFailure` when machines cannot be managed, `ReplicaPaused` while the pool is paused.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub conditions: Option<Vec<Condition>>,
    /// The selector in text form, read by autoscalers through the scale subresource.
    pub label_selector: Option<String>,
}

open_enum! {
    /// What survives scale-in: `Disabled` nothing, `Offline` disks, `Online` disks and memory.
    pub enum StatePreservation {
        Disabled = "Disabled",
        Offline = "Offline",
        Online = "Online",
    }
}

open_enum! {
    /// Order of picking machines: `AscendingOrder`, `DescendingOrder`, `Newest`, `Oldest` or `Random`.
    pub enum PoolSortPolicy {
        AscendingOrder = "AscendingOrder",
        DescendingOrder = "DescendingOrder",
        Newest = "Newest",
        Oldest = "Oldest",
        Random = "Random",
    }
}
