//! Decides how each network is to be wired up: names, addresses, and what the guest is told.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::observe::Observed;
use crate::{
    Binding, BindingKind, InterfaceRequest, Lease4, Lease6, Mac, Masquerade, NetworkError, PodLink,
    StaticRoute, Wiring,
    links::{Link, Route},
    names,
};

const RANGE4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 2, 0), 24);
const RANGE6: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0xfd10, 0, 2, 0, 0, 0, 0, 0), 120);

/// The wiring of each requested network.
pub fn discover(
    observed: &Observed,
    requests: &[InterfaceRequest],
    known: &[Wiring],
) -> Result<Vec<Wiring>, NetworkError> {
    let mut masquerading = requests.iter().filter(|r| matches!(r.binding, Binding::Masquerade(_)));
    if let (Some(first), Some(second)) = (masquerading.next(), masquerading.next()) {
        let (first, second) = (first.network.clone(), second.network.clone());
        return Err(NetworkError::TwoMasquerades { first, second });
    }
    let known = |request: &InterfaceRequest| known.iter().find(|w| w.network == request.network);
    requests.iter().map(|request| wiring(observed, request, known(request))).collect()
}

fn wiring(
    observed: &Observed,
    request: &InterfaceRequest,
    known: Option<&Wiring>,
) -> Result<Wiring, NetworkError> {
    let name = pod_interface(observed, request)?;
    if names::bridge(name).len().max(names::port(name).len()) > names::LONGEST {
        return Err(NetworkError::LongName(name.to_owned()));
    }
    let kind = request.binding.kind();
    let takes_over = matches!(kind, BindingKind::Bridge | BindingKind::ManagedTap);
    // An interface that is being taken apart does not tell the truth any more: what is known goes first.
    if takes_over && let Some(known) = known.filter(|known| known.binding == kind && known.pod.name == name) {
        return Ok(remembered(observed, request, known));
    }
    let link = observed.link(name).filter(|_| !takes_over || observed.link(&names::port(name)).is_none());
    let (Some(link), Some(mac)) = (link, link.and_then(|link| link.mac)) else {
        return Err(NetworkError::Forgotten { network: request.network.clone(), interface: name.to_owned() });
    };
    let mut wiring = basis(observed, request, link, mac);
    match &request.binding {
        Binding::Masquerade(masquerade) => add_masquerade(&mut wiring, masquerade)?,
        Binding::Bridge => add_bridge(&mut wiring, request.place, &observed.routes, link),
        Binding::ManagedTap => {}
        Binding::Passt => (wiring.tap, wiring.bridge) = (None, None),
    }
    Ok(wiring)
}

/// The name of the pod's interface: of the link, or of the one that it was renamed from.
fn pod_interface<'a>(observed: &Observed, request: &'a InterfaceRequest) -> Result<&'a str, NetworkError> {
    let there = |name: &&String| observed.link(name).or_else(|| observed.link(&names::port(name))).is_some();
    request.pod_interfaces.iter().find(there).map(String::as_str).ok_or_else(|| {
        NetworkError::MissingInterface {
            network: request.network.clone(),
            tried: request.pod_interfaces.clone(),
        }
    })
}

/// What all bindings have in common.
fn basis(observed: &Observed, request: &InterfaceRequest, link: &Link, mac: Mac) -> Wiring {
    let tap = names::tap(&link.name, request.primary);
    let addresses: Vec<IpNet> =
        link.addresses.iter().copied().filter(|net| beyond_link(net.addr())).collect();
    let first = |v4| addresses.iter().map(IpNet::addr).find(|address| address.is_ipv4() == v4);
    Wiring {
        network: request.network.clone(),
        binding: request.binding.kind(),
        addresses: first(true).into_iter().chain(first(false)).collect(),
        pod: PodLink { name: link.name.clone(), mac, addresses },
        multi_queue: multi_queue(observed, &tap, request),
        queues: request.queues.max(1),
        tap: Some(tap),
        bridge: Some(names::bridge(&link.name)),
        mtu: link.mtu,
        mac: request.mac.unwrap_or(mac),
        dhcp4: None,
        dhcp6: None,
    }
}

fn remembered(observed: &Observed, request: &InterfaceRequest, known: &Wiring) -> Wiring {
    let mut wiring = known.clone();
    if let Some(tap) = &known.tap {
        wiring.multi_queue = multi_queue(observed, tap, request);
        wiring.queues = request.queues.max(1);
    }
    if let Some(mac) = request.mac {
        wiring.mac = mac;
        if let Some(lease) = &mut wiring.dhcp4 {
            lease.client = Some(mac);
        }
    }
    wiring
}

/// A tap that is there, and perhaps in use, stays as it is.
fn multi_queue(observed: &Observed, tap: &str, request: &InterfaceRequest) -> bool {
    observed.link(tap).map_or(request.queues > 1, |link| link.multi_queue)
}

fn add_masquerade(wiring: &mut Wiring, masquerade: &Masquerade) -> Result<(), NetworkError> {
    let small = |range: &dyn ToString| NetworkError::SmallRange {
        network: wiring.network.clone(),
        range: range.to_string(),
    };
    let has = |v4: bool| wiring.addresses.iter().any(|address| address.is_ipv4() == v4);
    if has(true) {
        let range = masquerade.range4.unwrap_or(RANGE4);
        let (gateway, guest) = first_two4(range).ok_or_else(|| small(&range))?;
        let address = Ipv4Net::new(guest, range.prefix_len()).map_err(|_| small(&range))?;
        let lease =
            Lease4 { address, server: gateway, router: Some(gateway), routes: Vec::new(), client: None };
        wiring.dhcp4 = Some(lease);
    }
    if has(false) {
        let range = masquerade.range6.unwrap_or(RANGE6);
        let (_, guest) = first_two6(range).ok_or_else(|| small(&range))?;
        wiring.dhcp6 = Some(Lease6 { address: guest });
    }
    Ok(())
}

/// The gateway's and the guest's address in a range.
fn first_two4(range: Ipv4Net) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let base = u32::from(range.network());
    (range.prefix_len() <= 30).then(|| ((base + 1).into(), (base + 2).into()))
}

/// As [`first_two4`]; the gateway has the whole range on its link.
pub fn first_two6(range: Ipv6Net) -> Option<(Ipv6Net, Ipv6Addr)> {
    let base = u128::from(range.network());
    let gateway = Ipv6Net::new((base + 1).into(), range.prefix_len()).ok()?;
    (range.prefix_len() <= 126).then(|| (gateway, (base + 2).into()))
}

/// The gateway on a masquerading bridge, per address family.
pub fn gateways(wiring: &Wiring, masquerade: &Masquerade) -> Vec<IpNet> {
    let v4 =
        wiring.dhcp4.as_ref().and_then(|lease| Ipv4Net::new(lease.server, lease.address.prefix_len()).ok());
    let v6 = wiring.dhcp6.as_ref().and_then(|_| first_two6(masquerade.range6.unwrap_or(RANGE6)));
    v4.map(IpNet::V4).into_iter().chain(v6.map(|(gateway, _)| IpNet::V6(gateway))).collect()
}

/// Nobody serves DHCPv6 on a bridge, so the pod's IPv6 address never gets to the guest.
fn add_bridge(wiring: &mut Wiring, place: u8, routes: &[Route], link: &Link) {
    wiring.addresses.retain(IpAddr::is_ipv4);
    let address = wiring.pod.addresses.iter().find_map(|net| match net {
        IpNet::V4(net) => Some(*net),
        IpNet::V6(_) => None,
    });
    let Some(address) = address else { return };
    let routes: Vec<_> = routes.iter().filter(|route| route.link == link.index).collect();
    let is_default = |route: &StaticRoute| route.destination.prefix_len() == 0;
    let mut others: Vec<StaticRoute> = routes
        .iter()
        .map(|route| StaticRoute { destination: route.destination, gateway: route.gateway })
        .filter(|route| is_default(route) || route.destination != address.trunc())
        .collect();
    // A guest that sets them in turn can reach the default gateway only by then.
    others.sort_by_key(is_default);
    wiring.dhcp4 = Some(Lease4 {
        address,
        server: stand_in_server(place),
        router: others.iter().find(|route| is_default(route)).and_then(|route| route.gateway),
        routes: others,
        client: Some(wiring.mac),
    });
}

/// An address for the DHCP server on a bridge where all others belong to someone else.
fn stand_in_server(place: u8) -> Ipv4Addr {
    let last = match place {
        0..10 => 10 + place,
        10..100 => 100 + place,
        _ => place,
    };
    Ipv4Addr::new(169, 254, 75, last)
}

fn beyond_link(address: IpAddr) -> bool {
    !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && match address {
            IpAddr::V4(address) => !address.is_link_local() && !address.is_broadcast(),
            IpAddr::V6(address) => !address.is_unicast_link_local(),
        }
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
