//! Interfaces and the networks they join.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::open_enum::open_enum;
use crate::vmi::host_devices::ClaimRequest;

/// A guest network card, joined by name to an entry of `networks`; choose one binding method at most.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// Name of the entry in `networks` to connect to; must match exactly.
    pub name: String,
    /// Card model: `virtio` (default), `e1000`, `e1000e`, `igb`, `ne2k_pci`, `pcnet` or `rtl8139`.
    pub model: Option<String>,
    /// Bridges the guest to the network; on the pod network the guest takes over the pod's IP.
    pub bridge: Option<InterfaceBridge>,
    /// Removed in v1.3 and rejected; kept so that old manifests still parse.
    pub slirp: Option<InterfaceSlirp>,
    /// NATs the guest behind the pod IP; pod network only, and safe for live migration.
    pub masquerade: Option<InterfaceMasquerade>,
    /// Passes an SR-IOV virtual function straight to the guest; needs a Multus or claimed network.
    pub sriov: Option<InterfaceSriov>,
    /// Removed in v1.3 and rejected; use a binding plugin instead.
    pub macvtap: Option<InterfaceMacvtap>,
    /// Removed in v1.3 and rejected; use `passtBinding` instead.
    pub passt: Option<InterfacePasst>,
    /// Connects through passt user-mode networking; pod network only, and needs the PasstBinding gate.
    pub passt_binding: Option<InterfacePasstBinding>,
    /// Connects through a binding plugin registered in the KubeVirt object, in place of a built-in method.
    pub binding: Option<PluginBinding>,
    /// Ports forwarded to the guest; all ports if empty, and not combinable with `portRanges`.
    pub ports: Option<Vec<Port>>,
    /// Port ranges forwarded to the guest; masquerade only, not combinable with `ports`, alpha.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub port_ranges: Option<Vec<PortRange>>,
    /// MAC address, e.g. `02:00:00:12:34:56`; generated if unset.
    pub mac_address: Option<String>,
    /// Network boot position from 1, lowest first, unique across disks and interfaces; no boot if unset.
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub boot_order: Option<i64>,
    /// PCI address in the guest, e.g. `0000:81:01.0`; assigned automatically if unset.
    pub pci_address: Option<String>,
    /// Extra options in the DHCP answers the guest gets from KubeVirt.
    pub dhcp_options: Option<DhcpOptions>,
    /// Label shown to the guest with the card's address through the config drive metadata.
    pub tag: Option<String>,
    /// Gives the card a name stable across PCI changes; 1 to 16383, unique among devices.
    #[schemars(extend("format" = null))]
    pub acpi_index: Option<i64>,
    /// Link state wanted: `up` (default), `down`, or `absent` to unplug the card from a running guest.
    pub state: Option<InterfaceState>,
}

/// Bridge binding; has no settings, so write `{}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceBridge {}

/// Removed slirp binding; has no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceSlirp {}

/// Masquerade (NAT) binding; has no settings, so write `{}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceMasquerade {}

/// SR-IOV passthrough binding; has no settings, so write `{}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceSriov {}

/// Removed macvtap binding; has no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceMacvtap {}

/// Removed built-in passt binding; has no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfacePasst {}

/// Passt user-mode binding; has no settings, so write `{}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfacePasstBinding {}

/// Reference to a network binding plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginBinding {
    /// Plugin name, as registered under `network.binding` in the KubeVirt configuration.
    pub name: String,
}

/// One port forwarded to the guest.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Name that Services can refer to; must be unique within the VM.
    pub name: Option<String>,
    /// `TCP` or `UDP`; TCP if unset.
    pub protocol: Option<String>,
    /// Port number, 1 to 65535.
    pub port: i32,
}

/// A run of consecutive ports forwarded to the guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortRange {
    /// `TCP` or `UDP`; there is no default.
    pub protocol: String,
    /// First port of the range, 1 to 65535.
    pub start: i32,
    /// Last port of the range, inclusive; from `start` up to 65535.
    pub end: i32,
}

/// Extra DHCP options for a guest, for network boot and time servers among others.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DhcpOptions {
    /// Boot file to load over the network (DHCP option 67).
    pub boot_file_name: Option<String>,
    /// TFTP server holding the boot file (DHCP option 66).
    pub tftp_server_name: Option<String>,
    /// IPv4 addresses of time servers (DHCP option 42).
    pub ntp_servers: Option<Vec<String>>,
    /// Site-specific options, numbers 224 to 254, each used once.
    pub private_options: Option<Vec<DhcpPrivateOptions>>,
}

/// A site-specific DHCP option.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DhcpPrivateOptions {
    /// Option number, 224 to 254.
    #[schemars(extend("format" = null))]
    pub option: i64,
    /// Value sent for the option, as text.
    pub value: String,
}

/// A network the VM can connect to; set one source at most.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// Name interfaces use to refer to this network; a DNS label, unique within the VM.
    pub name: String,
    /// Uses the cluster's ordinary pod network; only one network of a VM can.
    pub pod: Option<PodNetwork>,
    /// Uses a secondary network described by a NetworkAttachmentDefinition.
    pub multus: Option<MultusNetwork>,
    /// Uses a network device allocated through DRA; needs the NetworkDevicesWithDRA gate, alpha.
    pub resource_claim: Option<ClaimRequest>,
}

/// The cluster's pod network, with the address ranges masquerade uses inside the VM.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodNetwork {
    /// IPv4 range the guest gets its address from under masquerade; 10.0.2.0/24 if unset.
    #[serde(rename = "vmNetworkCIDR")]
    pub vm_network_cidr: Option<String>,
    /// IPv6 range the guest gets its address from under masquerade; fd10:0:2::/120 if unset.
    #[serde(rename = "vmIPv6NetworkCIDR")]
    pub vm_i_pv6_network_cidr: Option<String>,
}

/// A secondary network provided by Multus.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultusNetwork {
    /// NetworkAttachmentDefinition, as `name` or `namespace/name`; the VM's namespace if none is given.
    pub network_name: String,
    /// Makes this the pod's default network, replacing the cluster's; only one network can.
    pub default: Option<bool>,
}

open_enum! {
    /// Wanted state of an interface: `up`, `down`, or `absent` to remove it.
    pub enum InterfaceState {
        Absent = "absent",
        Up = "up",
        Down = "down",
    }
}
