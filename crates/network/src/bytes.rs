//! Reads numbers and addresses from bytes that may be too short.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The `N` bytes at `offset`, if there are as many.
pub fn array<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

/// The address that is all of `bytes`.
pub fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => array::<4>(bytes, 0).map(|b| Ipv4Addr::from(b).into()),
        16 => array::<16>(bytes, 0).map(|b| Ipv6Addr::from(b).into()),
        _ => None,
    }
}

/// The bytes of an address, as they go over the wire.
pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}
