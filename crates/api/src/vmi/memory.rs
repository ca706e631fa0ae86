//! Guest memory and the resources a launcher pod asks for.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// CPU and memory reserved for the guest and the most it may use.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequirements {
    /// Amounts of `cpu` and `memory` reserved on the node; derived from the guest's size if unset.
    pub requests: Option<BTreeMap<String, Quantity>>,
    /// Most `cpu` and `memory` the guest may use; must not be below the requests.
    pub limits: Option<BTreeMap<String, Quantity>>,
    /// Leave hypervisor overhead out of the memory request; risks out-of-memory kills, so false by default.
    pub overcommit_guest_overhead: Option<bool>,
}

/// Size and backing of guest memory.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Back guest memory with preallocated hugepages of the node.
    pub hugepages: Option<Hugepages>,
    /// Memory the guest sees, e.g. `4Gi`; the memory request if unset, and at most the memory limit.
    pub guest: Option<Quantity>,
    /// Most memory the running guest can be grown to by hotplug; must not be below `guest`.
    pub max_guest: Option<Quantity>,
    /// Extra memory to reserve for the pod and whether memory is locked; needs a feature gate.
    pub reserved_overhead: Option<ReservedOverhead>,
}

/// Hugepage backing of guest memory.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hugepages {
    /// Size of one page, `2Mi` or `1Gi` on x86; guest memory must be a multiple of it.
    pub page_size: Option<String>,
}

/// Extra memory for the virt-launcher pod and its locking.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservedOverhead {
    /// Memory added to the virt-launcher pod on top of the computed overhead, e.g. `256Mi`.
    pub added_overhead: Option<Quantity>,
    /// `Required` raises the memory lock limit, e.g. for VFIO or vDPA; `NotRequired` is the default.
    #[schemars(extend("enum" = ["NotRequired", "Required"]))]
    pub mem_lock: Option<String>,
}
