//! Condition reasons, by the kind of object that bears the condition.

/// Reasons on a virtual machine.
pub mod vm {
    /// Not ready: there is no instance.
    pub const VMI_NOT_EXISTS: &str = "VMINotExists";
    /// Not ready: the instance does not say.
    pub const VMI_CONDITION_MISSING: &str = "VMIConditionMissing";
    /// The instance could not be made.
    pub const FAILED_CREATE: &str = "FailedCreate";
    /// The instance could not be deleted.
    pub const FAILED_DELETE: &str = "FailedDelete";
    /// The machine or its instance could not be written.
    pub const FAILED_UPDATE_ERROR: &str = "FailedUpdateError";
    /// A volume could not be plugged.
    pub const HOTPLUG_VOLUME_ERROR: &str = "HotPlugVolumeError";
    /// CPUs could not be plugged.
    pub const HOTPLUG_CPU_ERROR: &str = "HotPlugCPUError";
    /// Memory could not be plugged.
    pub const HOTPLUG_MEMORY_ERROR: &str = "HotPlugMemoryError";
    /// A network interface could not be plugged.
    pub const HOTPLUG_NETWORK_INTERFACE_ERROR: &str = "HotPlugNetworkInterfaceError";
    /// Volumes could not be exchanged.
    pub const VOLUMES_UPDATE_ERROR: &str = "VolumesUpdateError";
    /// A new affinity could not be passed on.
    pub const AFFINITY_CHANGE_ERROR: &str = "AffinityChangeError";
    /// New tolerations could not be passed on.
    pub const TOLERATIONS_CHANGE_ERROR: &str = "TolerationsChangeError";
    /// New labels or annotations could not be passed on.
    pub const ANNOTATIONS_LABELS_CHANGE_ERROR: &str = "AnnotationsLabelsChangeError";
    /// The firmware identity could not be kept.
    pub const FIRMWARE_UUID_ERROR: &str = "FirmwareUUIDError";
    /// The instance type does not exist.
    pub const FAILED_FIND_INSTANCETYPE: &str = "FailedFindInstancetype";
    /// The preference does not exist.
    pub const FAILED_FIND_PREFERENCE: &str = "FailedFindPreference";
    /// Memory could not be dumped.
    pub const MEMORY_DUMP_ERROR: &str = "MemoryDumpError";
    /// Something failed without a reason of its own.
    pub const UNSUPPORTED_SYNC_ERROR: &str = "UnsupportedSyncError";
}

/// Reasons on an instance.
pub mod vmi {
    /// Cannot migrate: a disk is not shared.
    pub const DISKS_NOT_LIVE_MIGRATABLE: &str = "DisksNotLiveMigratable";
    /// Cannot migrate: a network interface is tied to its node.
    pub const INTERFACE_NOT_LIVE_MIGRATABLE: &str = "InterfaceNotLiveMigratable";
    /// Cannot migrate: a plugged disk is tied to its node.
    pub const HOTPLUG_NOT_LIVE_MIGRATABLE: &str = "HotplugNotLiveMigratable";
    /// Cannot migrate: the CPU mode is tied to its node.
    pub const CPU_MODE_NOT_LIVE_MIGRATABLE: &str = "CPUModeLiveMigratable";
    /// Cannot migrate: a shared file system is in use.
    pub const VIRTIOFS_NOT_LIVE_MIGRATABLE: &str = "VirtIOFSNotLiveMigratable";
    /// Cannot migrate: a device of the host is in use.
    pub const HOST_DEVICE_NOT_LIVE_MIGRATABLE: &str = "HostDeviceNotLiveMigratable";
    /// Cannot migrate: memory is encrypted by AMD SEV.
    pub const SEV_NOT_LIVE_MIGRATABLE: &str = "SEVNotLiveMigratable";
    /// Cannot migrate: the guest runs in IBM Secure Execution.
    pub const SECURE_EXECUTION_NOT_LIVE_MIGRATABLE: &str = "SecureExecutionNotLiveMigratable";
    /// Cannot migrate: the guest is an Intel trust domain.
    pub const TDX_NOT_LIVE_MIGRATABLE: &str = "TDXNotLiveMigratable";
    /// Cannot migrate: reenlightenment needs a counter frequency.
    pub const NO_TSC_FREQUENCY_NOT_LIVE_MIGRATABLE: &str = "NoTSCFrequencyNotLiveMigratable";
    /// Cannot migrate: Hyper-V features are those of the host.
    pub const HYPERV_PASSTHROUGH_NOT_LIVE_MIGRATABLE: &str = "HypervPassthroughNotLiveMigratable";
    /// Cannot migrate: a SCSI reservation is held.
    pub const PERSISTENT_RESERVATION_NOT_LIVE_MIGRATABLE: &str = "PersistentReservationNotLiveMigratable";
    /// Cannot migrate to another cluster; the message says why.
    pub const DECENTRALIZED_NOT_LIVE_MIGRATABLE: &str = "DecentralizedNotLiveMigratable";
    /// Cannot migrate; the message says why.
    pub const NOT_MIGRATABLE: &str = "NotMigratable";
    /// A data volume is not ready.
    pub const NOT_ALL_DVS_READY: &str = "NotAllDVsReady";
    /// Every data volume is ready.
    pub const ALL_DVS_READY: &str = "AllDVsReady";
    /// The exchange of volumes was taken back.
    pub const VOLUMES_CHANGE_CANCELLATION: &str = "VolumesChangeCancellation";
    /// A change of the running machine needs a migration.
    pub const AUTO_MIGRATION_DUE_TO_LIVE_UPDATE: &str = "AutoMigrationDueToLiveUpdate";
    /// That migration is yet to come.
    pub const AUTO_MIGRATION_PENDING: &str = "AutoMigrationPending";
    /// The eviction of the pod was turned into a migration.
    pub const EVICTION_REQUESTED: &str = "EvictionRequested";
    /// Not ready: the pod is on its way out.
    pub const POD_TERMINATING: &str = "PodTerminating";
    /// Not ready: there is no pod.
    pub const POD_NOT_EXISTS: &str = "PodNotExists";
    /// Not ready: the pod does not say.
    pub const POD_CONDITION_MISSING: &str = "PodConditionMissing";
    /// Not ready: the guest does not run.
    pub const GUEST_NOT_RUNNING: &str = "GuestNotRunning";
    /// The gate for container path volumes is closed.
    pub const CONTAINER_PATH_VOLUMES_DISABLED: &str = "ContainerPathVolumesDisabled";
    /// The pod lacks containers for container path volumes.
    pub const MISSING_VIRTIOFS_CONTAINERS: &str = "MissingVirtiofsContainers";
    /// No node takes the pod.
    pub const UNSCHEDULABLE: &str = "Unschedulable";
    /// The user paused the guest.
    pub const PAUSED_BY_USER: &str = "PausedByUser";
    /// The guest is paused so that its migration can end.
    pub const PAUSED_BY_MIGRATION_MONITOR: &str = "PausedByMigrationMonitor";
    /// The guest is paused because a disk failed.
    pub const PAUSED_IO_ERROR: &str = "PausedIOError";
    /// The guest is of another architecture than its node.
    pub const CROSS_ARCHITECTURE_EMULATION: &str = "CrossArchitectureEmulation";
    /// The guest did not take the memory.
    pub const MEMORY_HOTPLUG_FAILED: &str = "Memory Hotplug Failed";
    /// The node could not carry out the wish.
    pub const DOMAIN_SYNC_FAILED: &str = "Synchronizing with the Domain failed.";
    /// A pod could not be made.
    pub const FAILED_CREATE: &str = "FailedCreate";
    /// The pod did not pass a last check before it was made.
    pub const FAILED_CREATE_VALIDATION: &str = "FailedCreateValidation";
    /// A pod could not be deleted.
    pub const FAILED_DELETE: &str = "FailedDelete";
    /// The pod could not be handed over to its node.
    pub const FAILED_HAND_OVER: &str = "FailedHandOver";
    /// The pod did not get resources of its own.
    pub const FAILED_GUARANTEE_RESOURCES: &str = "FailedGuaranteeResources";
    /// The counter frequencies of the cluster are not known.
    pub const FAILED_GATHERING_TOPOLOGY_HINTS: &str = "FailedGatherhingClusterTopologyHints";
    /// The state volume could not be made.
    pub const FAILED_BACKEND_STORAGE_CREATE: &str = "FailedBackendStorageCreate";
    /// The state volume could not be looked at.
    pub const FAILED_BACKEND_STORAGE_PROBE: &str = "FailedBackendStorageProbe";
    /// The state volume is not ready.
    pub const BACKEND_STORAGE_NOT_READY: &str = "BackendStorageNotReady";
    /// A data volume failed.
    pub const FAILED_DATA_VOLUME_IMPORT: &str = "FailedDataVolumeImport";
    /// A claim does not exist.
    pub const FAILED_PVC_NOT_FOUND: &str = "FailedPvcNotFound";
    /// Plugged volumes could not be brought up to date.
    pub const FAILED_HOTPLUG_SYNC: &str = "FailedHotplugSync";
    /// The pod could not be changed.
    pub const FAILED_POD_PATCH: &str = "FailedPodPatch";
    /// The pod that holds a plugged volume is gone.
    pub const MISSING_ATTACHMENT_POD: &str = "MissingAttachmentPod";
    /// The claim of a plugged volume is not ready.
    pub const PVC_NOT_READY: &str = "PVCNotReady";
    /// An image could not be pulled.
    pub const ERR_IMAGE_PULL: &str = "ErrImagePull";
    /// An image could not be pulled, and is tried again later.
    pub const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";
    /// The handler on the node no longer answers.
    pub const NODE_UNRESPONSIVE: &str = "NodeUnresponsive";
    /// A container of the launcher pod failed before the guest could start.
    pub const CONTAINER_FAILED: &str = "ContainerFailed";
    /// The launcher ended without a word of its guest.
    pub const LAUNCHER_ENDED: &str = "LauncherEnded";
    /// The launcher does not answer, or never did.
    pub const LAUNCHER_UNRESPONSIVE: &str = "LauncherUnresponsive";
    /// The launcher speaks another version than its node.
    pub const LAUNCHER_NOT_UNDERSTOOD: &str = "LauncherNotUnderstood";
}

/// Reasons on the volumes of an instance.
pub mod volume {
    /// The guest can use the volume.
    pub const READY: &str = "VolumeReady";
    /// The launcher pod has the volume.
    pub const MOUNTED: &str = "VolumeMountedToPod";
    /// The launcher pod no longer has the volume.
    pub const UNMOUNTED: &str = "VolumeUnMountedFromPod";
    /// The guest no longer has the volume.
    pub const UNPLUGGED: &str = "VolumeUnplugged";
}

/// Reasons on launcher pods.
pub mod pod {
    /// The guest is paused.
    pub const PAUSED: &str = "Paused";
    /// The guest is not paused.
    pub const NOT_PAUSED: &str = "NotPaused";
}

/// Reasons on a migration.
pub mod migration {
    /// A backup is under way.
    pub const BACKUP_IN_PROGRESS: &str = "BackupInProgress";
    /// Utility volumes are still attached.
    pub const UTILITY_VOLUMES_PRESENT: &str = "UtilityVolumesPresent";
}

/// Reasons on a replica set of instances.
pub mod replica_set {
    /// The user paused it.
    pub const PAUSED: &str = "Paused";
    /// An instance could not be made.
    pub const FAILED_CREATE: &str = "FailedCreate";
    /// An instance could not be deleted.
    pub const FAILED_DELETE: &str = "FailedDelete";
}

/// Reasons on a pool.
pub mod pool {
    /// Machines could not be added.
    pub const FAILED_SCALE_OUT: &str = "FailedScaleOut";
    /// Machines could not be taken away.
    pub const FAILED_SCALE_IN: &str = "FailedScaleIn";
    /// Machines could not be changed.
    pub const FAILED_UPDATE: &str = "FailedUpdate";
    /// Old revisions could not be deleted.
    pub const FAILED_REVISION_PRUNING: &str = "FailedRevisionPruning";
    /// The user paused it.
    pub const PAUSED: &str = "SuccessfulPaused";
}

/// Reasons on the installation.
pub mod kubevirt {
    /// There is another installation.
    pub const EXISTING_DEPLOYMENT: &str = "ExistingDeployment";
    /// Installing failed.
    pub const DEPLOYMENT_FAILED: &str = "DeploymentFailed";
    /// Removing failed.
    pub const DELETION_FAILED: &str = "DeletionFailed";
    /// Everything has been installed.
    pub const ALL_RESOURCES_CREATED: &str = "AllResourcesCreated";
    /// Every component is ready.
    pub const ALL_COMPONENTS_READY: &str = "AllComponentsReady";
    /// It is being installed.
    pub const DEPLOYMENT_IN_PROGRESS: &str = "DeploymentInProgress";
    /// It is being updated.
    pub const UPDATE_IN_PROGRESS: &str = "UpdateInProgress";
    /// It is being removed.
    pub const DELETION_IN_PROGRESS: &str = "DeletionInProgress";
}

/// Reasons on a snapshot; they are read by people.
pub mod snapshot {
    /// It can be restored.
    pub const READY: &str = "Ready";
    /// It cannot be restored yet.
    pub const NOT_READY: &str = "Not ready";
    /// It is done.
    pub const OPERATION_COMPLETE: &str = "Operation complete";
    /// It failed.
    pub const OPERATION_FAILED: &str = "Operation failed";
    /// There is no such machine.
    pub const SOURCE_DOES_NOT_EXIST: &str = "Source does not exist";
    /// It is being deleted.
    pub const DELETING: &str = "VM snapshot is deleting";
    /// It stopped at an error.
    pub const IN_ERROR_STATE: &str = "In error state";
}

/// Reasons on a restore; they are read by people.
pub mod restore {
    /// It has just begun.
    pub const INITIALIZING: &str = "Initializing VirtualMachineRestore";
    /// Volumes are being made.
    pub const CREATING_CLAIMS: &str = "Creating new PVCs";
    /// Volumes are not there yet.
    pub const WAITING_FOR_CLAIMS: &str = "Waiting for new PVCs";
    /// The machine is being changed.
    pub const UPDATING_TARGET: &str = "Updating target spec";
    /// The machine has not been changed yet.
    pub const WAITING_FOR_TARGET: &str = "Waiting for target update";
    /// It is done.
    pub const OPERATION_COMPLETE: &str = "Operation complete";
    /// It is being deleted.
    pub const DELETING: &str = "VM restore is deleting";
}

/// Reasons on a clone; they are read by people.
pub mod clone {
    /// It waits for its source.
    pub const PENDING: &str = "Pending";
    /// It failed.
    pub const FAILED: &str = "Failed";
    /// It is under way.
    pub const STILL_PROCESSING: &str = "Still processing";
    /// It is done.
    pub const READY: &str = "Ready";
}

/// Reasons on an export.
pub mod export {
    /// It has just begun.
    pub const INITIALIZING: &str = "Initializing";
    /// Nothing is known yet.
    pub const UNKNOWN: &str = "Unknown";
    /// The volumes are in use.
    pub const IN_USE: &str = "InUse";
    /// There is no such claim.
    pub const PVC_NOT_FOUND: &str = "PVCNotFound";
    /// The claim is bound.
    pub const PVC_BOUND: &str = "PVCBound";
    /// The claim is not bound.
    pub const PVC_PENDING: &str = "PVCPending";
    /// The exporter pod is starting.
    pub const POD_PENDING: &str = "PodPending";
    /// The exporter pod serves.
    pub const POD_READY: &str = "PodReady";
    /// The exporter pod is done.
    pub const POD_COMPLETED: &str = "PodCompleted";
    /// There is no such machine.
    pub const VM_NOT_FOUND: &str = "VMNotFound";
    /// The machine has nothing to export.
    pub const VM_NO_VOLUMES: &str = "VMNoVolumes";
    /// The volumes are still being filled.
    pub const VOLUMES_NOT_POPULATED: &str = "VolumesNotPopulated";
    /// There is no such snapshot.
    pub const SNAPSHOT_NOT_FOUND: &str = "VMSnapshotNotFound";
    /// The snapshot has nothing to export.
    pub const SNAPSHOT_NO_VOLUMES: &str = "VMSnapshotNoVolumes";
    /// Volumes are still being made from the snapshot.
    pub const NOT_ALL_PVCS_CREATED: &str = "NotAllPVCsCreated";
    /// The layers of the image are known.
    pub const DIGESTS_COMPUTED: &str = "DigestsComputed";
    /// The layers of the image are being computed.
    pub const DIGESTS_PENDING: &str = "DigestsPending";
    /// The backup can be read.
    pub const BACKUP_READY: &str = "VirtualMachineBackupReady";
    /// There is no such template.
    pub const TEMPLATE_NOT_FOUND: &str = "VMTemplateNotFound";
    /// The template is not ready.
    pub const TEMPLATE_NOT_READY: &str = "VMTemplateNotReady";
}

/// Reasons on a backup.
pub mod backup {
    /// It is being prepared.
    pub const INITIALIZING: &str = "Initializing";
    /// It has begun.
    pub const INITIATED: &str = "Initiated";
    /// Its export is being prepared.
    pub const PREPARING_EXPORT: &str = "PreparingExport";
    /// Its export has begun.
    pub const EXPORT_INITIATED: &str = "ExportInitiated";
    /// Its export can be pulled.
    pub const EXPORT_READY: &str = "ExportReady";
    /// It is being given up.
    pub const ABORTING: &str = "Aborting";
    /// It ended well.
    pub const COMPLETED: &str = "Completed";
    /// It ended, with something to note.
    pub const COMPLETED_WITH_WARNING: &str = "CompletedWithWarning";
    /// It failed.
    pub const FAILED: &str = "Failed";
    /// The file systems were still.
    pub const QUIESCE_SUCCEEDED: &str = "QuiesceSucceeded";
    /// The file systems could not be stilled.
    pub const QUIESCE_FAILED: &str = "QuiesceFailed";
    /// The file systems were not asked to be still.
    pub const QUIESCE_SKIPPED: &str = "QuiesceSkipped";
    /// The machine is gone.
    pub const SOURCE_LOST: &str = "SourceLost";
    /// The machine is not fit for it.
    pub const SOURCE_UNHEALTHY: &str = "SourceUnhealthy";
    /// It was deleted before it began.
    pub const DELETED_DURING_INIT: &str = "DeletedDuringInit";
}

/// Reasons on a template and on a request for one.
pub mod template {
    /// It is done.
    pub const RECONCILED: &str = "Reconciled";
    /// It is under way.
    pub const RECONCILING: &str = "Reconciling";
    /// It does not make sense.
    pub const INVALID_CONFIGURATION: &str = "InvalidConfiguration";
    /// It failed.
    pub const FAILED: &str = "Failed";
    /// It waits for something.
    pub const WAITING: &str = "Waiting";
}
