//! Answers DHCPv4 requests: a pure function from a request and a lease to a reply.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::{
    LEASE_SECONDS, Settings,
    options::{code, of_lease, put, read},
};
use crate::{Lease4, Mac, bytes::array};

/// The port that servers listen on.
pub const SERVER_PORT: u16 = 67;
/// The port that clients listen on.
pub const CLIENT_PORT: u16 = 68;

const FIXED: usize = 240;
const SMALLEST: usize = 300;
const COOKIE: [u8; 4] = [99, 130, 83, 99];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;

const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const ASK: u8 = 3;
const ACKNOWLEDGE: u8 = 5;
const REFUSE: u8 = 6;
const INFORM: u8 = 8;

/// Answers one guest with one lease.
#[derive(Debug, Clone)]
pub struct Responder {
    lease: Lease4,
    options: Vec<u8>,
    boot_server: Ipv4Addr,
    boot_file: Vec<u8>,
}

/// A reply and whom it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What to send.
    pub packet: Vec<u8>,
    /// Where to.
    pub to: SocketAddrV4,
}

/// What matters of a request.
struct Request<'a> {
    fixed: [u8; FIXED],
    kind: u8,
    address: Ipv4Addr,
    wanted: Option<Ipv4Addr>,
    server: Option<Ipv4Addr>,
    client: &'a [u8],
}

impl Responder {
    /// Prepares all that is the same in every reply.
    #[must_use]
    pub fn new(lease: &Lease4, mtu: u32, settings: &Settings) -> Self {
        let extra = &settings.extra;
        let boot_server = extra.tftp_server_name.as_ref().and_then(|name| name.parse().ok());
        // Old firmware reads the fixed field, which has room for 127 characters and a zero.
        let boot_file = extra.boot_file_name.as_ref().map(String::as_bytes).filter(|name| name.len() < 128);
        Self {
            lease: lease.clone(),
            options: of_lease(lease, mtu, settings),
            boot_server: boot_server.unwrap_or(Ipv4Addr::UNSPECIFIED),
            boot_file: boot_file.unwrap_or_default().to_vec(),
        }
    }

    /// The reply to a packet, if it is a request that is for us.
    #[must_use]
    pub fn reply(&self, packet: &[u8]) -> Option<Reply> {
        let request = parse(packet)?;
        let hardware = Mac(array(&request.fixed, 28)?);
        if self.lease.client.is_some_and(|client| client != hardware) {
            return None;
        }
        if request.server.is_some_and(|server| server != self.lease.server) {
            return None;
        }
        let wrong = request.wanted.is_some_and(|wanted| wanted != self.lease.address.addr());
        match request.kind {
            DISCOVER => Some(self.write(&request, OFFER)),
            ASK => Some(self.write(&request, if wrong { REFUSE } else { ACKNOWLEDGE })),
            INFORM => Some(self.write(&request, ACKNOWLEDGE)),
            _ => None,
        }
    }

    fn write(&self, request: &Request<'_>, kind: u8) -> Reply {
        let leases = kind != REFUSE && request.kind != INFORM;
        let mut packet = self.fixed(request, leases);
        put(&mut packet, code::MESSAGE_TYPE, &[kind]);
        put(&mut packet, code::SERVER, &self.lease.server.octets());
        put(&mut packet, code::CLIENT, request.client);
        if leases {
            put(&mut packet, code::LEASE_TIME, &LEASE_SECONDS.to_be_bytes());
        }
        if kind != REFUSE {
            packet.extend_from_slice(&self.options);
        }
        packet.push(code::END);
        packet.resize(packet.len().max(SMALLEST), 0);
        let broadcast = request.address.is_unspecified() || request.fixed[10] & 0x80 != 0 || kind == REFUSE;
        let to = if broadcast { Ipv4Addr::BROADCAST } else { request.address };
        Reply { packet, to: SocketAddrV4::new(to, CLIENT_PORT) }
    }

    /// The fixed part: transaction, flags and hardware address are the client's.
    fn fixed(&self, request: &Request<'_>, leases: bool) -> Vec<u8> {
        let mut packet = vec![0; FIXED];
        packet[..8].copy_from_slice(&request.fixed[..8]);
        packet[0] = REPLY;
        packet[10..12].copy_from_slice(&request.fixed[10..12]);
        packet[12..16].copy_from_slice(&request.fixed[12..16]);
        if leases {
            packet[16..20].copy_from_slice(&self.lease.address.addr().octets());
            packet[20..24].copy_from_slice(&self.boot_server.octets());
            packet[108..108 + self.boot_file.len()].copy_from_slice(&self.boot_file);
        }
        packet[28..44].copy_from_slice(&request.fixed[28..44]);
        packet[236..].copy_from_slice(&COOKIE);
        packet
    }
}

/// Reads a request from an Ethernet client on our own link.
fn parse(packet: &[u8]) -> Option<Request<'_>> {
    let fixed: [u8; FIXED] = array(packet, 0)?;
    let relayed = fixed[24..28] != [0; 4];
    if fixed[..3] != [REQUEST, 1, 6] || fixed[236..] != COOKIE || relayed {
        return None;
    }
    let option = |wanted| read(&packet[FIXED..]).find(|(code, _)| *code == wanted).map(|(_, value)| value);
    let address = |code| option(code).and_then(|value| array(value, 0)).map(Ipv4Addr::from);
    let own = Ipv4Addr::from(array::<4>(&fixed, 12)?);
    Some(Request {
        kind: *option(code::MESSAGE_TYPE)?.first()?,
        address: own,
        wanted: address(code::REQUESTED_ADDRESS).or(Some(own)).filter(|address| !address.is_unspecified()),
        server: address(code::SERVER),
        client: option(code::CLIENT).unwrap_or_default(),
        fixed,
    })
}

#[cfg(test)]
#[path = "v4_tests.rs"]
mod tests;
