//! The state of a live migration, as both ends report it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::open_enum::open_enum;

/// Progress and outcome of the instance's current or most recent live migration.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationState {
    /// When this migration started moving the guest.
    #[schemars(extend("nullable" = true))]
    pub start_timestamp: Option<Time>,
    /// When this migration finished, whether it succeeded or not; unset while it runs.
    #[schemars(extend("nullable" = true))]
    pub end_timestamp: Option<Time>,
    /// When the guest was first seen running on the destination node.
    pub target_node_domain_ready_timestamp: Option<Time>,
    /// True once the destination node has noticed the incoming guest start there.
    pub target_node_domain_detected: Option<bool>,
    /// IP address of the destination node to which the source sends the migration data.
    pub target_node_address: Option<String>,
    /// Listening ports on the destination node, each mapped to the migration channel it serves.
    #[schemars(extend("additionalProperties" = { "type": "integer" }))]
    pub target_direct_migration_node_ports: Option<BTreeMap<String, i64>>,
    /// Name of the node receiving the guest.
    pub target_node: Option<String>,
    /// Name of the virt-launcher pod receiving the guest.
    pub target_pod: Option<String>,
    /// UID of the destination helper pod that holds hotplugged volumes; empty if there are none.
    #[serde(rename = "targetAttachmentPodUID")]
    pub target_attachment_pod_uid: Option<String>,
    /// Name of the node the guest is leaving.
    pub source_node: Option<String>,
    /// Name of the virt-launcher pod the guest is leaving.
    pub source_pod: Option<String>,
    /// True once the migration is over; check `failed` to learn how it went.
    pub completed: Option<bool>,
    /// True if the migration did not succeed; `failureReason` says why.
    pub failed: Option<bool>,
    /// True if someone asked for this migration to be cancelled.
    pub abort_requested: Option<bool>,
    /// How the cancellation is going: `Aborting`, `Succeeded` or `Failed`.
    pub abort_status: Option<MigrationAbortStatus>,
    /// Human-readable explanation of a failed migration.
    pub failure_reason: Option<String>,
    /// UID of the VirtualMachineInstanceMigration object that drives this migration.
    pub migration_uid: Option<String>,
    /// Current transfer method: `PreCopy`, `PostCopy` or `Paused`.
    pub mode: Option<MigrationMode>,
    /// Name of the MigrationPolicy in effect; unset or empty when none matched.
    pub migration_policy_name: Option<String>,
    /// Effective settings of this migration after merging cluster defaults with any policy.
    pub migration_configuration: Option<MigrationOptions>,
    /// Host CPU ids pinned for the guest on the destination; only with dedicated CPUs.
    #[serde(rename = "targetCPUSet")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[schemars(extend("items" = { "type": "integer" }))]
    pub target_cpu_set: Option<Vec<i64>>,
    /// NUMA layout of the destination node as JSON text; only with dedicated CPUs.
    pub target_node_topology: Option<String>,
    /// PVC with the guest's TPM or EFI state on the source side, if it keeps such state.
    #[serde(rename = "sourcePersistentStatePVCName")]
    pub source_persistent_state_pvc_name: Option<String>,
    /// PVC with the guest's TPM or EFI state on the destination side, if it keeps such state.
    #[serde(rename = "targetPersistentStatePVCName")]
    pub target_persistent_state_pvc_name: Option<String>,
    /// Details reported by the sending side.
    pub source_state: Option<MigrationSourceState>,
    /// Details reported by the receiving side.
    pub target_state: Option<MigrationTargetState>,
    /// Network carrying the traffic: `Pod` for the pod network, `Migration` for a dedicated one.
    pub migration_network_type: Option<MigrationNetworkType>,
    /// Memory the destination virt-launcher pod needs on top of guest memory.
    pub target_memory_overhead: Option<Quantity>,
}

/// Tunables in force for one live migration.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationOptions {
    /// Taint key that marks a node as draining, default `kubevirt.io/drain`; relies on deprecated taints.
    pub node_drain_taint_key: Option<String>,
    /// How many migrations may leave one node at the same time; 2 if unset.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub parallel_outbound_migrations_per_node: Option<i32>,
    /// How many migrations may run at once in the whole cluster; 5 if unset.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub parallel_migrations_per_cluster: Option<i32>,
    /// Slow down the guest's CPUs when it dirties memory faster than it can be copied; off by default.
    pub allow_auto_converge: Option<bool>,
    /// Bytes per second one migration may use, e.g. `64Mi`; 0, the default, means no cap.
    pub bandwidth_per_migration: Option<Quantity>,
    /// Seconds allowed per GiB to copy before forcing or cancelling; 150 if unset, 0 for no limit.
    pub completion_timeout_per_gi_b: Option<i64>,
    /// Longest acceptable guest pause at switchover in milliseconds, 1 to 2000000; 900 if unset.
    #[schemars(extend("minimum" = 1, "maximum" = 2000000))]
    pub max_downtime_ms: Option<i64>,
    /// Seconds without any data copied after which the migration is cancelled; 150 if unset.
    pub progress_timeout: Option<i64>,
    /// Seconds to wait for utility volumes to detach before failing the migration; 150 if unset.
    pub utility_volumes_timeout: Option<i64>,
    /// Migrate even when safety checks warn that guest data may be at risk; off by default.
    pub unsafe_migration_override: Option<bool>,
    /// Switch to post-copy on timeout; a network failure in that mode kills the guest, so off by default.
    pub allow_post_copy: Option<bool>,
    /// On timeout pause the guest or go post-copy instead of cancelling; follows `allowPostCopy` if unset.
    pub allow_workload_disruption: Option<bool>,
    /// Send migration data unencrypted, exposing guest memory on the network; off by default.
    #[serde(rename = "disableTLS")]
    pub disable_tls: Option<bool>,
    /// Network attachment that carries migration traffic; the pod network if unset.
    pub network: Option<String>,
    /// Give the target pod the source's SELinux level, the default; if false the node picks a fresh one.
    #[serde(rename = "matchSELinuxLevelOnMigration")]
    pub match_se_linux_level_on_migration: Option<bool>,
    /// Alpha tunables that may change or vanish in any release.
    pub experimental: Option<ExperimentalMigrationOptions>,
}

/// Alpha migration tunables with no stability promise.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalMigrationOptions {
    /// Tuning of the logic that notices a migration no longer converging.
    pub stall_detector: Option<StallDetectorOptions>,
    /// Compression of the migration stream: `none` or `zstd`; none if unset.
    #[schemars(extend("enum" = ["none", "zstd"]))]
    pub compression: Option<MigrationCompression>,
}

/// Tuning of when a migration counts as stalled and what happens then.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StallDetectorOptions {
    /// Percent by which remaining data must shrink to count as progress, 0 to 100; 4 if unset.
    #[schemars(extend("minimum" = 0, "maximum" = 100))]
    pub stall_margin: Option<i64>,
    /// Weight of the newest bandwidth sample, above 0 and up to 1, as a decimal string; `0.4` if unset.
    pub ewma_alpha: Option<String>,
    /// Length in seconds of the window in which progress must show; 40 if unset.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub stall_progress_timeout: Option<i64>,
    /// Seconds a started switchover may take before the migration is aborted; 60 if unset.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub switchover_timeout: Option<i64>,
    /// Multiple of the allowed downtime still tolerated for stop-and-copy, a decimal string; `1.5` if
    /// unset.
    pub precopy_possible_factor: Option<String>,
    /// Factor shrinking the waiting time after each lowered expectation, a decimal string; `0.5` if unset.
    pub patience_window_decay_factor: Option<String>,
    /// After a stall, wait for a low point in remaining data before acting; true if unset.
    pub search_local_minima: Option<bool>,
    /// Multiplier on the completion timeout that bounds a forced switchover, a decimal string; `2` if
    /// unset.
    pub completion_timeout_factor: Option<String>,
}

/// What the sending side reports about a migration.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationSourceState {
    /// Name of the node the guest is leaving.
    pub node: Option<String>,
    /// Name of the virt-launcher pod the guest is leaving.
    pub pod: Option<String>,
    /// UID of the migration object on the sending side.
    #[serde(rename = "migrationUID")]
    pub migration_uid: Option<String>,
    /// Name of the libvirt domain on the sending side.
    pub domain_name: Option<String>,
    /// Namespace part of the sending libvirt domain's name, used to rewrite paths on arrival.
    pub domain_namespace: Option<String>,
    /// Host and port where the sending side exchanges status in cross-cluster or cross-namespace moves.
    pub sync_address: Option<String>,
    /// PVC with TPM or EFI state on the sending side, if the guest keeps such state.
    #[serde(rename = "persistentStatePVCName")]
    pub persistent_state_pvc_name: Option<String>,
    /// SELinux context the sending virt-launcher pod runs with.
    pub selinux_context: Option<String>,
    /// UID of the sending VirtualMachineInstance.
    #[serde(rename = "virtualMachineInstanceUID")]
    pub virtual_machine_instance_uid: Option<String>,
    /// Node labels the receiving pod must be scheduled by to stay compatible with the source.
    pub node_selectors: Option<BTreeMap<String, String>>,
}

/// What the receiving side reports about a migration.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationTargetState {
    /// Name of the node receiving the guest.
    pub node: Option<String>,
    /// Name of the virt-launcher pod receiving the guest.
    pub pod: Option<String>,
    /// UID of the migration object on the receiving side.
    #[serde(rename = "migrationUID")]
    pub migration_uid: Option<String>,
    /// Name of the libvirt domain on the receiving side.
    pub domain_name: Option<String>,
    /// Namespace part of the receiving libvirt domain's name.
    pub domain_namespace: Option<String>,
    /// Host and port where the receiving side exchanges status in cross-cluster or cross-namespace moves.
    pub sync_address: Option<String>,
    /// PVC with TPM or EFI state on the receiving side, if the guest keeps such state.
    #[serde(rename = "persistentStatePVCName")]
    pub persistent_state_pvc_name: Option<String>,
    /// SELinux context the receiving virt-launcher pod runs with.
    pub selinux_context: Option<String>,
    /// UID of the receiving VirtualMachineInstance.
    #[serde(rename = "virtualMachineInstanceUID")]
    pub virtual_machine_instance_uid: Option<String>,
    /// When the guest was first seen running on the receiving node.
    pub domain_ready_timestamp: Option<Time>,
    /// True once the receiving node has noticed the guest start there.
    pub domain_detected: Option<bool>,
    /// IP address on which the receiving node accepts migration data.
    pub node_address: Option<String>,
    /// Listening ports on the receiving node, each mapped to the migration channel it serves.
    #[schemars(extend("additionalProperties" = { "type": "integer" }))]
    pub direct_migration_node_ports: Option<BTreeMap<String, i64>>,
    /// UID of the receiving helper pod that holds hotplugged volumes, if any.
    #[serde(rename = "attachmentPodUID")]
    pub attachment_pod_uid: Option<String>,
    /// Host CPU ids pinned for the guest on the receiving node; only with dedicated CPUs.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    #[schemars(extend("items" = { "type": "integer" }))]
    pub cpu_set: Option<Vec<i64>>,
    /// NUMA layout of the receiving node as JSON text; only with dedicated CPUs.
    pub node_topology: Option<String>,
}

open_enum! {
    /// State of a migration's cancellation: `Aborting`, `Succeeded` or `Failed`.
    pub enum MigrationAbortStatus {
        Succeeded = "Succeeded",
        Failed = "Failed",
        Aborting = "Aborting",
    }
}

open_enum! {
    /// How guest memory moves: `PreCopy` while running, `PostCopy` after switchover, `Paused` while
    /// stopped.
    pub enum MigrationMode {
        PreCopy = "PreCopy",
        PostCopy = "PostCopy",
        Paused = "Paused",
    }
}

open_enum! {
    /// Compression of migration data: `none` or `zstd`.
    pub enum MigrationCompression {
        None = "none",
        Zstd = "zstd",
    }
}

open_enum! {
    /// Network used to migrate: `Pod` (the default pod network) or `Migration` (a dedicated one).
    pub enum MigrationNetworkType {
        Pod = "Pod",
        Migration = "Migration",
    }
}
