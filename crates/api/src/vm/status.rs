//! What is known of a virtual machine.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::Condition;
use crate::open_enum::open_enum;
use crate::vm::{InferFromVolumeFailurePolicy, RunStrategy};
use crate::vmi::disks::Disk;
use crate::vmi::status::{ChangedBlockTrackingStatus, StorageMigratedVolumeInfo};
use crate::vmi::volumes::{DataVolumeRef, PersistentVolumeClaimVolumeSource};

/// What the controller last observed about a virtual machine; not for users to edit.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineStatus {
    /// Name of the VirtualMachineSnapshot being taken right now, if any.
    pub snapshot_in_progress: Option<String>,
    /// Name of the VirtualMachineRestore being applied right now, if any.
    pub restore_in_progress: Option<String>,
    /// True while a VirtualMachineInstance exists for this machine.
    pub created: Option<bool>,
    /// True while the guest runs and its readiness checks pass.
    pub ready: Option<bool>,
    /// One-word summary shown by kubectl get, such as Running or Stopped.
    #[schemars(extend("default" = "Stopped"))]
    pub printable_status: Option<PrintableStatus>,
    /// Detailed conditions of the machine and of its running instance, one per type.
    pub conditions: Option<Vec<Condition>>,
    /// Start and stop actions still to be carried out, in order.
    pub state_change_requests: Option<Vec<StateChangeRequest>>,
    /// Volume additions and removals still to be carried out, in order.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub volume_requests: Option<Vec<VolumeRequest>>,
    /// For each volume, whether a snapshot can include it.
    pub volume_snapshot_statuses: Option<Vec<VolumeSnapshotStatus>>,
    /// Record of repeated failed starts, from which the retry delay is worked out.
    #[schemars(extend("nullable" = true))]
    pub start_failure: Option<StartFailure>,
    /// Progress of the latest memory dump, until its claim is dissociated.
    #[schemars(extend("nullable" = true))]
    pub memory_dump_request: Option<MemoryDumpRequest>,
    /// Generation of the machine that the running instance was created from.
    pub observed_generation: Option<i64>,
    /// Newest generation of the machine; if above observedGeneration, the instance is out of date.
    pub desired_generation: Option<i64>,
    /// Run strategy the controller last acted on.
    pub run_strategy: Option<RunStrategy>,
    /// Progress of a change to the machine's set of volumes.
    pub volume_update_state: Option<VolumeUpdateState>,
    /// State of changed block tracking, which incremental backups depend on.
    #[schemars(extend("nullable" = true))]
    pub changed_block_tracking: Option<ChangedBlockTrackingStatus>,
    /// Instance type in effect, with the revision captured for it.
    #[schemars(extend("nullable" = true))]
    pub instancetype_ref: Option<InstancetypeStatusRef>,
    /// Preference in effect, with the revision captured for it.
    #[schemars(extend("nullable" = true))]
    pub preference_ref: Option<InstancetypeStatusRef>,
}

/// A queued start or stop.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateChangeRequest {
    /// `Start` or `Stop`.
    pub action: StateChangeRequestAction,
    /// Extra parameters of the action, such as paused set to true for a start in paused state.
    pub data: Option<BTreeMap<String, String>>,
    /// UID of the VirtualMachineInstance concerned; the request is dropped once that instance is gone.
    pub uid: Option<String>,
}

/// A queued volume change; either the add or the remove part is set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRequest {
    /// The volume to add and how the guest should see it.
    pub add_volume_options: Option<AddVolumeOptions>,
    /// The volume to remove.
    pub remove_volume_options: Option<RemoveVolumeOptions>,
}

/// Parameters for attaching a volume to a running machine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddVolumeOptions {
    /// Name given to both the new volume and its disk; must not be in use already.
    pub name: String,
    /// How the guest sees the volume: device type, bus, serial and so on.
    pub disk: Disk,
    /// Claim or DataVolume that holds the data.
    pub volume_source: HotplugVolumeSource,
    /// Set to All to validate the request without changing anything.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub dry_run: Option<Vec<String>>,
}

/// Source of a hotplugged volume; exactly one of the members is set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HotplugVolumeSource {
    /// Existing claim in the same namespace.
    pub persistent_volume_claim: Option<PersistentVolumeClaimVolumeSource>,
    /// DataVolume in the same namespace.
    pub data_volume: Option<DataVolumeRef>,
}

/// Parameters for detaching a volume from a running machine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoveVolumeOptions {
    /// Name of the volume to detach, which must be hotpluggable.
    pub name: String,
    /// Set to All to validate the request without changing anything.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub dry_run: Option<Vec<String>>,
}

/// Whether one volume can be part of a snapshot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSnapshotStatus {
    /// Name of the volume in the machine's template.
    pub name: String,
    /// True if snapshots include this volume.
    pub enabled: bool,
    /// Why the volume cannot be snapshotted; empty when it can.
    pub reason: Option<String>,
}

/// Bookkeeping for starts that keep failing, behind the CrashLoopBackOff status.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartFailure {
    /// Failed starts in a row; each one lengthens the wait before the next attempt.
    #[schemars(extend("format" = null))]
    pub consecutive_fail_count: Option<i64>,
    /// UID of the last instance that failed, so that it is counted only once.
    #[serde(rename = "lastFailedVMIUID")]
    pub last_failed_vmiuid: Option<String>,
    /// Time before which no new start is attempted.
    pub retry_after_timestamp: Option<Time>,
}

/// State of a memory dump asked for on a machine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryDumpRequest {
    /// Claim the dump is written to.
    pub claim_name: String,
    /// How far the dump is, from Associating to Completed or Failed.
    pub phase: MemoryDumpPhase,
    /// True once the claim has been asked to be detached from the machine; the dump file is kept.
    pub remove: Option<bool>,
    /// Time the dump began.
    pub start_timestamp: Option<Time>,
    /// Time the dump finished.
    pub end_timestamp: Option<Time>,
    /// Name of the dump file inside the claim.
    pub file_name: Option<String>,
    /// Explanation of a failed dump.
    pub message: Option<String>,
}

/// Progress of changes made to the volumes of a machine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeUpdateState {
    /// Progress of copying data from old volumes to new ones, with the Migration strategy.
    pub volume_migration_state: Option<VolumeMigrationState>,
}

/// Volumes taking part in a volume migration.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeMigrationState {
    /// Each volume with its source claim and its destination claim.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub migrated_volumes: Option<Vec<StorageMigratedVolumeInfo>>,
}

/// An instance type or preference as the controller resolved it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstancetypeStatusRef {
    /// Name of the resolved object.
    pub name: Option<String>,
    /// Kind of the resolved object, in its namespaced or cluster-wide variant.
    pub kind: Option<String>,
    /// Snapshot of the object in use; later edits of the original do not reach the machine.
    pub controller_revision_ref: Option<ControllerRevisionRef>,
    /// Volume whose labels named the object, if it was inferred.
    pub infer_from_volume: Option<String>,
    /// Policy applied if inference fails: `Reject` or `Ignore`.
    pub infer_from_volume_failure_policy: Option<InferFromVolumeFailurePolicy>,
}

/// Reference to a ControllerRevision in the same namespace.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerRevisionRef {
    /// Name of the ControllerRevision.
    pub name: Option<String>,
}

open_enum! {
    /// Overall state of a machine in one word, for display.
    pub enum PrintableStatus {
        Stopped = "Stopped",
        Provisioning = "Provisioning",
        Starting = "Starting",
        Running = "Running",
        Paused = "Paused",
        Stopping = "Stopping",
        Terminating = "Terminating",
        CrashLoopBackOff = "CrashLoopBackOff",
        Migrating = "Migrating",
        Unknown = "Unknown",
        ErrorUnschedulable = "ErrorUnschedulable",
        ErrImagePull = "ErrImagePull",
        ImagePullBackOff = "ImagePullBackOff",
        ErrorPvcNotFound = "ErrorPvcNotFound",
        DataVolumeError = "DataVolumeError",
        WaitingForVolumeBinding = "WaitingForVolumeBinding",
        WaitingForReceiver = "WaitingForReceiver",
    }
}

open_enum! {
    /// Action to carry out on a machine: `Start` or `Stop`.
    pub enum StateChangeRequestAction {
        Start = "Start",
        Stop = "Stop",
    }
}

open_enum! {
    /// Stage of a memory dump; `Completed` and `Failed` are its outcomes.
    pub enum MemoryDumpPhase {
        Associating = "Associating",
        InProgress = "InProgress",
        Unmounting = "Unmounting",
        Completed = "Completed",
        Dissociating = "Dissociating",
        Failed = "Failed",
    }
}
