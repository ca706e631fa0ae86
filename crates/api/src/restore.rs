//! Restoring a virtual machine from a snapshot.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::Condition;
use crate::kind::kind;
use crate::open_enum::open_enum;
use crate::snapshot::{TargetReadinessPolicy, VolumeOwnershipPolicy};

kind! {
    /// Restores a VM from a VirtualMachineSnapshot.
    VirtualMachineRestore: SNAPSHOT, "v1beta1", "virtualmachinerestores", NamespaceResourceScope;
    spec: VirtualMachineRestoreSpec,
    status: VirtualMachineRestoreStatus
}

/// What to restore and how.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineRestoreSpec {
    /// VirtualMachine to restore, in the same namespace; created if it does not exist.
    pub target: TypedLocalObjectReference,
    /// VirtualMachineSnapshot to restore from, in the same namespace.
    pub virtual_machine_snapshot_name: String,
    /// If the VM runs: StopTarget, WaitGracePeriod (5 minutes, default), FailImmediate or WaitEventually.
    #[schemars(extend("enum" = ["StopTarget", "WaitGracePeriod", "FailImmediate", "WaitEventually"], "default" = "WaitGracePeriod"))]
    pub target_readiness_policy: Option<TargetReadinessPolicy>,
    /// Naming of restored PVCs: `RandomizeNames` (default), `InPlace` or `PrefixTargetName`.
    pub volume_restore_policy: Option<VolumeRestorePolicy>,
    /// Owner of restored volumes: `Vm` (default, deleted with the VM) or `None`.
    pub volume_ownership_policy: Option<VolumeOwnershipPolicy>,
    /// Names, labels and annotations for individual restored volumes.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub volume_restore_overrides: Option<Vec<VolumeRestoreOverride>>,
    /// JSON patch operations, one per string, applied to the VM manifest when the target does not exist
    /// yet.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub patches: Option<Vec<String>>,
}

/// Changes to one volume as it is restored.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRestoreOverride {
    /// Volume of the snapshotted VM that the override is for.
    pub volume_name: Option<String>,
    /// Name of the restored PVC; chosen by `volumeRestorePolicy` if unset.
    pub restore_name: Option<String>,
    /// Labels to add to the restored PVC.
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations to add to the restored PVC.
    pub annotations: Option<BTreeMap<String, String>>,
}

/// Progress and outcome of a restore.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineRestoreStatus {
    /// One entry per volume being restored.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub restores: Option<Vec<VolumeRestore>>,
    /// When the restore finished.
    pub restore_time: Option<Time>,
    /// DataVolumes removed because restored ones took their place.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub deleted_data_volumes: Option<Vec<String>>,
    /// True once the VM and all its volumes are restored.
    pub complete: Option<bool>,
    /// Conditions such as Ready, Progressing and Failure.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub conditions: Option<Vec<Condition>>,
}

/// Where one volume is restored from and to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRestore {
    /// Volume's name in the VM.
    pub volume_name: String,
    /// PVC the data is restored into.
    pub persistent_volume_claim: String,
    /// VolumeSnapshot the data comes from.
    pub volume_snapshot_name: String,
    /// DataVolume created around the restored PVC, if any.
    pub data_volume_name: Option<String>,
}

open_enum! {
    /// PVC names: `RandomizeNames` makes new ones, `InPlace` replaces, `PrefixTargetName` prefixes the VM
    /// name.
    pub enum VolumeRestorePolicy {
        RandomizeNames = "RandomizeNames",
        InPlace = "InPlace",
        PrefixTargetName = "PrefixTargetName",
    }
}
