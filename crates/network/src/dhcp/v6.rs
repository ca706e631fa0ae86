//! Answers DHCPv6 requests: a pure function from a request and a lease to a reply.

use std::net::Ipv6Addr;

use super::LEASE_SECONDS;
use crate::{Lease6, Mac, bytes::array};

/// The port that servers listen on.
pub const SERVER_PORT: u16 = 547;
/// The group that all servers on a link belong to.
pub const SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);

const SOLICIT: u8 = 1;
const ADVERTISE: u8 = 2;
const REQUEST: u8 = 3;
const CONFIRM: u8 = 4;
const RENEW: u8 = 5;
const REBIND: u8 = 6;
const REPLY: u8 = 7;
const RELEASE: u8 = 8;
const DECLINE: u8 = 9;
const INFORMATION: u8 = 11;

const CLIENT: u16 = 1;
const SERVER: u16 = 2;
const ASSOCIATION: u16 = 3;
const ADDRESS: u16 = 5;
const STATUS: u16 = 13;
const RAPID_COMMIT: u16 = 14;
const NAME_SERVERS: u16 = 23;

const SUCCESS: u16 = 0;
const NO_ADDRESSES: u16 = 2;
const NOT_ON_LINK: u16 = 4;

/// Answers one guest with one lease.
#[derive(Debug, Clone)]
pub struct Responder {
    address: Ipv6Addr,
    identity: Vec<u8>,
    name_servers: Vec<u8>,
}

impl Responder {
    /// Prepares all that is the same in every reply. `server` is the hardware address of our end of the link.
    #[must_use]
    pub fn new(lease: &Lease6, server: Mac, name_servers: &[Ipv6Addr]) -> Self {
        // An identity made of a link-layer address, for Ethernet.
        let identity = [&[0, 3, 0, 1][..], &server.0].concat();
        let name_servers = name_servers.iter().flat_map(Ipv6Addr::octets).collect();
        Self { address: lease.address, identity, name_servers }
    }

    /// The reply to a packet, if it is a request that is for us.
    #[must_use]
    pub fn reply(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let [kind, a, b, c, options @ ..] = packet else { return None };
        let option = |wanted| read(options).find(|(code, _)| *code == wanted).map(|(_, value)| value);
        if option(SERVER).is_some_and(|server| server != self.identity) {
            return None;
        }
        let client = option(CLIENT);
        if client.is_none() && *kind != INFORMATION {
            return None;
        }
        let rapid = *kind == SOLICIT && option(RAPID_COMMIT).is_some();
        let answer = if *kind == SOLICIT && !rapid { ADVERTISE } else { REPLY };

        let mut out = vec![answer, *a, *b, *c];
        client.into_iter().for_each(|client| put(&mut out, CLIENT, client));
        put(&mut out, SERVER, &self.identity);
        if rapid {
            put(&mut out, RAPID_COMMIT, &[]);
        }
        match *kind {
            SOLICIT | REQUEST | RENEW | REBIND => self.grant(&mut out, options),
            CONFIRM => put(&mut out, STATUS, &self.confirm(options)?.to_be_bytes()),
            RELEASE | DECLINE => put(&mut out, STATUS, &SUCCESS.to_be_bytes()),
            INFORMATION => {}
            _ => return None,
        }
        if !self.name_servers.is_empty() {
            put(&mut out, NAME_SERVERS, &self.name_servers);
        }
        Some(out)
    }

    /// The address for the first who asks, and the news for others that there is no other.
    fn grant(&self, out: &mut Vec<u8>, options: &[u8]) {
        let asked = read(options).filter(|(code, _)| *code == ASSOCIATION);
        for (place, identity) in asked.filter_map(|(_, value)| array::<4>(value, 0)).enumerate() {
            // The identity, and two times to renew that are left to the client.
            let mut association = [&identity[..], &[0; 8]].concat();
            if place == 0 {
                let lifetime = LEASE_SECONDS.to_be_bytes();
                put(&mut association, ADDRESS, &[&self.address.octets()[..], &lifetime, &lifetime].concat());
            } else {
                put(&mut association, STATUS, &NO_ADDRESSES.to_be_bytes());
            }
            put(out, ASSOCIATION, &association);
        }
    }

    /// Whether the addresses that a client has are fine; no answer if it has none.
    fn confirm(&self, options: &[u8]) -> Option<u16> {
        let associations = read(options).filter(|(code, _)| *code == ASSOCIATION);
        let inner = associations.flat_map(|(_, value)| read(value.get(12..).unwrap_or_default()));
        let mut addresses =
            inner.filter(|(code, _)| *code == ADDRESS).filter_map(|(_, value)| array(value, 0));
        let first = Ipv6Addr::from(addresses.next()?);
        let fine = first == self.address
            && addresses.all(|address: [u8; 16]| Ipv6Addr::from(address) == self.address);
        Some(if fine { SUCCESS } else { NOT_ON_LINK })
    }
}

fn put(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    // A client's identity is echoed; it came in a packet and is no longer than that.
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&value[..usize::from(length)]);
}

/// The options in `bytes`, up to the first that is cut short.
fn read(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let code = u16::from_be_bytes(array(bytes, 0)?);
        let length = u16::from_be_bytes(array(bytes, 2)?);
        let (value, rest) = bytes.get(4..)?.split_at_checked(usize::from(length))?;
        bytes = rest;
        Some((code, value))
    })
}

#[cfg(test)]
#[path = "v6_tests.rs"]
mod tests;
