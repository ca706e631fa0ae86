//! Network cards and what they are wired to.

use serde::{Deserialize, Serialize};

use crate::pci::Address;

/// A network card of the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// Name of the interface and its network.
    pub name: String,
    /// Model of the card.
    pub model: NicModel,
    /// Hardware address.
    pub mac: String,
    /// What it is wired to.
    pub backend: NetBackend,
    /// Where it sits.
    pub address: Address,
    /// Place in the boot order, from 1.
    pub boot_index: Option<u32>,
    /// Number the guest's firmware names it by.
    pub acpi_index: Option<u32>,
    /// Whether the cable is in.
    pub link_up: bool,
    /// Largest packet, told to the guest.
    pub mtu: Option<u32>,
    /// Pairs of queues.
    pub queues: u32,
}

/// Model of a network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NicModel {
    /// Paravirtual.
    Virtio,
    /// Intel 82540EM.
    E1000,
    /// Intel 82574L.
    E1000e,
    /// Intel 82576.
    Igb,
    /// NE2000 on PCI.
    Ne2kPci,
    /// AMD PCnet.
    Pcnet,
    /// Realtek 8139.
    Rtl8139,
}

/// What a network card is wired to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NetBackend {
    /// A tap device that is there already.
    Tap {
        /// Name of the device.
        name: String,
        /// Its queues as open file descriptors, if the process inherits them.
        #[serde(default)]
        fds: Vec<i32>,
        /// The kernel moves the packets.
        vhost: bool,
    },
    /// A user-space switch behind a Unix socket that shares the guest's memory.
    VhostUser {
        /// Path of the socket.
        socket: String,
        /// Ports of the pod that lead to the guest.
        #[serde(default)]
        ports: ForwardedPorts,
    },
}

/// Ports of the pod that lead to the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ForwardedPorts {
    /// Of TCP.
    pub tcp: Ports,
    /// Of UDP.
    pub udp: Ports,
}

/// Some ports of one protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ports {
    /// All of them.
    #[default]
    All,
    /// All that others in the pod do not need.
    AllBut {
        /// Their ports.
        #[serde(default)]
        ports: Vec<u16>,
    },
    /// Some.
    Only {
        /// Which.
        #[serde(default)]
        ports: Vec<u16>,
    },
}
