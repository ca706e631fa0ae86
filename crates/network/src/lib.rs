//! A VM's network, in two phases.
//!
//! [`phase1`] is privileged and works inside the network namespace of the VM's pod: it looks at the pod's
//! interfaces, decides what is missing and makes bridges, taps and NAT rules. What it found and made is a
//! [`Wiring`] for each network, which is handed over as JSON.
//!
//! Phase 2 runs beside QEMU without privileges: [`tap::open`] opens the tap and [`dhcp::serve`] answers the
//! guest's DHCP requests.
//!
//! Nothing here knows Kubernetes.

mod bytes;
pub mod dhcp;
mod error;
mod links;
mod mac;
pub mod names;
mod namespace;
mod nat;
mod netlink;
pub mod phase1;
mod request;
pub mod resolv;
pub mod tap;
mod wiring;

pub use error::NetworkError;
pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
pub use mac::{InvalidMac, Mac};
pub use namespace::NetNs;
pub use request::{Binding, InterfaceRequest, LAUNCHER_USER, Masquerade, Ports, Protocol};
pub use wiring::{BindingKind, Lease4, Lease6, PodLink, StaticRoute, Wiring};
