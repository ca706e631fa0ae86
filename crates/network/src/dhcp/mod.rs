//! Phase 2: tells the guest its address over DHCP. Needs no privilege but that of using low ports.
//!
//! Plain UDP sockets do: a guest that has no address yet is answered by broadcast, and the sockets are bound to
//! the guest's bridge, so that nobody else hears or asks. There are no router advertisements, which would need a
//! raw socket; a guest that wants an IPv6 default route sets it to the first address of its network.

mod options;
mod server;
pub mod v4;
pub mod v6;

use std::{collections::BTreeMap, net::Ipv4Addr};

pub use server::{DhcpError, Server, serve};

use crate::resolv::ResolvConf;

/// What a guest is told besides its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The guest's host name: that of its pod.
    pub hostname: String,
    /// How the pod looks up names.
    pub resolv: ResolvConf,
    /// The VM's subdomain.
    pub subdomain: Option<String>,
    /// What the VM asks for.
    pub extra: ExtraOptions,
}

/// The DHCP options that a VM can ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtraOptions {
    /// The file to boot from the network.
    pub boot_file_name: Option<String>,
    /// The server to boot from.
    pub tftp_server_name: Option<String>,
    /// Time servers.
    pub ntp_servers: Vec<Ipv4Addr>,
    /// Options 224 to 254; others are left out.
    pub private: BTreeMap<u8, String>,
}

/// How long a lease lasts: longer than anyone asks.
const LEASE_SECONDS: u32 = 999 * 24 * 60 * 60;
