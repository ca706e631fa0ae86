//! Snapshots of virtual machines and their contents.

use k8s_openapi::api::core::v1::{PersistentVolumeClaimSpec, TypedLocalObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::Condition;
use crate::duration::Duration;
use crate::kind::kind;
use crate::open_enum::open_enum;
use crate::vm::VirtualMachineSpec;
use crate::vm::status::VirtualMachineStatus;

kind! {
    /// The data behind a VirtualMachineSnapshot; created by the controller, not by hand.
    VirtualMachineSnapshotContent: SNAPSHOT, "v1beta1", "virtualmachinesnapshotcontents", NamespaceResourceScope;
    spec: VirtualMachineSnapshotContentSpec,
    status: VirtualMachineSnapshotContentStatus
}

kind! {
    /// Request to capture a virtual machine's definition and disks at a point in time.
    VirtualMachineSnapshot: SNAPSHOT, "v1beta1", "virtualmachinesnapshots", NamespaceResourceScope;
    spec: VirtualMachineSnapshotSpec,
    status: VirtualMachineSnapshotStatus
}

/// What to snapshot, how long it may take and what deleting it does.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineSnapshotSpec {
    /// Machine to capture, in the same namespace; apiGroup `kubevirt.io`, kind `VirtualMachine`.
    pub source: TypedLocalObjectReference,
    /// Fate of the captured data when this object is deleted: `Delete`, the default, or `Retain`.
    pub deletion_policy: Option<DeletionPolicy>,
    /// Time allowed before the snapshot is marked failed, e.g. `10m`; 5 minutes if unset, 0 for no limit.
    pub failure_deadline: Option<Duration>,
}

/// Progress and result of a snapshot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineSnapshotStatus {
    /// UID of the machine that was captured.
    #[serde(rename = "sourceUID")]
    pub source_uid: Option<String>,
    /// Name of the VirtualMachineSnapshotContent that holds the captured data.
    pub virtual_machine_snapshot_content_name: Option<String>,
    /// Moment the disks were captured.
    #[schemars(extend("nullable" = true))]
    pub creation_time: Option<Time>,
    /// Stage of the snapshot: `InProgress`, `Succeeded`, `Failed`, `Deleting`, `Unknown` or empty at first.
    pub phase: Option<SnapshotPhase>,
    /// True once the snapshot can be restored or cloned from.
    pub ready_to_use: Option<bool>,
    /// Latest problem met while taking the snapshot.
    pub error: Option<SnapshotError>,
    /// Conditions of type `Ready`, `Progressing` and `Failure`.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub conditions: Option<Vec<Condition>>,
    /// Deprecated list of facts about how the snapshot was taken; read `sourceIndications` instead.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub indications: Option<Vec<SnapshotIndication>>,
    /// State of the machine at capture time, such as running or frozen by its agent, with explanations.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub source_indications: Option<Vec<SourceIndication>>,
    /// Which of the machine's volumes were captured and which were left out.
    pub snapshot_volumes: Option<SnapshotVolumesLists>,
}

/// A problem met during a snapshot or restore.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotError {
    /// When the problem occurred.
    pub time: Option<Time>,
    /// Human-readable description of the problem.
    pub message: Option<String>,
}

/// One fact about the source machine at capture time, with an explanation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceIndication {
    /// The fact: `Online`, `NoGuestAgent`, `GuestAgent`, `QuiesceTimeout`, `Paused` or `PartialSnapshot`.
    pub indication: SnapshotIndication,
    /// Human-readable explanation of what the fact means for the snapshot.
    pub message: String,
}

/// Volumes captured by a snapshot and volumes it skipped.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotVolumesLists {
    /// Names of the volumes whose data is in the snapshot.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub included_volumes: Option<Vec<String>>,
    /// Names of the volumes left out; their data cannot be restored from this snapshot.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub excluded_volumes: Option<Vec<String>>,
}

/// The captured machine definition and disks.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineSnapshotContentSpec {
    /// VirtualMachineSnapshot this content belongs to.
    pub virtual_machine_snapshot_name: Option<String>,
    /// Copy of the object that was captured.
    pub source: SnapshotSource,
    /// One entry per captured disk with what is needed to recreate its claim.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub volume_backups: Option<Vec<VolumeBackup>>,
}

/// Copy of the captured object.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotSource {
    /// The virtual machine as it was defined at capture time.
    pub virtual_machine: Option<SnapshotVirtualMachine>,
}

/// Frozen copy of a virtual machine inside a snapshot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotVirtualMachine {
    /// Labels, annotations and the rest of the standard metadata.
    #[schemars(extend("nullable" = true))]
    pub metadata: Option<ObjectMeta>,
    /// The machine's spec at capture time.
    pub spec: Option<VirtualMachineSpec>,
    /// The machine's status at capture time.
    pub status: Option<VirtualMachineStatus>,
}

/// One captured disk: its volume, claim and CSI snapshot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeBackup {
    /// Name of the volume in the machine's spec.
    pub volume_name: String,
    /// Copy of the claim that backed the volume, used to recreate it on restore.
    pub persistent_volume_claim: SnapshotClaim,
    /// Name of the CSI VolumeSnapshot holding the disk's data.
    pub volume_snapshot_name: Option<String>,
}

/// Copy of a PersistentVolumeClaim inside a snapshot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotClaim {
    /// Labels, annotations and the rest of the standard metadata.
    pub metadata: Option<ObjectMeta>,
    /// The claim's spec at capture time: size, access modes, storage class.
    pub spec: Option<PersistentVolumeClaimSpec>,
}

/// Progress of capturing the disks.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineSnapshotContentStatus {
    /// Moment the capture of all disks was made.
    #[schemars(extend("nullable" = true))]
    pub creation_time: Option<Time>,
    /// True once every disk's CSI snapshot is usable.
    pub ready_to_use: Option<bool>,
    /// Latest problem met while capturing the disks.
    pub error: Option<SnapshotError>,
    /// State of each CSI VolumeSnapshot.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub volume_snapshot_status: Option<Vec<VolumeSnapshotState>>,
}

/// State of one CSI VolumeSnapshot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSnapshotState {
    /// Name of the VolumeSnapshot.
    pub volume_snapshot_name: String,
    /// When the storage backend took this disk's snapshot.
    #[schemars(extend("nullable" = true))]
    pub creation_time: Option<Time>,
    /// True once this disk can be restored from its snapshot.
    pub ready_to_use: Option<bool>,
    /// Problem reported by the storage backend for this disk.
    pub error: Option<SnapshotError>,
}

open_enum! {
    /// When the target runs: `WaitGracePeriod` 5m (default), `StopTarget`, `FailImmediate`,
    /// `WaitEventually`.
    pub enum TargetReadinessPolicy {
        StopTarget = "StopTarget",
        WaitGracePeriod = "WaitGracePeriod",
        FailImmediate = "FailImmediate",
        WaitEventually = "WaitEventually",
    }
}

open_enum! {
    /// Owner of restored disks: `Vm`, the default, deletes them with the machine; `None` keeps them.
    pub enum VolumeOwnershipPolicy {
        Vm = "Vm",
        None = "None",
    }
}

open_enum! {
    /// Fate of snapshot data once its snapshot is deleted: `Delete` or `Retain`.
    pub enum DeletionPolicy {
        Delete = "Delete",
        Retain = "Retain",
    }
}

open_enum! {
    /// Stage of a snapshot: empty, `InProgress`, `Succeeded`, `Failed`, `Deleting` or `Unknown`.
    pub enum SnapshotPhase {
        InProgress = "InProgress",
        Succeeded = "Succeeded",
        Failed = "Failed",
        Deleting = "Deleting",
        Unknown = "Unknown",
    }
}

open_enum! {
    /// A fact about the machine at capture time, such as `Online`, `GuestAgent` or `PartialSnapshot`.
    pub enum SnapshotIndication {
        Online = "Online",
        NoGuestAgent = "NoGuestAgent",
        GuestAgent = "GuestAgent",
        QuiesceTimeout = "QuiesceTimeout",
        Paused = "Paused",
        PartialSnapshot = "PartialSnapshot",
    }
}
