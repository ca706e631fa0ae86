//! Network defaults and binding plugins.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::open_enum::open_enum;

/// Cluster-wide network settings for VMs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkConfiguration {
    /// Binding of automatically added pod interfaces: `bridge` (default) or `masquerade`.
    pub default_network_interface: Option<String>,
    /// Deprecated and without effect; slirp was removed in v1.3.
    pub permit_slirp_interface: Option<bool>,
    /// Accept bridge binding on the pod network, which normally rules out live migration; true if unset.
    pub permit_bridge_interface_on_pod_network: Option<bool>,
    /// Network binding plugins by the name interfaces refer to them by.
    pub binding: Option<BTreeMap<String, InterfaceBindingPlugin>>,
}

/// A plugin that connects VM interfaces to pod networks.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceBindingPlugin {
    /// Image of a sidecar in the launcher pod that adjusts the libvirt domain.
    pub sidecar_image: Option<String>,
    /// NetworkAttachmentDefinition as name or namespace/name; the VM's namespace if left out.
    pub network_attachment_definition: Option<String>,
    /// How the guest is attached: `tap` or `managedTap`; works with or without a sidecar.
    pub domain_attachment_type: Option<DomainAttachmentType>,
    /// When present, VMs using the plugin can be live migrated.
    pub migration: Option<InterfaceBindingMigration>,
    /// Data handed to the sidecar; only `device-info` exists.
    #[serde(rename = "downwardAPI")]
    pub downward_api: Option<NetworkBindingDownwardApiType>,
    /// CPU and memory added to the compute container of VMs using the plugin.
    pub compute_resource_overhead: Option<ResourceRequirementsWithoutClaims>,
}

/// How a plugin's interfaces are live migrated.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceBindingMigration {
    /// Extra step after migration: `link-refresh`, or none if unset.
    pub method: Option<MigrationMethod>,
}

/// Container resource requests and limits.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequirementsWithoutClaims {
    /// Most of each resource that may be used.
    pub limits: Option<BTreeMap<String, Quantity>>,
    /// Amount of each resource set aside by the scheduler.
    pub requests: Option<BTreeMap<String, Quantity>>,
}

open_enum! {
    /// Guest attachment: `tap` uses an existing tap device, `managedTap` has KubeVirt bridge one to the
    /// pod.
    pub enum DomainAttachmentType {
        Tap = "tap",
        ManagedTap = "managedTap",
    }
}

open_enum! {
    /// Post-migration step: `link-refresh` takes the link down and up so the guest renews its DHCP lease.
    pub enum MigrationMethod {
        LinkRefresh = "link-refresh",
    }
}

open_enum! {
    /// Data for plugin sidecars: `device-info` passes the device details reported by Multus.
    pub enum NetworkBindingDownwardApiType {
        DeviceInfo = "device-info",
    }
}
