//! What is asked of phase 1.

use std::fmt;

use ipnet::{Ipv4Net, Ipv6Net};

use crate::{BindingKind, Mac};

/// The user and group that launchers and their QEMU run as.
pub const LAUNCHER_USER: u32 = 107;

/// One interface of a VM and how it is to reach its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceRequest {
    /// The network's name in the VM.
    pub network: String,
    /// The names that the pod's interface can have; the first that is there counts. See [`crate::names`].
    pub pod_interfaces: Vec<String>,
    /// Whether it is the pod's own network, which decides the tap's name.
    pub primary: bool,
    /// The place among the VM's interfaces, from 0. It keeps the addresses of several DHCP servers apart.
    pub place: u8,
    /// How guest and pod are connected.
    pub binding: Binding,
    /// The guest's hardware address where it is known: that of the specification, else that of the status.
    pub mac: Option<Mac>,
    /// How many queues the guest's interface has; 0 and 1 are the same.
    pub queues: u32,
    /// The user and group that the tap belongs to.
    pub owner: u32,
}

impl InterfaceRequest {
    /// One interface with one queue on the pod's own network, as most VMs have it.
    pub fn on_pod_network(binding: Binding) -> Self {
        Self {
            network: "default".to_owned(),
            pod_interfaces: vec!["eth0".to_owned()],
            primary: true,
            place: 0,
            binding,
            mac: None,
            queues: 1,
            owner: LAUNCHER_USER,
        }
    }
}

/// How a guest's interface and its pod's are connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// The guest has an address of its own behind that of the pod.
    Masquerade(Masquerade),
    /// The guest takes over the address of the pod, if it has one.
    Bridge,
    /// As [`Binding::Bridge`], but someone else tells the guest its address.
    ManagedTap,
    /// The program passt, which the launcher starts, carries the traffic: it needs no links, only permissions.
    Passt,
}

impl Binding {
    pub(crate) fn kind(&self) -> BindingKind {
        match self {
            Self::Masquerade(_) => BindingKind::Masquerade,
            Self::Bridge => BindingKind::Bridge,
            Self::ManagedTap => BindingKind::ManagedTap,
            Self::Passt => BindingKind::Passt,
        }
    }
}

/// The details of [`Binding::Masquerade`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Masquerade {
    /// The ports of the pod that lead to the guest; all of them if there are none.
    pub ports: Vec<Ports>,
    /// The guest's IPv4 network instead of 10.0.2.0/24.
    pub range4: Option<Ipv4Net>,
    /// The guest's IPv6 network instead of fd10:0:2::/120.
    pub range6: Option<Ipv6Net>,
    /// An Istio proxy runs in the pod: it gets the traffic first.
    pub istio: bool,
    /// Ports on the pod's loopback interface that stay with the pod, such as those of a migration over TCP.
    pub kept_ports: Vec<u16>,
}

/// A range of ports, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// The transport protocol.
    pub protocol: Protocol,
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl Ports {
    /// A single port.
    #[must_use]
    pub fn one(protocol: Protocol, port: u16) -> Self {
        Self { protocol, first: port, last: port }
    }

    pub(crate) fn contains(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// A transport protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// TCP, the one that is meant when none is named.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        })
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dport {}", self.protocol, self.first)?;
        if self.last != self.first { write!(f, "-{}", self.last) } else { Ok(()) }
    }
}
