//! Event reasons, by what the event is about.

/// Objects made, changed and deleted on behalf of another.
pub mod objects {
    /// It could not be made.
    pub const FAILED_CREATE: &str = "FailedCreate";
    /// It was made.
    pub const SUCCESSFUL_CREATE: &str = "SuccessfulCreate";
    /// It could not be deleted.
    pub const FAILED_DELETE: &str = "FailedDelete";
    /// It was deleted.
    pub const SUCCESSFUL_DELETE: &str = "SuccessfulDelete";
    /// It could not be changed.
    pub const FAILED_UPDATE: &str = "FailedUpdate";
    /// It was changed.
    pub const SUCCESSFUL_UPDATE: &str = "SuccessfulUpdate";
    /// A pod could not be handed over to its node.
    pub const FAILED_HAND_OVER: &str = "FailedHandOver";
    /// A pod was handed over to its node.
    pub const SUCCESSFUL_HAND_OVER: &str = "SuccessfulHandOver";
    /// A replica set or pool was paused.
    pub const SUCCESSFUL_PAUSED: &str = "SuccessfulPaused";
    /// A replica set goes on.
    pub const SUCCESSFUL_RESUMED: &str = "SuccessfulResumed";
    /// A pool goes on.
    pub const SUCCESSFUL_RESUME: &str = "SuccessfulResume";
    /// The number of components was set by hand.
    pub const ADVANCED_FEATURE_USE: &str = "AdvancedFeatureUse";
}

/// Nodes.
pub mod node {
    /// The CPU of the node is of a model that is too old to use.
    pub const HOST_MODEL_IS_OBSOLETE: &str = "HostModelIsObsolete";
}

/// The life of an instance.
pub mod vmi {
    /// The guest was defined.
    pub const CREATED: &str = "Created";
    /// The guest was asked to go for good.
    pub const DELETED: &str = "Deleted";
    /// The guest started.
    pub const STARTED: &str = "Started";
    /// The guest was asked to shut down.
    pub const SHUTTING_DOWN: &str = "ShuttingDown";
    /// The guest stopped.
    pub const STOPPED: &str = "Stopped";
    /// A user paused the guest.
    pub const PAUSED: &str = "Paused";
    /// A user let the guest go on.
    pub const UNPAUSED: &str = "Unpaused";
    /// A user reset the guest.
    pub const RESET: &str = "Reset";
    /// A user asked the guest to reboot.
    pub const SOFT_REBOOTED: &str = "SoftRebooted";
    /// The guest did not hold its file systems still.
    pub const FREEZE_ERROR: &str = "FreezeError";
    /// A backup was not made.
    pub const BACKUP_ERROR: &str = "BackupError";
    /// The guest goes on.
    pub const RESUMED: &str = "Resumed";
    /// The target of a migration is ready.
    pub const PREPARING_TARGET: &str = "PreparingTarget";
    /// The guest is moving.
    pub const MIGRATING: &str = "Migrating";
    /// The guest has moved, or failed to.
    pub const MIGRATED: &str = "Migrated";
    /// The wish could not be carried out.
    pub const SYNC_FAILED: &str = "SyncFailed";
    /// A preset could not be applied.
    pub const PRESET_FAILED: &str = "PresetFailed";
    /// The instance overrides a preset.
    pub const OVERRIDE: &str = "Override";
    /// The guest did not take keys or passwords.
    pub const ACCESS_CREDENTIALS_SYNC_FAILED: &str = "AccessCredentialsSyncFailed";
    /// The guest has taken keys or passwords.
    pub const ACCESS_CREDENTIALS_SYNC_SUCCESS: &str = "AccessCredentialsSyncSuccess";
    /// The operating system of the guest gave up.
    pub const GUEST_PANICKED: &str = "GuestPanicked";
    /// The guest agent does not answer.
    pub const GUEST_AGENT_PING_FAILED: &str = "GuestAgentPingFailed";
    /// A disk of the guest failed.
    pub const IO_ERROR: &str = "IOerror";
    /// The handler on the node no longer answers.
    pub const NODE_UNRESPONSIVE: &str = "NodeUnresponsive";
    /// A volume or interface could not be plugged or unplugged.
    pub const HOTPLUG_FAILED: &str = "HotplugFailed";
    /// A host disk is smaller than asked, but within tolerance.
    pub const TOLERATED_SMALL_PV: &str = "ToleratedSmallPV";
    /// An outdated instance could not be evicted.
    pub const FAILED_EVICT: &str = "FailedEvict";
    /// An outdated instance was evicted.
    pub const SUCCESSFUL_EVICT: &str = "SuccessfulEvict";
    /// A change could not be taken back.
    pub const FAILED_CHANGE_ABORTION: &str = "FailedChangeAbortion";
    /// A change was taken back.
    pub const SUCCESSFUL_CHANGE_ABORTION: &str = "SuccessfulChangeAbortion";
}

/// Data volumes that a machine brings along.
pub mod data_volume {
    /// The machine may not read the source.
    pub const UNAUTHORIZED_CREATE: &str = "UnauthorizedDataVolumeCreate";
    /// It could not be made.
    pub const FAILED_CREATE: &str = "FailedDataVolumeCreate";
    /// It was made.
    pub const SUCCESSFUL_CREATE: &str = "SuccessfulDataVolumeCreate";
    /// The claim to clone does not exist.
    pub const SOURCE_NOT_AVAILABLE: &str = "SourcePVCNotAvailabe";
    /// It could not be filled.
    pub const FAILED_IMPORT: &str = "FailedDataVolumeImport";
}

/// The course of a migration.
pub mod migration {
    /// It ended well.
    pub const SUCCEEDED: &str = "SuccessfulMigration";
    /// It failed.
    pub const FAILED: &str = "FailedMigration";
    /// It was given up.
    pub const ABORT_SUCCEEDED: &str = "SuccessfulAbortMigration";
    /// It could not be given up.
    pub const ABORT_FAILED: &str = "FailedAbortMigration";
    /// No node takes the target pod.
    pub const TARGET_POD_UNSCHEDULABLE: &str = "migrationTargetPodUnschedulable";
    /// It waits for utility volumes to go.
    pub const UTILITY_VOLUMES_PENDING: &str = "UtilityVolumeMigrationPending";
    /// No node has the CPU the guest sees.
    pub const NO_SUITABLE_NODES_FOR_HOST_MODEL: &str = "NoSuitableNodesForHostModelMigration";
    /// It waits after earlier failures.
    pub const BACKOFF: &str = "MigrationBackoff";
    /// A backup gave way to it.
    pub const BACKUP_ABORTED: &str = "BackupAbortedForMigration";
    /// A backup would not give way to it.
    pub const BACKUP_ABORT_FAILED: &str = "BackupAbortFailed";
}

/// Snapshots and restores.
pub mod snapshot {
    /// The content of a snapshot was made.
    pub const CONTENT_CREATED: &str = "SuccessfulVirtualMachineSnapshotContentCreate";
    /// A volume snapshot was made.
    pub const VOLUME_SNAPSHOT_CREATED: &str = "SuccessfulVolumeSnapshotCreate";
    /// A volume snapshot is gone.
    pub const VOLUME_SNAPSHOT_MISSING: &str = "VolumeSnapshotMissing";
    /// A restore is done.
    pub const RESTORE_COMPLETE: &str = "VirtualMachineRestoreComplete";
    /// A restore met an error.
    pub const RESTORE_ERROR: &str = "VirtualMachineRestoreError";
    /// A restore failed.
    pub const RESTORE_FAILED: &str = "Operation failed";
    /// The machine to restore still runs.
    pub const RESTORE_TARGET_NOT_READY: &str = "RestoreTargetNotReady";
    /// A data volume could not be restored.
    pub const RESTORE_DATA_VOLUME_CREATE_ERROR: &str = "RestoreDataVolumeCreateError";
}

/// The course of a clone.
pub mod clone {
    /// A snapshot of the source was asked for.
    pub const SNAPSHOT_CREATED: &str = "SnapshotCreated";
    /// That snapshot is ready.
    pub const SNAPSHOT_READY: &str = "SnapshotReady";
    /// A restore to the target was asked for.
    pub const RESTORE_CREATED: &str = "RestoreCreated";
    /// That restore could not be asked for.
    pub const RESTORE_CREATION_FAILED: &str = "RestoreCreationFailed";
    /// That restore is done.
    pub const RESTORE_READY: &str = "RestoreReady";
    /// The new machine is there.
    pub const TARGET_VM_CREATED: &str = "TargetVMCreated";
    /// Its volumes are bound.
    pub const PVC_BOUND: &str = "PVCBound";
    /// The snapshot went away.
    pub const SNAPSHOT_DELETED: &str = "SnapshotDeleted";
    /// The snapshot lacks a volume.
    pub const SNAPSHOT_CONTENT_INVALID: &str = "SnapshotContentInvalid";
    /// There is no such source.
    pub const SOURCE_DOES_NOT_EXIST: &str = "SourceDoesNotExist";
    /// The source keeps state that cannot be cloned.
    pub const SOURCE_WITH_STATE_INVALID: &str = "SourceVMWithBackendStorageInvalid";
    /// A volume of the source cannot be snapshotted.
    pub const VOLUME_SNAPSHOTS_INVALID: &str = "VMVolumeSnapshotsInvalid";
}

/// The course of an export.
pub mod export {
    /// The exporter pod ended.
    pub const POD_FAILED_OR_COMPLETED: &str = "ExporterPodFailedOrCompleted";
    /// The exporter pod was made.
    pub const POD_CREATED: &str = "ExporterPodCreated";
    /// The volumes are in use, so it waits.
    pub const PAUSED: &str = "ExportPaused";
    /// A secret was made.
    pub const SECRET_CREATED: &str = "SecretCreated";
    /// A service was made.
    pub const SERVICE_CREATED: &str = "ServiceCreated";
    /// The certificate is to be rotated otherwise.
    pub const CERTIFICATE_PARAMETERS_CHANGED: &str = "CertificateParametersChanged";
    /// The manifests to export were put together.
    pub const DATA_MANIFEST_CREATED: &str = "DataManifestCreated";
}

/// The course of a backup.
pub mod backup {
    /// It is being given up.
    pub const ABORTING: &str = "VirtualMachineBackupAborting";
    /// It ended well.
    pub const COMPLETED: &str = "VirtualMachineBackupCompletedSuccessfully";
    /// It ended, with something to note.
    pub const COMPLETED_WITH_WARNING: &str = "VirtualMachineBackupCompletedWithWarning";
    /// It failed.
    pub const FAILED: &str = "VirtualMachineBackupFailed";
}
