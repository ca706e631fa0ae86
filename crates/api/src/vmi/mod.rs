//! A running virtual machine: `VirtualMachineInstance` and its specification.

pub mod access_credentials;
pub mod attestation;
pub mod clock;
pub mod cpu;
pub mod devices;
pub mod disks;
pub mod domain;
pub mod features;
pub mod firmware;
pub mod guest_agent;
pub mod host_devices;
pub mod launch_security;
pub mod memory;
pub mod migration_state;
pub mod network;
pub mod probes;
pub mod status;
pub mod volumes;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, PodDNSConfig, Toleration, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::kind::kind;
use crate::open_enum::open_enum;
use crate::vmi::access_credentials::AccessCredential;
use crate::vmi::domain::DomainSpec;
use crate::vmi::host_devices::ResourceClaim;
use crate::vmi::network::Network;
use crate::vmi::probes::Probe;
use crate::vmi::status::VirtualMachineInstanceStatus;
use crate::vmi::volumes::{UtilityVolume, Volume};

kind! {
    /// A running virtual machine; it ends for good once the guest stops.
    VirtualMachineInstance: KUBEVIRT, "v1", "virtualmachineinstances", NamespaceResourceScope;
    spec: VirtualMachineInstanceSpec,
    status: VirtualMachineInstanceStatus
}

/// The longest label of a host name.
const LONGEST_HOSTNAME: usize = 63;

impl VirtualMachineInstance {
    /// What the guest and its pod are called: as is asked for, or as much of the name as can be a label.
    pub fn hostname(&self) -> String {
        if let Some(own) = self.spec.hostname.as_ref().filter(|own| !own.is_empty()) {
            return own.clone();
        }
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let first: String =
            name.split('.').next().unwrap_or_default().chars().take(LONGEST_HOSTNAME).collect();
        first.trim_end_matches('-').to_owned()
    }

    /// Whether it has ended and will not run again.
    pub fn is_final(&self) -> bool {
        let phase = self.status.as_ref().and_then(|status| status.phase.as_ref());
        matches!(phase, Some(status::VmiPhase::Succeeded | status::VmiPhase::Failed))
    }

    /// Whether it is recorded which blocks of its disks change.
    pub fn tracks_blocks(&self) -> bool {
        use status::ChangedBlockTrackingState::{Enabled, Initializing};
        let tracking = self.status.as_ref().and_then(|status| status.changed_block_tracking.as_ref());
        tracking.is_some_and(|tracking| matches!(tracking.state, Initializing | Enabled))
    }
}

/// Template of the instance a VM creates each time it starts.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VmiTemplate {
    /// Labels, annotations and the rest of the standard metadata.
    #[schemars(extend("nullable" = true))]
    pub metadata: Option<ObjectMeta>,
    /// Desired hardware, storage, networks and placement of the instance.
    pub spec: Option<VirtualMachineInstanceSpec>,
}

/// What a virtual machine instance should look like and where it may run.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineInstanceSpec {
    /// PriorityClass of the launcher pod; the cluster default, or 0, if unset.
    pub priority_class_name: Option<String>,
    /// Virtual hardware: CPU, memory, firmware and devices.
    pub domain: DomainSpec,
    /// Labels a node must have to run the VM.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Node and pod affinity rules for placing the VM.
    pub affinity: Option<Affinity>,
    /// Scheduler that places the launcher pod; the default scheduler if unset.
    pub scheduler_name: Option<String>,
    /// ServiceAccount of the launcher pod; the guest sees its token only via a serviceAccount volume.
    pub service_account_name: Option<String>,
    /// Node taints the VM tolerates.
    pub tolerations: Option<Vec<Toleration>>,
    /// Rules for spreading similar VMs over zones, nodes or other topologies.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["topologyKey", "whenUnsatisfiable"]))]
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    /// What a node drain does to this VM; the cluster-wide setting if unset.
    pub eviction_strategy: Option<EvictionStrategy>,
    /// Set to `Paused` to start the guest frozen until it is unpaused; runs at once if unset.
    pub start_strategy: Option<StartStrategy>,
    /// Seconds the guest gets to shut down before it is killed; 30 if unset.
    pub termination_grace_period_seconds: Option<i64>,
    /// Storage that disks and filesystems refer to by name; at most 256.
    #[schemars(extend("maxItems" = 256))]
    pub volumes: Option<Vec<Volume>>,
    /// Check whose failure stops the VM; fixed once the instance exists.
    pub liveness_probe: Option<Probe>,
    /// Check whose failure takes the VM out of Service endpoints; fixed once the instance exists.
    pub readiness_probe: Option<Probe>,
    /// Guest host name, delivered by DHCP or cloud-init; the VM's name if unset.
    pub hostname: Option<String>,
    /// DNS subdomain; with a headless Service of that name the VM gets a resolvable full name.
    pub subdomain: Option<String>,
    /// Networks that interfaces connect to by name; at most 256.
    #[schemars(extend("maxItems" = 256))]
    pub networks: Option<Vec<Network>>,
    /// DNS policy: ClusterFirst (default), ClusterFirstWithHostNet, Default or None.
    #[schemars(extend("x-strict" = { "enum": ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"] }))]
    pub dns_policy: Option<String>,
    /// Extra name servers, search domains and options, merged with what `dnsPolicy` yields.
    pub dns_config: Option<PodDNSConfig>,
    /// SSH keys or passwords from Secrets to put into the guest; at most 256.
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "maxItems" = 256))]
    pub access_credentials: Option<Vec<AccessCredential>>,
    /// Guest CPU architecture: amd64, arm64 or s390x; the cluster's default if unset.
    pub architecture: Option<String>,
    /// DRA claims to be allocated before the VM starts; needs one of the WithDRA feature gates.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resource_claims: Option<Vec<ResourceClaim>>,
    /// PVCs mounted in the launcher pod but not shown to the guest; needs the UtilityVolumes feature gate.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"], "maxItems" = 256))]
    pub utility_volumes: Option<Vec<UtilityVolume>>,
}

open_enum! {
    /// On drain: `None` stops, `LiveMigrate` and `LiveMigrateIfPossible` move, `External` defers to a
    /// controller.
    pub enum EvictionStrategy {
        None = "None",
        LiveMigrate = "LiveMigrate",
        LiveMigrateIfPossible = "LiveMigrateIfPossible",
        External = "External",
    }
}

open_enum! {
    /// How the guest starts; only `Paused` exists.
    pub enum StartStrategy {
        Paused = "Paused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_is_a_label() {
        let hostname = |name: &str, own: Option<&str>| {
            let mut vmi = VirtualMachineInstance::default();
            vmi.metadata.name = Some(name.to_owned());
            vmi.spec.hostname = own.map(str::to_owned);
            vmi.hostname()
        };
        let long = "x".repeat(70);
        let cut_at_a_dash = format!("{}-{long}", "a".repeat(62));
        for (name, own, expected) in [
            ("web", None, "web"),
            ("web.example", None, "web"),
            ("web", Some(""), "web"),
            ("web", Some("own"), "own"),
            (&long, None, &long[..63]),
            (&cut_at_a_dash, None, &cut_at_a_dash[..62]),
        ] {
            assert_eq!(hostname(name, own), expected, "{name} {own:?}");
        }
    }
}
