//! What is known of a running instance.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::backup::BackupVolumeInfo;
use crate::condition::Condition;
use crate::open_enum::open_enum;
use crate::vmi::firmware::Machine;
use crate::vmi::migration_state::MigrationState;

/// A volume being moved from one claim to another, with both ends described.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageMigratedVolumeInfo {
    /// Name of the VM volume whose storage is being moved.
    pub volume_name: String,
    /// Claim the data is copied from.
    #[serde(rename = "sourcePVCInfo")]
    pub source_pvc_info: Option<PersistentVolumeClaimInfo>,
    /// Claim the data is copied to.
    #[serde(rename = "destinationPVCInfo")]
    pub destination_pvc_info: Option<PersistentVolumeClaimInfo>,
}

/// Snapshot of a PVC's properties, recorded so the node side need not read the claim itself.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeClaimInfo {
    /// Name of the PVC, in the same namespace as the VM.
    pub claim_name: Option<String>,
    /// Access modes of the PVC; ReadWriteMany is what makes shared-storage live migration possible.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub access_modes: Option<Vec<String>>,
    /// `Block` or `Filesystem`; unset means Filesystem.
    pub volume_mode: Option<String>,
    /// Size the storage actually provided, taken from the PVC's status.
    pub capacity: Option<BTreeMap<String, Quantity>>,
    /// Size asked for in the PVC's spec; may be less than the capacity.
    pub requests: Option<BTreeMap<String, Quantity>>,
    /// True if the disk's space was fully allocated up front; such images are not made sparse.
    pub preallocated: Option<bool>,
    /// Fraction of the volume kept for filesystem metadata, e.g. `0.055`; the disk never grows into it.
    #[schemars(extend("pattern" = r"^(0(?:\.\d{1,3})?|1)$"))]
    pub filesystem_overhead: Option<String>,
}

/// Whether changed blocks are being tracked for incremental backup, and any backup in progress.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedBlockTrackingStatus {
    /// Current tracking state; incremental backups need `Enabled`.
    pub state: ChangedBlockTrackingState,
    /// Progress of the running or most recent backup; unset if there is none to report.
    #[schemars(extend("nullable" = true))]
    pub backup_status: Option<BackupStatus>,
}

/// Progress and outcome of a backup of a running VM.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// Name of the backup object this progress belongs to.
    pub backup_name: Option<String>,
    /// When the backup began.
    pub start_timestamp: Option<Time>,
    /// When the backup finished, successfully or not; unset while it runs.
    pub end_timestamp: Option<Time>,
    /// True once the backup has ended; check `failed` to learn whether it worked.
    pub completed: Option<bool>,
    /// True if the backup did not succeed; `backupMsg` says why.
    pub failed: Option<bool>,
    /// Extra detail for humans, such as why the backup failed or a thaw problem.
    pub backup_msg: Option<String>,
    /// Checkpoint taken with this backup; the next incremental backup starts from it.
    pub checkpoint_name: Option<String>,
    /// Volumes that the backup covers.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub volumes: Option<Vec<BackupVolumeInfo>>,
    /// Outcome of freezing guest filesystems: `Succeeded`, `Failed` or `Skipped`.
    pub quiesce_status: Option<String>,
}

/// Observed state of a running VM instance; written by KubeVirt and may lag behind reality.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineInstanceStatus {
    /// Node the guest runs on now; empty until scheduled, and changes after live migration.
    pub node_name: Option<String>,
    /// Short CamelCase word explaining the current phase, e.g. `NodeUnresponsive`.
    pub reason: Option<String>,
    /// Detailed health flags such as Ready, LiveMigratable, Paused and AgentConnected.
    pub conditions: Option<Vec<Condition>>,
    /// Overall lifecycle step; Succeeded and Failed are final.
    pub phase: Option<VmiPhase>,
    /// When each phase was first entered, useful for measuring start-up time.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub phase_transition_timestamps: Option<Vec<PhaseTransition>>,
    /// Guest network interfaces with their addresses; fuller when a guest agent is running.
    pub interfaces: Option<Vec<InterfaceStatus>>,
    /// Guest operating system details; empty without a guest agent.
    #[serde(rename = "guestOSInfo")]
    pub guest_os_info: Option<GuestOsInfo>,
    /// Progress or outcome of the current or latest live migration.
    pub migration_state: Option<MigrationState>,
    /// How this guest would migrate: `LiveMigration` (shared storage) or `BlockMigration` (copies disks).
    pub migration_method: Option<VmiMigrationMethod>,
    /// Channel used for migration data; `Unix` is the only value.
    pub migration_transport: Option<MigrationTransport>,
    /// Kubernetes QoS class of the launcher pod: `Guaranteed`, `Burstable` or `BestEffort`.
    pub qos_class: Option<String>,
    /// Launcher image the guest runs in now; differs from the installed one until the guest is updated.
    pub launcher_container_image_version: Option<String>,
    /// Node the guest has to leave because of a drain or eviction; set by KubeVirt only.
    pub evacuation_node_name: Option<String>,
    /// Launcher pods by UID with their node names; there are two while a migration runs.
    pub active_pods: Option<BTreeMap<String, String>>,
    /// State of every volume, including hotplugged ones and memory dumps.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub volume_status: Option<Vec<VolumeStatus>>,
    /// Checksums of the externally supplied kernel and initrd, when kernel boot is used.
    pub kernel_boot_status: Option<KernelBootStatus>,
    /// `frozen` after a filesystem freeze was requested, otherwise empty; the guest itself is not checked.
    pub fs_freeze_status: Option<String>,
    /// Host properties the guest relies on, which limit the nodes it can move to.
    pub topology_hints: Option<TopologyHints>,
    /// ControllerRevision holding the VM spec this instance was started from.
    pub virtual_machine_revision_name: Option<String>,
    /// User ID the launcher runs as: 107 when non-root, 0 for root.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub runtime_user: Option<i64>,
    /// Context ID for host-to-guest VSOCK connections; set only when VSOCK is enabled.
    #[serde(rename = "VSOCKCID")]
    #[schemars(extend("minimum" = 0, "maximum" = 4294967295u32))]
    pub vsockcid: Option<i64>,
    /// SELinux context the launcher pod runs under, or `none` where SELinux is off.
    pub selinux_context: Option<String>,
    /// Exact machine type in use, after an alias such as `q35` was resolved to a version.
    pub machine: Option<Machine>,
    /// CPU layout the guest has now; differs from the spec while CPU hotplug is under way.
    #[serde(rename = "currentCPUTopology")]
    pub current_cpu_topology: Option<CpuTopology>,
    /// Guest memory at boot, now and requested; tells how far memory hotplug has got.
    pub memory: Option<MemoryStatus>,
    /// Volumes being moved to other claims; empty unless a volume migration is in progress.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub migrated_volumes: Option<Vec<StorageMigratedVolumeInfo>>,
    /// State of changed-block tracking and of any backup; unset if never in use.
    #[schemars(extend("nullable" = true))]
    pub changed_block_tracking: Option<ChangedBlockTrackingStatus>,
}

/// A phase of the VM instance and the moment it was entered.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhaseTransition {
    /// Phase that was entered.
    pub phase: Option<VmiPhase>,
    /// When the phase was entered.
    pub phase_transition_timestamp: Option<Time>,
}

/// Observed state of one network interface of the guest.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceStatus {
    /// Primary IP address; same as the first entry of `ipAddresses`.
    pub ip_address: Option<String>,
    /// MAC address the interface has in the guest.
    pub mac: Option<String>,
    /// Network name from the spec; empty for interfaces only the guest knows, such as a bridge it made.
    pub name: Option<String>,
    /// All IPv4 and IPv6 addresses known for the interface.
    pub ip_addresses: Option<Vec<String>>,
    /// Name of the matching interface in the launcher pod, e.g. `eth0`.
    pub pod_interface_name: Option<String>,
    /// Name the guest gave the interface, e.g. `eth0`; needs a guest agent.
    pub interface_name: Option<String>,
    /// Where the data came from, comma-separated: `domain`, `guest-agent`, `multus-status`.
    pub info_source: Option<String>,
    /// Number of queues the interface was given when multi-queue networking is on.
    pub queue_count: Option<i32>,
    /// Whether the virtual cable is plugged in: `up` or `down`.
    pub link_state: Option<String>,
}

/// Operating system details reported by the guest agent.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuestOsInfo {
    /// Operating system name, e.g. `Fedora Linux`.
    pub name: Option<String>,
    /// Kernel release, as `uname -r` prints it.
    pub kernel_release: Option<String>,
    /// Operating system version text, e.g. `40 (Cloud Edition)`.
    pub version: Option<String>,
    /// Full operating system name with version, meant for display.
    pub pretty_name: Option<String>,
    /// Short machine-readable version, e.g. `40`.
    pub version_id: Option<String>,
    /// Kernel build string, as `uname -v` prints it.
    pub kernel_version: Option<String>,
    /// Guest hardware architecture, e.g. `x86_64`.
    pub machine: Option<String>,
    /// Short operating system identifier, e.g. `fedora` or `mswindows`.
    pub id: Option<String>,
}

/// Observed state of one volume of the VM instance.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeStatus {
    /// Name of the volume, as in the spec.
    pub name: String,
    /// Device name on the VM's disk bus, e.g. `vda`; empty until the disk is attached.
    pub target: String,
    /// How far attaching, detaching or dumping to the volume has got.
    pub phase: Option<VolumePhase>,
    /// Short CamelCase word for why the volume is in this phase.
    pub reason: Option<String>,
    /// Longer explanation of the current phase.
    pub message: Option<String>,
    /// Properties of the claim behind the volume; unset if there is no PVC.
    pub persistent_volume_claim_info: Option<PersistentVolumeClaimInfo>,
    /// Attachment pod details; present only for hotplugged volumes.
    pub hotplug_volume: Option<HotplugVolumeStatus>,
    /// Size of the volume in bytes.
    pub size: Option<i64>,
    /// Progress of the dump; present only for memory dump volumes.
    pub memory_dump_volume: Option<DomainMemoryDumpInfo>,
    /// Checksum of the image; present only for container disks.
    pub container_disk_volume: Option<ContainerDiskInfo>,
}

/// The helper pod through which a hotplugged volume reaches the node.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HotplugVolumeStatus {
    /// Name of the helper pod that holds the volume on the node.
    pub attach_pod_name: Option<String>,
    /// UID of that helper pod.
    #[serde(rename = "attachPodUID")]
    pub attach_pod_uid: Option<String>,
}

/// Timing and location of a guest memory dump.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DomainMemoryDumpInfo {
    /// When the dump began.
    pub start_timestamp: Option<Time>,
    /// When the dump finished; unset while it runs.
    pub end_timestamp: Option<Time>,
    /// PVC that receives the dump.
    pub claim_name: Option<String>,
    /// File name of the dump inside that PVC.
    pub target_file_name: Option<String>,
}

/// Fingerprint of a container disk, so that a migration target can confirm it has the same image.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerDiskInfo {
    /// 32-bit checksum of the disk image in the container.
    #[schemars(extend("minimum" = 0, "maximum" = 4294967295u32))]
    pub checksum: Option<i64>,
}

/// Fingerprints of the kernel boot files, so that a migration target can confirm it has the same ones.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KernelBootStatus {
    /// Fingerprint of the kernel; unset if none is supplied.
    pub kernel_info: Option<KernelInfo>,
    /// Fingerprint of the initrd; unset if none is supplied.
    pub initrd_info: Option<InitrdInfo>,
}

/// Fingerprint of the kernel image.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KernelInfo {
    /// 32-bit checksum of the kernel image.
    #[schemars(extend("minimum" = 0, "maximum" = 4294967295u32))]
    pub checksum: Option<i64>,
}

/// Fingerprint of the initrd.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitrdInfo {
    /// 32-bit checksum of the initrd.
    #[schemars(extend("minimum" = 0, "maximum" = 4294967295u32))]
    pub checksum: Option<i64>,
}

/// Host properties that any node taking over the guest must match.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyHints {
    /// Time stamp counter frequency, in Hz, that the guest is pinned to.
    pub tsc_frequency: Option<i64>,
}

/// CPU layout of the guest; vCPUs are sockets times cores times threads.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuTopology {
    /// Cores per socket; at least 1.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub cores: Option<i32>,
    /// Sockets; at least 1, and what CPU hotplug adds.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub sockets: Option<i32>,
    /// Threads per core; at least 1.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub threads: Option<i32>,
}

/// Guest memory amounts, past, present and wanted.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStatus {
    /// Memory the guest started with.
    pub guest_at_boot: Option<Quantity>,
    /// Memory the guest has now.
    pub guest_current: Option<Quantity>,
    /// Memory last asked for; differs from `guestCurrent` until hotplug completes.
    pub guest_requested: Option<Quantity>,
    /// Memory added to the launcher pod on top of the guest's, for the hypervisor and helpers.
    pub memory_overhead: Option<Quantity>,
}

open_enum! {
    /// Tracking state; `PendingRestart` means the VM must be restarted before it takes effect.
    pub enum ChangedBlockTrackingState {
        PendingRestart = "PendingRestart",
        Initializing = "Initializing",
        Enabled = "Enabled",
        Disabled = "Disabled",
        IncrementalBackupFeatureGateDisabled = "IncrementalBackupFeatureGateDisabled",
    }
}

open_enum! {
    /// Lifecycle step of a VM instance; Succeeded and Failed are final, Unknown means contact with the node
    /// was lost.
    pub enum VmiPhase {
        Pending = "Pending",
        Scheduling = "Scheduling",
        Scheduled = "Scheduled",
        Running = "Running",
        Succeeded = "Succeeded",
        Failed = "Failed",
        WaitingForSync = "WaitingForSync",
        Unknown = "Unknown",
    }
}

open_enum! {
    /// Way to migrate: `LiveMigration` moves memory only, `BlockMigration` also copies local disks.
    pub enum VmiMigrationMethod {
        BlockMigration = "BlockMigration",
        LiveMigration = "LiveMigration",
    }
}

open_enum! {
    /// Channel for migration traffic; `Unix` is a proxied Unix socket.
    pub enum MigrationTransport {
        Unix = "Unix",
    }
}

open_enum! {
    /// Step of attaching a volume (Pending to Ready), detaching it, or dumping memory to it.
    pub enum VolumePhase {
        Pending = "Pending",
        Bound = "Bound",
        AttachedToNode = "AttachedToNode",
        MountedToPod = "MountedToPod",
        Ready = "Ready",
        Detaching = "Detaching",
        UnMountedFromPod = "UnMountedFromPod",
        MemoryDumpCompleted = "MemoryDumpCompleted",
        MemoryDumpInProgress = "MemoryDumpInProgress",
        MemoryDumpFailed = "MemoryDumpFailed",
    }
}
