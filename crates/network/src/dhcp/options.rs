//! Writes the DHCPv4 options of a lease.

use std::net::Ipv4Addr;

use crate::{Lease4, StaticRoute, dhcp::Settings, resolv::longest};

/// The codes of options.
pub mod code {
    pub const MASK: u8 = 1;
    pub const ROUTER: u8 = 3;
    pub const NAME_SERVERS: u8 = 6;
    pub const HOST_NAME: u8 = 12;
    pub const DOMAIN_NAME: u8 = 15;
    pub const MTU: u8 = 26;
    pub const NTP_SERVERS: u8 = 42;
    pub const REQUESTED_ADDRESS: u8 = 50;
    pub const LEASE_TIME: u8 = 51;
    pub const MESSAGE_TYPE: u8 = 53;
    pub const SERVER: u8 = 54;
    pub const CLIENT: u8 = 61;
    pub const TFTP_SERVER: u8 = 66;
    pub const BOOT_FILE: u8 = 67;
    pub const SEARCH: u8 = 119;
    pub const ROUTES: u8 = 121;
    pub const END: u8 = 255;
}

/// Everything that a guest is told in an offer and in an acknowledgement alike.
pub fn of_lease(lease: &Lease4, mtu: u32, settings: &Settings) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, code::MASK, &lease.address.netmask().octets());
    // A guest that takes routes has to see them before the router, which it then ignores.
    put(&mut out, code::ROUTES, &routes(&lease.routes));
    put(&mut out, code::ROUTER, &lease.router.map(|router| router.octets().to_vec()).unwrap_or_default());
    put(&mut out, code::NAME_SERVERS, &addresses(&settings.resolv.servers4));
    put(&mut out, code::MTU, &u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes());
    put(&mut out, code::HOST_NAME, settings.hostname.as_bytes());
    let search = settings.resolv.search_within(settings.subdomain.as_deref());
    put(&mut out, code::DOMAIN_NAME, longest(search.iter()).unwrap_or_default().as_bytes());
    put(&mut out, code::SEARCH, &domains(&search));
    let extra = &settings.extra;
    put(&mut out, code::TFTP_SERVER, extra.tftp_server_name.as_deref().unwrap_or_default().as_bytes());
    put(&mut out, code::BOOT_FILE, extra.boot_file_name.as_deref().unwrap_or_default().as_bytes());
    put(&mut out, code::NTP_SERVERS, &addresses(&extra.ntp_servers));
    for (code, value) in extra.private.range(224..=254) {
        put(&mut out, *code, value.as_bytes());
    }
    out
}

/// Writes an option, in several parts if it is long, and not at all if there is nothing to say.
pub fn put(out: &mut Vec<u8>, code: u8, value: &[u8]) {
    for part in value.chunks(255) {
        out.push(code);
        out.push(u8::try_from(part.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(part);
    }
}

/// The options in `bytes`, up to the end or the first that is cut short.
pub fn read(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        while let [0, rest @ ..] = bytes {
            bytes = rest;
        }
        let [code, length, rest @ ..] = bytes else { return None };
        let (value, rest) = rest.split_at_checked(usize::from(*length)).filter(|_| *code != code::END)?;
        bytes = rest;
        Some((*code, value))
    })
}

fn addresses(addresses: &[Ipv4Addr]) -> Vec<u8> {
    addresses.iter().flat_map(Ipv4Addr::octets).collect()
}

/// A destination takes only as many bytes as its prefix has.
fn routes(routes: &[StaticRoute]) -> Vec<u8> {
    let mut out = Vec::new();
    for route in routes {
        let prefix = route.destination.prefix_len();
        out.push(prefix);
        out.extend_from_slice(&route.destination.network().octets()[..usize::from(prefix.div_ceil(8))]);
        out.extend(route.gateway.map_or([0; 4], |gateway| gateway.octets()));
    }
    out
}

/// As many search domains as fit into one option, without those that DNS does not know how to write.
fn domains(search: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    for domain in search.iter().filter_map(|domain| domain_name(domain)) {
        if out.len() + domain.len() > 255 {
            break;
        }
        out.extend(domain);
    }
    out
}

fn domain_name(domain: &str) -> Option<Vec<u8>> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let mut out = Vec::new();
    for label in domain.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length))?;
        if !label.bytes().all(fine) {
            return None;
        }
        out.push(length);
        out.extend_from_slice(label.as_bytes());
    }
    out.push(0);
    (out.len() <= 255).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_as_rfc_3442_has_them() {
        let route = |to: &str, by: Option<&str>| StaticRoute {
            destination: to.parse().unwrap(),
            gateway: by.map(|text| text.parse().unwrap()),
        };
        let written = routes(&[
            route("10.0.0.0/8", Some("10.1.2.3")),
            route("192.168.1.0/24", Some("192.168.2.3")),
            route("169.254.1.1/32", None),
            route("0.0.0.0/0", Some("10.1.2.1")),
        ]);
        let expected: [&[u8]; 4] = [
            &[8, 10, 10, 1, 2, 3],
            &[24, 192, 168, 1, 192, 168, 2, 3],
            &[32, 169, 254, 1, 1, 0, 0, 0, 0],
            &[0, 10, 1, 2, 1],
        ];
        assert_eq!(written, expected.concat());
    }

    #[test]
    fn search_domains() {
        let of = |names: &[&str]| domains(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["example.com"]), b"\x07example\x03com\0");
        assert_eq!(of(&["a.b.", ".", "", "bad domain", "a..b", "c"]), b"\x01a\x01b\0\x01c\0");
        let long = format!("{}.{}", "x".repeat(60), "y".repeat(60));
        assert_eq!(of(&[&long, &long, &long]).len(), 2 * 123);
    }

    #[test]
    fn long_values_are_split_and_empty_ones_left_out() {
        let mut out = Vec::new();
        put(&mut out, 230, &[7; 300]);
        put(&mut out, 231, &[]);
        let read: Vec<_> = read(&out).map(|(code, value)| (code, value.len())).collect();
        assert_eq!(read, [(230, 255), (230, 45)]);
    }
}
