//! Migration settings for chosen instances: `MigrationPolicy`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::kind::kind;
use crate::vmi::migration_state::ExperimentalMigrationOptions;

kind! {
    /// Live migration settings for a selected group of VMs; the most specific match wins.
    MigrationPolicy: MIGRATIONS, "v1alpha1", "migrationpolicies", ClusterResourceScope;
    spec: MigrationPolicySpec,
    status: MigrationPolicyStatus
}

/// Selectors and the migration settings that override the cluster's.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationPolicySpec {
    /// VMs the policy covers, by namespace and VM labels.
    pub selectors: PolicySelectors,
    /// Slow the guest's CPUs down so migration can catch up; cluster setting if unset.
    pub allow_auto_converge: Option<bool>,
    /// Bytes per second one migration may use, such as 64Mi, 0 for no limit; cluster setting if unset.
    pub bandwidth_per_migration: Option<Quantity>,
    /// Seconds allowed per GiB of data before a migration times out; cluster setting if unset.
    pub completion_timeout_per_gi_b: Option<i64>,
    /// Longest guest pause at switchover in milliseconds, 1 to 2000000; cluster setting if unset.
    #[schemars(extend("minimum" = 1, "maximum" = 2000000))]
    pub max_downtime_ms: Option<i64>,
    /// Switch to post-copy on timeout; a network failure then crashes the guest; cluster setting if unset.
    pub allow_post_copy: Option<bool>,
    /// On timeout pause the guest or use post-copy rather than cancel; follows `allowPostCopy` if unset.
    pub allow_workload_disruption: Option<bool>,
    /// Experimental migration tuning that may change or disappear.
    pub experimental: Option<ExperimentalMigrationOptions>,
}

/// Labels that decide which VMs a policy covers; both selectors must match.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySelectors {
    /// Labels the VM's namespace must have.
    pub namespace_selector: Option<BTreeMap<String, String>>,
    /// Labels the VM instance must have.
    pub virtual_machine_instance_selector: Option<BTreeMap<String, String>>,
}

/// Observed state of a policy; has no fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("nullable" = true))]
pub struct MigrationPolicyStatus {}
