//! Reads and changes links, addresses and routes of the thread's network namespace.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
};

use ipnet::{IpNet, Ipv4Net};

use crate::{
    Mac,
    bytes::{address, array, octets},
    netlink::{Attributes, Message, Reply, Socket, attributes, flag, nested, text},
};

const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const SET_LINK: u16 = 19;
const NEW_ADDRESS: u16 = 20;
const DELETE_ADDRESS: u16 = 21;
const GET_ADDRESS: u16 = 22;
const GET_ROUTE: u16 = 26;

const LINK_ADDRESS: u16 = 1;
const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
const LINK_MASTER: u16 = 10;
const LINK_INFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const INFO_PORT_KIND: u16 = 4;
const INFO_PORT_DATA: u16 = 5;
const PORT_LEARNING: u16 = 8;
const TUN_MULTI_QUEUE: u16 = 7;

const UP: u32 = 0x1;
const NO_DUPLICATE_DETECTION: u8 = 0x2;
const MAIN_TABLE: u8 = 254;
const UNICAST: u8 = 1;

/// A link, as far as anybody here asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// `bridge`, `tun`, `dummy`, `veth`, … or nothing for real hardware.
    pub kind: String,
    pub mac: Option<Mac>,
    pub mtu: u32,
    pub up: bool,
    /// The bridge that it is a port of.
    pub master: Option<u32>,
    /// Whether its bridge learns addresses from it.
    pub learning: bool,
    /// Whether it is a tap that can have many queues.
    pub multi_queue: bool,
    pub addresses: Vec<IpNet>,
}

/// An IPv4 route of the main table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub link: u32,
    pub destination: Ipv4Net,
    pub gateway: Option<Ipv4Addr>,
}

/// The links of a network namespace.
pub struct Links(Socket);

impl Links {
    pub fn open() -> io::Result<Self> {
        Socket::route().map(Self)
    }

    /// All links with their addresses.
    pub fn all(&mut self) -> io::Result<Vec<Link>> {
        let mut links: Vec<Link> =
            self.0.dump(GET_LINK, &link_header(0, 0, 0))?.iter().filter_map(read_link).collect();
        for (index, address) in self.0.dump(GET_ADDRESS, &[0; 8])?.iter().filter_map(read_address) {
            if let Some(link) = links.iter_mut().find(|link| link.index == index) {
                link.addresses.push(address);
            }
        }
        Ok(links)
    }

    /// All IPv4 routes, in the kernel's order.
    pub fn routes(&mut self) -> io::Result<Vec<Route>> {
        let mut header = [0; 12];
        header[0] = family(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Ok(self.0.dump(GET_ROUTE, &header)?.iter().filter_map(read_route).collect())
    }

    /// Makes a link of a kind that needs no settings.
    pub fn create(&mut self, name: &str, kind: &str, mac: Mac) -> io::Result<()> {
        let flags = flag::REQUEST | flag::ACK | flag::CREATE | flag::EXCLUSIVE;
        let message = Message::new(NEW_LINK, flags, &link_header(0, 0, 0))
            .with(LINK_NAME, &text(name))
            .with(LINK_ADDRESS, &mac.0)
            .with_nested(LINK_INFO, |info| info.put_text(INFO_KIND, kind));
        self.0.change(message)
    }

    pub fn remove(&mut self, name: &str) -> io::Result<()> {
        let header = link_header(self.index(name)?, 0, 0);
        self.0.change(Message::new(DELETE_LINK, flag::REQUEST | flag::ACK, &header))
    }

    pub fn set_up(&mut self, name: &str, up: bool) -> io::Result<()> {
        let header = link_header(self.index(name)?, if up { UP } else { 0 }, UP);
        self.0.change(Message::new(SET_LINK, flag::REQUEST | flag::ACK, &header))
    }

    pub fn rename(&mut self, name: &str, to: &str) -> io::Result<()> {
        self.set(name, LINK_NAME, &text(to))
    }

    pub fn set_mac(&mut self, name: &str, mac: Mac) -> io::Result<()> {
        self.set(name, LINK_ADDRESS, &mac.0)
    }

    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> io::Result<()> {
        self.set(name, LINK_MTU, &mtu.to_ne_bytes())
    }

    /// Makes a link a port of a bridge.
    pub fn attach(&mut self, name: &str, bridge: &str) -> io::Result<()> {
        let bridge = self.index(bridge)?;
        self.set(name, LINK_MASTER, &bridge.to_ne_bytes())
    }

    /// Stops the bridge from learning addresses from a port.
    pub fn stop_learning(&mut self, name: &str) -> io::Result<()> {
        let header = link_header(self.index(name)?, 0, 0);
        let fill = |info: &mut Attributes<'_>| {
            info.put_text(INFO_PORT_KIND, "bridge");
            info.nest(INFO_PORT_DATA, |port| port.put(PORT_LEARNING, &[0]));
        };
        self.0.change(Message::new(NEW_LINK, flag::REQUEST | flag::ACK, &header).with_nested(LINK_INFO, fill))
    }

    pub fn add_address(&mut self, name: &str, net: IpNet) -> io::Result<()> {
        self.address(NEW_ADDRESS, flag::CREATE | flag::EXCLUSIVE, name, net)
    }

    pub fn remove_address(&mut self, name: &str, net: IpNet) -> io::Result<()> {
        self.address(DELETE_ADDRESS, 0, name, net)
    }

    fn address(&mut self, kind: u16, flags: u16, name: &str, net: IpNet) -> io::Result<()> {
        const ADDRESS: u16 = 1;
        const LOCAL: u16 = 2;
        let value = octets(net.addr());
        let mut header = [family(net.addr()), net.prefix_len(), NO_DUPLICATE_DETECTION, 0, 0, 0, 0, 0];
        header[4..].copy_from_slice(&self.index(name)?.to_ne_bytes());
        let message = Message::new(kind, flag::REQUEST | flag::ACK | flags, &header);
        self.0.change(message.with(LOCAL, &value).with(ADDRESS, &value))
    }

    fn set(&mut self, name: &str, attribute: u16, value: &[u8]) -> io::Result<()> {
        let header = link_header(self.index(name)?, 0, 0);
        self.0.change(Message::new(SET_LINK, flag::REQUEST | flag::ACK, &header).with(attribute, value))
    }

    fn index(&mut self, name: &str) -> io::Result<u32> {
        let links = self.0.dump(GET_LINK, &link_header(0, 0, 0))?;
        let link = links.iter().filter_map(read_link).find(|link| link.name == name);
        link.map(|link| link.index)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no link {name}")))
    }
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { 2 } else { 10 }
}

fn link_header(index: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..].copy_from_slice(&change.to_ne_bytes());
    header
}

fn read_link(reply: &Reply) -> Option<Link> {
    if reply.kind != NEW_LINK {
        return None;
    }
    let rest = reply.body.get(16..)?;
    let mut link = Link {
        index: u32::from_ne_bytes(array(&reply.body, 4)?),
        up: u32::from_ne_bytes(array(&reply.body, 8)?) & UP != 0,
        ..Link::default()
    };
    for (kind, value) in attributes(rest) {
        match kind {
            LINK_NAME => link.name = read_text(value),
            LINK_ADDRESS => link.mac = value.try_into().ok().map(Mac),
            LINK_MTU => link.mtu = array(value, 0).map(u32::from_ne_bytes)?,
            LINK_MASTER => link.master = array(value, 0).map(u32::from_ne_bytes),
            LINK_INFO => read_info(&mut link, value),
            _ => {}
        }
    }
    Some(link)
}

fn read_info(link: &mut Link, info: &[u8]) {
    let flag = |path: &[u16]| nested(info, path).and_then(<[u8]>::first).is_some_and(|value| *value != 0);
    link.kind = nested(info, &[INFO_KIND]).map(read_text).unwrap_or_default();
    link.multi_queue = link.kind == "tun" && flag(&[INFO_DATA, TUN_MULTI_QUEUE]);
    link.learning = flag(&[INFO_PORT_DATA, PORT_LEARNING]);
}

fn read_address(reply: &Reply) -> Option<(u32, IpNet)> {
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    if reply.kind != NEW_ADDRESS {
        return None;
    }
    let rest = reply.body.get(8..)?;
    // The address of a point-to-point link is that of the other end; IPv6 has no local one elsewhere.
    let value = nested(rest, &[LOCAL]).or_else(|| nested(rest, &[ADDRESS]))?;
    let net = IpNet::new(address(value)?, *reply.body.get(1)?).ok()?;
    Some((u32::from_ne_bytes(array(&reply.body, 4)?), net))
}

fn read_route(reply: &Reply) -> Option<Route> {
    const DESTINATION: u16 = 1;
    const LINK: u16 = 4;
    const GATEWAY: u16 = 5;
    let [_, prefix, _, _, table, _, _, kind, ..] = array::<12>(&reply.body, 0)?;
    if table != MAIN_TABLE || kind != UNICAST {
        return None;
    }
    let rest = reply.body.get(12..)?;
    let ipv4 = |attribute| nested(rest, &[attribute]).and_then(|value| array(value, 0)).map(Ipv4Addr::from);
    Some(Route {
        link: u32::from_ne_bytes(array(nested(rest, &[LINK])?, 0)?),
        destination: Ipv4Net::new(ipv4(DESTINATION).unwrap_or(Ipv4Addr::UNSPECIFIED), prefix).ok()?,
        gateway: ipv4(GATEWAY),
    })
}

fn read_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
