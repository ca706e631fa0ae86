//! What phase 1 found and made, for those who come after it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

use crate::Mac;

/// How one network of a VM is wired up in its pod.
///
/// It is all that phase 2 needs. It is also the memory of phase 1: the bridge binding takes the pod's interface
/// apart, so it has to be written down before it is applied, and given to the next run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wiring {
    /// The network's name in the VM.
    pub network: String,
    /// How guest and pod are connected.
    pub binding: BindingKind,
    /// The pod's interface as it was before.
    pub pod: PodLink,
    /// The guest's tap; passt has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tap: Option<String>,
    /// Whether the tap must be opened as one with many queues.
    #[serde(default)]
    pub multi_queue: bool,
    /// How many queues the guest's interface has.
    #[serde(default)]
    pub queues: u32,
    /// The bridge that the tap is a port of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<String>,
    /// The largest packet, for the guest too.
    pub mtu: u32,
    /// The guest's hardware address.
    pub mac: Mac,
    /// The pod's addresses on this network that lead to the guest, IPv4 first.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// What the guest is told over DHCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dhcp4: Option<Lease4>,
    /// What the guest is told over DHCPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dhcp6: Option<Lease6>,
}

/// A [`crate::Binding`] without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BindingKind {
    /// See [`crate::Binding::Masquerade`].
    Masquerade,
    /// See [`crate::Binding::Bridge`].
    Bridge,
    /// See [`crate::Binding::ManagedTap`].
    ManagedTap,
    /// See [`crate::Binding::Passt`].
    Passt,
}

/// A pod's interface before anything was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodLink {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    pub mac: Mac,
    /// Its addresses that are valid beyond the link.
    #[serde(default)]
    pub addresses: Vec<IpNet>,
}

/// The one DHCPv4 lease of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease4 {
    /// The guest's address and the size of its network.
    pub address: Ipv4Net,
    /// The address of the DHCP server itself.
    pub server: Ipv4Addr,
    /// The default gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<Ipv4Addr>,
    /// Other routes. The default route is among them, if there is one, for guests that then ignore `router`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<StaticRoute>,
    /// The only guest that is answered; anyone if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Mac>,
}

/// A route that a guest is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StaticRoute {
    /// Where it leads.
    pub destination: Ipv4Net,
    /// By way of whom; if not set, the destination is on the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Ipv4Addr>,
}

/// The one DHCPv6 lease of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease6 {
    /// The guest's address.
    pub address: Ipv6Addr,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_newer_phase_1_wrote_and_what_an_older_one_left_out() {
        let json = r#"{"network":"default","binding":"bridge","mtu":1400,"mac":"02:00:00:00:00:01","new":[1],
            "pod":{"name":"eth0","mac":"02:00:00:00:00:01"},
            "dhcp4":{"address":"10.1.2.3/24","server":"169.254.75.10","other":null}}"#;
        let wiring: Wiring = serde_json::from_str(json).unwrap();
        assert_eq!(wiring.tap, None);
        assert_eq!(wiring.dhcp4.as_ref().unwrap().address.to_string(), "10.1.2.3/24");
        let again: Wiring = serde_json::from_str(&serde_json::to_string(&wiring).unwrap()).unwrap();
        assert_eq!(again, wiring);
    }
}
