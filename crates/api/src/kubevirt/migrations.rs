//! Cluster-wide migration settings.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Cluster-wide live migration limits and defaults; migration policies can override some of them.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationConfiguration {
    /// Taint that makes VMs leave a node; `kubevirt.io/drain` if unset, deprecated in favour of eviction.
    pub node_drain_taint_key: Option<String>,
    /// Most migrations leaving one node at a time; 2 if unset.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub parallel_outbound_migrations_per_node: Option<i32>,
    /// Most migrations running in the cluster at a time; 5 if unset.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub parallel_migrations_per_cluster: Option<i32>,
    /// Slows a busy guest's CPUs so that migration can finish; false if unset.
    pub allow_auto_converge: Option<bool>,
    /// Bandwidth limit per migration in bytes per second, e.g. `64Mi`; 0 (default) is no limit.
    pub bandwidth_per_migration: Option<Quantity>,
    /// Seconds allowed per GiB to move before cancelling, pausing or going post-copy; 150 if unset.
    pub completion_timeout_per_gi_b: Option<i64>,
    /// Longest guest pause at switchover in milliseconds, 1 to 2000000; 900 if unset.
    #[schemars(extend("minimum" = 1, "maximum" = 2000000))]
    pub max_downtime_ms: Option<i64>,
    /// Seconds without progress before a migration is cancelled as stuck; 150 if unset.
    pub progress_timeout: Option<i64>,
    /// Seconds to wait for utility volumes to detach before the migration fails; 150 if unset.
    pub utility_volumes_timeout: Option<i64>,
    /// Migrates even when libvirt judges it unsafe, at the risk of data loss; false if unset.
    pub unsafe_migration_override: Option<bool>,
    /// Finishes slow migrations in post-copy, where a network failure kills the guest; false if unset.
    pub allow_post_copy: Option<bool>,
    /// On timeout, pauses the guest or goes post-copy instead of cancelling; follows `allowPostCopy` if
    /// unset.
    pub allow_workload_disruption: Option<bool>,
    /// Sends guest memory between nodes unencrypted; false if unset, and rarely wise to change.
    #[serde(rename = "disableTLS")]
    pub disable_tls: Option<bool>,
    /// NetworkAttachmentDefinition that carries migration traffic; the pod network if unset.
    pub network: Option<String>,
    /// Gives the target pod the source's SELinux level, as some RWX storage needs; true if unset.
    #[serde(rename = "matchSELinuxLevelOnMigration")]
    pub match_se_linux_level_on_migration: Option<bool>,
}
