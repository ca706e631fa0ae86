//! A number of equal instances: `VirtualMachineInstanceReplicaSet`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::Condition;
use crate::kind::kind;
use crate::vmi::VmiTemplate;

kind! {
    /// Keeps a number of identical, disposable VM instances running.
    VirtualMachineInstanceReplicaSet: KUBEVIRT, "v1", "virtualmachineinstancereplicasets", NamespaceResourceScope;
    spec: VirtualMachineInstanceReplicaSetSpec,
    status: VirtualMachineInstanceReplicaSetStatus
}

/// Replica count, selector and template of the set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineInstanceReplicaSetSpec {
    /// Instances to keep running; 1 if unset, 0 stops them all.
    pub replicas: Option<i32>,
    /// Labels of the instances the set owns; must match the template's labels.
    pub selector: LabelSelector,
    /// Instance to create for each replica; changes apply only to instances created later.
    pub template: VmiTemplate,
    /// Stops the set from creating or deleting instances until it is cleared.
    pub paused: Option<bool>,
}

/// Observed state of the set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("nullable" = true))]
pub struct VirtualMachineInstanceReplicaSetStatus {
    /// Instances that exist and are not terminating.
    pub replicas: Option<i32>,
    /// Instances that are ready.
    pub ready_replicas: Option<i32>,
    /// Flags such as the set being paused or failing to create instances.
    pub conditions: Option<Vec<Condition>>,
    /// The selector as text, read by autoscalers through the scale subresource.
    pub label_selector: Option<String>,
}
