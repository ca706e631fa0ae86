//! Looks at a pod's network namespace.

use std::{collections::BTreeMap, fs, io, path::Path};

use crate::{
    NetworkError,
    links::{Link, Links, Route},
    nat::{self, Family},
};

/// All that decisions are made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    pub links: Vec<Link>,
    pub routes: Vec<Route>,
    /// Kernel settings below `/proc/sys`, as far as they are there.
    pub settings: BTreeMap<String, String>,
    /// What our NAT rules say whose they are.
    pub marks: BTreeMap<Family, Vec<String>>,
}

impl Observed {
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }

    /// Whether the kernel does IPv6 at all.
    pub fn ipv6(&self) -> bool {
        self.settings.contains_key(FORWARDING6)
    }
}

pub const FORWARDING4: &str = "net/ipv4/ip_forward";
pub const FORWARDING6: &str = "net/ipv6/conf/all/forwarding";
pub const ARP_IGNORE: &str = "net/ipv4/conf/all/arp_ignore";
pub const PING_GROUPS: &str = "net/ipv4/ping_group_range";
pub const FIRST_FREE_PORT: &str = "net/ipv4/ip_unprivileged_port_start";

/// Lets packets for 127.0.0.1 be routed to a link.
pub fn route_local(link: &str) -> String {
    format!("net/ipv4/conf/{link}/route_localnet")
}

/// Takes packets from our own addresses, when they come in by a link.
pub fn accept_local(link: &str) -> String {
    format!("net/ipv4/conf/{link}/accept_local")
}

/// Turns IPv6 off on a link.
pub fn no_ipv6(link: &str) -> String {
    format!("net/ipv6/conf/{link}/disable_ipv6")
}

/// Looks at the network namespace of the calling thread; at its NAT rules only if asked.
pub fn observe(rules: bool) -> Result<Observed, NetworkError> {
    let failed = |what| move |source| NetworkError::Observe { what, source };
    let mut socket = Links::open().map_err(failed("links"))?;
    let links = socket.all().map_err(failed("links"))?;
    let routes = socket.routes().map_err(failed("routes"))?;
    let mut observed = Observed { settings: settings(&links), links, routes, marks: BTreeMap::new() };
    if rules {
        for family in [Family::V4, Family::V6] {
            observed.marks.insert(family, nat::marks(family).map_err(failed("NAT rules"))?);
        }
    }
    Ok(observed)
}

fn settings(links: &[Link]) -> BTreeMap<String, String> {
    let general = [FORWARDING4, FORWARDING6, ARP_IGNORE, PING_GROUPS, FIRST_FREE_PORT].map(str::to_owned);
    let of_links =
        links.iter().flat_map(|link| [route_local, accept_local, no_ipv6].map(|key| key(&link.name)));
    general.into_iter().chain(of_links).filter_map(|key| Some((key.clone(), read(&key).ok()?))).collect()
}

fn read(key: &str) -> io::Result<String> {
    let text = fs::read_to_string(Path::new("/proc/sys").join(key))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}
