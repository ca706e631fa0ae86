//! Condition types, by the kind of object that bears them.

/// Conditions of a virtual machine; those of its instance are copied beside them.
pub mod vm {
    /// The controller could not do what the machine asks for.
    pub const FAILURE: &str = "Failure";
    /// The instance is ready, or why it is not.
    pub const READY: &str = "Ready";
    /// The guest is paused.
    pub const PAUSED: &str = "Paused";
    /// A change takes effect only after a restart.
    pub const RESTART_REQUIRED: &str = "RestartRequired";
    /// A failed change of volumes needs the user's hand.
    pub const MANUAL_RECOVERY_REQUIRED: &str = "ManualRecoveryRequired";
}

/// Conditions of an instance.
pub mod vmi {
    /// Volumes are being made ready for the first pod.
    pub const PROVISIONING: &str = "Provisioning";
    /// The launcher pod and the guest serve requests.
    pub const READY: &str = "Ready";
    /// False while the wish cannot be carried out.
    pub const SYNCHRONIZED: &str = "Synchronized";
    /// The guest is paused.
    pub const PAUSED: &str = "Paused";
    /// The guest agent answers.
    pub const AGENT_CONNECTED: &str = "AgentConnected";
    /// The guest has the keys and passwords it should have.
    pub const ACCESS_CREDENTIALS_SYNCHRONIZED: &str = "AccessCredentialsSynchronized";
    /// The guest agent lacks commands that are needed.
    pub const AGENT_VERSION_NOT_SUPPORTED: &str = "AgentVersionNotSupported";
    /// The guest can move to another node, or why not.
    pub const LIVE_MIGRATABLE: &str = "LiveMigratable";
    /// The guest can move together with its disks, or why not.
    pub const STORAGE_LIVE_MIGRATABLE: &str = "StorageLiveMigratable";
    /// CPUs are being plugged or unplugged.
    pub const HOT_VCPU_CHANGE: &str = "HotVCPUChange";
    /// Memory is being plugged or unplugged.
    pub const HOT_MEMORY_CHANGE: &str = "HotMemoryChange";
    /// Volumes are being exchanged.
    pub const VOLUMES_CHANGE: &str = "VolumesChange";
    /// All data volumes are ready, or not yet.
    pub const DATA_VOLUMES_READY: &str = "DataVolumesReady";
    /// A migration between clusters went wrong.
    pub const DECENTRALIZED_LIVE_MIGRATION_FAILURE: &str = "DecentralizedLiveMigrationFailure";
    /// A change takes effect only by migrating, which happens by itself.
    pub const MIGRATION_REQUIRED: &str = "MigrationRequired";
    /// Someone asked to move the guest off its node.
    pub const EVICTION_REQUESTED: &str = "EvictionRequested";
    /// The guest runs without hardware virtualization.
    pub const SOFTWARE_EMULATION: &str = "SoftwareEmulation";
}

/// Conditions of a migration.
pub mod migration {
    /// Someone asked to give the migration up.
    pub const ABORT_REQUESTED: &str = "migrationAbortRequested";
    /// The namespace has no room for the target pod.
    pub const REJECTED_BY_RESOURCE_QUOTA: &str = "migrationRejectedByResourceQuota";
    /// It waits for utility volumes to go.
    pub const BLOCKED_BY_UTILITY_VOLUMES: &str = "migrationBlockedByUtilityVolumes";
    /// It waits for a backup to end.
    pub const BLOCKED_BY_BACKUP: &str = "migrationBlockedByBackup";
    /// A migration between clusters cannot go on.
    pub const DECENTRALIZED_BLOCKED: &str = "decentralizedMigrationBlocked";
}

/// Conditions that KubeVirt adds to launcher pods.
pub mod pod {
    /// Readiness gate that is false while the guest is paused.
    pub const VIRTUAL_MACHINE_UNPAUSED: &str = "kubevirt.io/virtual-machine-unpaused";
}

/// Conditions of a replica set of instances.
pub mod replica_set {
    /// An instance could not be made or deleted.
    pub const REPLICA_FAILURE: &str = "ReplicaFailure";
    /// The replica set is paused.
    pub const REPLICA_PAUSED: &str = "ReplicaPaused";
}

/// Conditions of a pool.
pub mod pool {
    /// A machine could not be made, changed or deleted.
    pub const REPLICA_FAILURE: &str = "ReplicaFailure";
    /// The pool is paused.
    pub const REPLICA_PAUSED: &str = "ReplicaPaused";
}

/// Conditions of the installation.
pub mod kubevirt {
    /// False when installing or removing failed.
    pub const SYNCHRONIZED: &str = "Synchronized";
    /// Everything has been installed.
    pub const CREATED: &str = "Created";
    /// Machines can be run.
    pub const AVAILABLE: &str = "Available";
    /// The operator is at work.
    pub const PROGRESSING: &str = "Progressing";
    /// Something does not work as it should.
    pub const DEGRADED: &str = "Degraded";
}

/// Conditions of a snapshot and of a restore.
pub mod snapshot {
    /// It is complete.
    pub const READY: &str = "Ready";
    /// It is under way.
    pub const PROGRESSING: &str = "Progressing";
    /// It failed.
    pub const FAILURE: &str = "Failure";
}

/// Conditions of a clone.
pub mod clone {
    /// The new machine is there.
    pub const READY: &str = "Ready";
    /// It is under way.
    pub const PROGRESSING: &str = "Progressing";
}

/// Conditions of an export.
pub mod export {
    /// The links can be used.
    pub const READY: &str = "Ready";
    /// The claim to export is bound.
    pub const PVC_READY: &str = "PVCReady";
    /// Volumes have been made from the snapshot.
    pub const VOLUMES_CREATED: &str = "VolumesCreated";
    /// The export can be pulled as an image.
    pub const OCI_READY: &str = "OCIReady";
}

/// Conditions of a backup.
pub mod backup {
    /// It ended well.
    pub const COMPLETE: &str = "Complete";
    /// It failed.
    pub const FAILED: &str = "Failed";
    /// It is under way.
    pub const PROGRESSING: &str = "Progressing";
    /// The file systems of the guest were still when it began.
    pub const QUIESCED: &str = "Quiesced";
}

/// Conditions of a template and of a request for one.
pub mod template {
    /// It can be used.
    pub const READY: &str = "Ready";
    /// It is under way.
    pub const PROGRESSING: &str = "Progressing";
}

/// Conditions of a data volume, which the importer sets.
pub mod data_volume {
    /// The disk is filled.
    pub const READY: &str = "Ready";
    /// The claim is bound.
    pub const BOUND: &str = "Bound";
    /// The disk is being filled.
    pub const RUNNING: &str = "Running";
}
