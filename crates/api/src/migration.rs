//! A request to live-migrate an instance: `VirtualMachineInstanceMigration`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::condition::Condition;
use crate::kind::kind;
use crate::open_enum::open_enum;
use crate::vmi::migration_state::MigrationState;

kind! {
    /// Moves a running VM instance to another node; deleting it before completion cancels the move.
    VirtualMachineInstanceMigration: KUBEVIRT, "v1", "virtualmachineinstancemigrations", NamespaceResourceScope;
    spec: VirtualMachineInstanceMigrationSpec,
    status: VirtualMachineInstanceMigrationStatus
}

/// Which instance to move; `sendTo` or `receive` makes it one end of a cross-cluster move.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineInstanceMigrationSpec {
    /// Running instance to move, in the same namespace.
    pub vmi_name: Option<String>,
    /// Extra node labels the target must have; narrows the VM's own rules and never overrides them.
    pub added_node_selector: Option<BTreeMap<String, String>>,
    /// Makes this the sending end of a move to another namespace or cluster.
    pub send_to: Option<MigrationSendTo>,
    /// Makes this the receiving end of a move from another namespace or cluster.
    pub receive: Option<MigrationReceive>,
    /// Place in the queue: `system-critical`, then `user-triggered`, then `system-maintenance`.
    pub priority: Option<MigrationPriority>,
}

/// Sending end of a decentralised migration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationSendTo {
    /// Identifier pairing both ends; must equal the one on the receiving migration.
    #[serde(rename = "migrationID")]
    pub migration_id: String,
    /// Address of the receiver's synchronization controller, as host and port.
    #[serde(rename = "connectURL")]
    pub connect_url: String,
}

/// Receiving end of a decentralised migration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationReceive {
    /// Identifier pairing both ends; must equal the one on the sending migration.
    #[serde(rename = "migrationID")]
    pub migration_id: String,
}

/// Progress and outcome of a migration.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineInstanceMigrationStatus {
    /// Current step; Succeeded and Failed are final.
    pub phase: Option<MigrationPhase>,
    /// Flags such as a requested abort or a rejection by resource quota.
    pub conditions: Option<Vec<Condition>>,
    /// When each phase was entered.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub phase_transition_timestamps: Option<Vec<MigrationPhaseTransition>>,
    /// Details such as source, target, mode and the reason for failure.
    pub migration_state: Option<MigrationState>,
    /// Addresses with port where the other end can reach this side's synchronization controller.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub synchronization_addresses: Option<Vec<String>>,
}

/// A phase of a migration and the moment it was entered.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationPhaseTransition {
    /// Phase that was entered.
    pub phase: Option<MigrationPhase>,
    /// When the phase was entered.
    pub phase_transition_timestamp: Option<Time>,
}

open_enum! {
    /// Rank in the migration queue, highest first: `system-critical`, `user-triggered`,
    /// `system-maintenance`.
    pub enum MigrationPriority {
        SystemCritical = "system-critical",
        UserTriggered = "user-triggered",
        SystemMaintenance = "system-maintenance",
    }
}

open_enum! {
    /// Step of a migration; Succeeded and Failed are final, the sync steps occur only between clusters or
    /// namespaces.
    pub enum MigrationPhase {
        Pending = "Pending",
        Scheduling = "Scheduling",
        Scheduled = "Scheduled",
        PreparingTarget = "PreparingTarget",
        TargetReady = "TargetReady",
        Running = "Running",
        Succeeded = "Succeeded",
        Failed = "Failed",
        WaitingForSync = "WaitingForSync",
        Synchronizing = "Synchronizing",
    }
}
