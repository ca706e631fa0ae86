//! Copying a virtual machine: `VirtualMachineClone`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::Condition;
use crate::kind::kind;
use crate::open_enum::open_enum;

kind! {
    /// Request to copy a virtual machine, disks included, within its namespace.
    VirtualMachineClone: CLONE, "v1beta1", "virtualmachineclones", NamespaceResourceScope;
    spec: VirtualMachineCloneSpec,
    status: VirtualMachineCloneStatus
}

/// What to copy and what to change in the copy.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineCloneSpec {
    /// VirtualMachine or VirtualMachineSnapshot to copy, in the same namespace.
    pub source: TypedLocalObjectReference,
    /// VirtualMachine to create; if unset it gets a random name, found in `status.targetName`.
    pub target: Option<TypedLocalObjectReference>,
    /// Patterns of annotation keys to copy, with `!` to drop, e.g. `!some/key*`; all are copied if unset.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub annotation_filters: Option<Vec<String>>,
    /// Patterns of label keys to copy, with `!` to drop, e.g. `!some/key*`; all are copied if unset.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub label_filters: Option<Vec<String>>,
    /// The same filters for labels and annotations under `spec.template`.
    pub template: Option<CloneTemplateFilters>,
    /// MAC address per interface name; interfaces not listed get a fresh address.
    pub new_mac_addresses: Option<BTreeMap<String, String>>,
    /// SMBIOS serial number of the copy; if unset the source's serial is not carried over.
    #[serde(rename = "newSMBiosSerial")]
    pub new_sm_bios_serial: Option<String>,
    /// JSON patch operations, one per string, applied to the new machine before it is created.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub patches: Option<Vec<String>>,
    /// Names of copied disks: `RandomizeNames`, the default, or `PrefixTargetName`.
    #[schemars(extend("enum" = ["RandomizeNames", "PrefixTargetName"]))]
    pub volume_name_policy: Option<VolumeNamePolicy>,
}

/// Which labels and annotations of the instance template are copied.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneTemplateFilters {
    /// Patterns of template annotation keys to copy, with `!` to drop; all are copied if unset.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub annotation_filters: Option<Vec<String>>,
    /// Patterns of template label keys to copy, with `!` to drop; all are copied if unset.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub label_filters: Option<Vec<String>>,
}

/// Progress of a clone.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineCloneStatus {
    /// When the copy was made; may stay unset.
    #[schemars(extend("nullable" = true))]
    pub creation_time: Option<Time>,
    /// Stage of the clone; ends as `Succeeded` or `Failed`.
    pub phase: Option<ClonePhase>,
    /// `Ready` and `Progressing` conditions with the reason for the current stage.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub conditions: Option<Vec<Condition>>,
    /// Snapshot the copy is made from; temporary unless it was the source.
    #[schemars(extend("nullable" = true))]
    pub snapshot_name: Option<String>,
    /// Temporary restore object that creates the copy.
    #[schemars(extend("nullable" = true))]
    pub restore_name: Option<String>,
    /// Name of the new virtual machine.
    #[schemars(extend("nullable" = true))]
    pub target_name: Option<String>,
}

open_enum! {
    /// Naming of copied disks: `RandomizeNames`, or `PrefixTargetName` for machine name plus volume name.
    pub enum VolumeNamePolicy {
        RandomizeNames = "RandomizeNames",
        PrefixTargetName = "PrefixTargetName",
    }
}

open_enum! {
    /// Stage of a clone, from empty through snapshot, creation and restore to `Succeeded` or `Failed`.
    pub enum ClonePhase {
        SnapshotInProgress = "SnapshotInProgress",
        CreatingTargetVM = "CreatingTargetVM",
        RestoreInProgress = "RestoreInProgress",
        Succeeded = "Succeeded",
        Failed = "Failed",
        Unknown = "Unknown",
    }
}
