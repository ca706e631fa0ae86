//! Decides which changes lead from what is there to what a wiring says.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{
    discovery::gateways,
    observe::{
        ARP_IGNORE, FIRST_FREE_PORT, FORWARDING4, FORWARDING6, Observed, PING_GROUPS, accept_local, no_ipv6,
        route_local,
    },
    step::Change,
};
use crate::{
    Binding, BindingKind, InterfaceRequest, Mac, Masquerade, Wiring,
    links::Link,
    names,
    nat::{Family, Setup, fingerprint, rules},
};

/// How a link is to be. What is not set may be as it likes.
#[derive(Default)]
struct Wish<'a> {
    name: &'a str,
    /// The link that it is, or is made of.
    link: Option<&'a Link>,
    /// How it comes to be.
    origin: Option<Change>,
    mac: Option<Mac>,
    mtu: Option<u32>,
    bridge: Option<&'a str>,
    addresses: Option<Vec<IpNet>>,
    quiet: bool,
    unlearning: bool,
    up: bool,
}

/// The changes that are still missing, in order. None, if all is done.
pub fn decide(observed: &Observed, pairs: &[(InterfaceRequest, Wiring)]) -> Vec<Change> {
    let mut changes = Vec::new();
    for (request, wiring) in pairs {
        match &request.binding {
            Binding::Masquerade(masquerade) => {
                changes.extend(masquerading(observed, request, wiring, masquerade));
            }
            Binding::Bridge | Binding::ManagedTap => changes.extend(bridging(observed, request, wiring)),
            Binding::Passt => changes.extend(
                [
                    set(observed, PING_GROUPS, &format!("{0} {0}", request.owner)),
                    set(observed, FIRST_FREE_PORT, "0"),
                ]
                .into_iter()
                .flatten(),
            ),
        }
    }
    changes
}

fn masquerading(
    observed: &Observed,
    request: &InterfaceRequest,
    wiring: &Wiring,
    masquerade: &Masquerade,
) -> Vec<Change> {
    let (Some(bridge), Some(tap)) = (&wiring.bridge, &wiring.tap) else { return Vec::new() };
    let gateways = gateways(wiring, masquerade);
    let mut changes = fulfil(
        observed,
        Wish {
            name: bridge,
            link: observed.link(bridge),
            origin: Some(Change::AddBridge { name: bridge.clone(), mac: Mac::GATEWAY }),
            mac: Some(Mac::GATEWAY),
            mtu: Some(wiring.mtu),
            addresses: Some(gateways.clone()),
            up: true,
            ..Wish::default()
        },
    );
    changes.extend(fulfil(observed, tap_wish(observed, request, wiring, tap, bridge)));
    for gateway in gateways {
        changes.extend(routing(observed, bridge, gateway));
        changes.extend(translation(observed, wiring, masquerade, bridge, gateway));
    }
    changes
}

fn routing(observed: &Observed, bridge: &str, gateway: IpNet) -> Vec<Change> {
    let changes = match gateway {
        IpNet::V4(_) => vec![set(observed, &route_local(bridge), "1"), set(observed, FORWARDING4, "1")],
        IpNet::V6(_) => vec![set(observed, FORWARDING6, "1")],
    };
    changes.into_iter().flatten().collect()
}

fn translation(
    observed: &Observed,
    wiring: &Wiring,
    masquerade: &Masquerade,
    bridge: &str,
    gateway: IpNet,
) -> Option<Change> {
    let family = if gateway.addr().is_ipv4() { Family::V4 } else { Family::V6 };
    let guest: IpAddr = match family {
        Family::V4 => wiring.dhcp4.as_ref()?.address.addr().into(),
        Family::V6 => wiring.dhcp6.as_ref()?.address.into(),
    };
    let rules = rules(&Setup {
        pod_interface: &wiring.pod.name,
        pod_address: wiring.pod.addresses.iter().map(IpNet::addr).find(|a| a.is_ipv4() == guest.is_ipv4())?,
        bridge,
        gateway: gateway.addr(),
        guest,
        masquerade,
    });
    let wanted = vec![fingerprint(&rules); rules.len()];
    (observed.marks.get(&family) != Some(&wanted)).then_some(Change::SetRules { family, rules })
}

fn bridging(observed: &Observed, request: &InterfaceRequest, wiring: &Wiring) -> Vec<Change> {
    let (Some(bridge), Some(tap)) = (&wiring.bridge, &wiring.tap) else { return Vec::new() };
    let port = names::port(&wiring.pod.name);
    let mac = wiring.pod.mac.stand_in();
    let server = wiring.dhcp4.as_ref().map(|lease| IpNet::from(IpAddr::from(lease.server)));
    // Once the pod's interface is renamed, its old name is that of the stand-in.
    let renamed = observed.link(&port);
    let stand_in = renamed.and_then(|_| observed.link(&wiring.pod.name));
    let mut changes = fulfil(
        observed,
        Wish {
            name: bridge,
            link: observed.link(bridge),
            origin: Some(Change::AddBridge { name: bridge.clone(), mac }),
            mac: Some(mac),
            addresses: Some(server.into_iter().collect()),
            quiet: true,
            up: true,
            ..Wish::default()
        },
    );
    changes.extend(fulfil(
        observed,
        Wish {
            name: &port,
            link: renamed.or_else(|| observed.link(&wiring.pod.name)),
            mac: Some(mac),
            bridge: Some(bridge),
            addresses: Some(Vec::new()),
            quiet: true,
            unlearning: true,
            up: true,
            ..Wish::default()
        },
    ));
    changes.extend(fulfil(observed, tap_wish(observed, request, wiring, tap, bridge)));
    let name = &wiring.pod.name;
    changes.extend(fulfil(
        observed,
        Wish {
            name,
            link: stand_in,
            origin: Some(Change::AddStandIn { name: name.clone(), mac: wiring.pod.mac }),
            mac: Some(wiring.pod.mac),
            mtu: Some(wiring.mtu),
            addresses: Some(wiring.pod.addresses.clone()),
            ..Wish::default()
        },
    ));
    // The guest asks its DHCP server from the address that the stand-in has too.
    if wiring.dhcp4.is_some() {
        changes.extend(set(observed, &accept_local(bridge), "1"));
    }
    // Else the pod would answer for the guest's address, which the stand-in has too.
    if wiring.pod.addresses.iter().any(|net| net.addr().is_ipv4()) {
        changes.extend(set(observed, ARP_IGNORE, "1"));
    }
    changes
}

fn tap_wish<'a>(
    observed: &'a Observed,
    request: &InterfaceRequest,
    wiring: &Wiring,
    tap: &'a str,
    bridge: &'a str,
) -> Wish<'a> {
    let (multi_queue, owner) = (wiring.multi_queue, request.owner);
    Wish {
        name: tap,
        link: observed.link(tap),
        origin: Some(Change::AddTap { name: tap.to_owned(), multi_queue, owner }),
        mtu: Some(wiring.mtu),
        bridge: Some(bridge),
        quiet: true,
        up: true,
        ..Wish::default()
    }
}

/// What makes a wish come true.
fn fulfil(observed: &Observed, wish: Wish<'_>) -> Vec<Change> {
    let link = || wish.name.to_owned();
    let fresh = match (&wish.link, &wish.origin) {
        (None, Some(Change::AddBridge { mac, .. } | Change::AddStandIn { mac, .. })) => {
            Link { mac: Some(*mac), ..Link::default() }
        }
        _ => Link::default(),
    };
    let is = wish.link.unwrap_or(&fresh);
    let mut changes: Vec<Change> = wish.origin.clone().filter(|_| wish.link.is_none()).into_iter().collect();
    let renamed = wish.link.is_some() && is.name != wish.name;
    let new_mac = wish.mac.filter(|mac| is.mac != Some(*mac));

    let (missing, surplus) = difference(wish.addresses.as_deref(), &is.addresses);
    let old = if renamed { is.name.clone() } else { link() };
    changes.extend(surplus.into_iter().map(|address| Change::RemoveAddress { link: old.clone(), address }));
    let pause = is.up && (renamed || new_mac.is_some());
    if pause {
        changes.push(Change::Down { link: old.clone() });
    }
    if renamed {
        changes.push(Change::Rename { link: old, to: link() });
    }
    changes.extend(new_mac.map(|mac| Change::SetMac { link: link(), mac }));
    changes.extend(wish.mtu.filter(|mtu| is.mtu != *mtu).map(|mtu| Change::SetMtu { link: link(), mtu }));
    changes.extend(ipv6(observed, &wish));
    let attached = |bridge: &&str| is.master.is_some() && is.master == observed.link(bridge).map(|b| b.index);
    changes.extend(
        wish.bridge
            .filter(|bridge| !attached(bridge))
            .map(|bridge| Change::Attach { link: link(), bridge: bridge.to_owned() }),
    );
    if wish.unlearning && (is.learning || is.master.is_none()) {
        changes.push(Change::StopLearning { link: link() });
    }
    changes.extend(missing.into_iter().map(|address| Change::AddAddress { link: link(), address }));
    if wish.up && (!is.up || pause) {
        changes.push(Change::Up { link: link() });
    }
    changes
}

/// Turns IPv6 off where the kernel must not speak for itself, and on where it has addresses to keep.
fn ipv6(observed: &Observed, wish: &Wish<'_>) -> Option<Change> {
    let needed = wish.addresses.iter().flatten().any(|net| net.addr().is_ipv6());
    let (key, value) = (no_ipv6(wish.name), if needed { "0" } else { "1" });
    if !observed.ipv6() || !(needed || wish.quiet) {
        return None;
    }
    // Of a link that is not there yet, nothing is known: a namesake may be.
    if wish.link.is_none() {
        Some(Change::Set { key, value: value.to_owned() })
    } else {
        set(observed, &key, value)
    }
}

/// Which addresses are missing and which are too many. Those of the link itself come and go as they like.
fn difference(wanted: Option<&[IpNet]>, present: &[IpNet]) -> (Vec<IpNet>, Vec<IpNet>) {
    let Some(wanted) = wanted else { return (Vec::new(), Vec::new()) };
    let own = |net: &IpNet| matches!(net.addr(), IpAddr::V6(address) if address.is_unicast_link_local());
    let missing = wanted.iter().copied().filter(|net| !present.contains(net)).collect();
    let surplus = present.iter().copied().filter(|net| !wanted.contains(net) && !own(net)).collect();
    (missing, surplus)
}

fn set(observed: &Observed, key: &str, value: &str) -> Option<Change> {
    let is = observed.settings.get(key);
    (is.map(String::as_str) != Some(value))
        .then(|| Change::Set { key: key.to_owned(), value: value.to_owned() })
}

/// The changes that take down what was made for a network.
pub fn removal(observed: &Observed, wiring: &Wiring) -> Vec<Change> {
    let stand_in = matches!(wiring.binding, BindingKind::Bridge | BindingKind::ManagedTap)
        && observed.link(&names::port(&wiring.pod.name)).is_some();
    let links = [wiring.tap.as_ref(), wiring.bridge.as_ref(), stand_in.then_some(&wiring.pod.name)];
    let there = links.into_iter().flatten().filter(|name| observed.link(name).is_some());
    let rules = observed.marks.iter().filter(|(_, marks)| !marks.is_empty());
    let rules = rules.map(|(family, _)| Change::ClearRules { family: *family });
    there.map(|name| Change::Remove { link: name.clone() }).chain(rules).collect()
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
