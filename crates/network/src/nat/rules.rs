//! Decides the NAT rules of a masquerading interface.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use ring::digest::{SHA256, digest};

use crate::{Masquerade, Ports, Protocol};

/// A pod with an Istio proxy talks to its guest from here.
const ISTIO_LOOPBACK: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);
/// What Istio's proxy listens on.
const ISTIO_PORTS: [u16; 10] = [15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090];
/// What Istio's proxy does not take, so that nobody but us can bring it to the guest.
const SSH: u16 = 22;

/// The two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// `ip nat`
    V4,
    /// `ip6 nat`
    V6,
}

/// A chain of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    Prerouting,
    Input,
    Output,
    Postrouting,
    /// What came to the pod from outside.
    PreInbound,
    /// What is about to leave for the guest.
    PostInbound,
}

/// A rule: all matches, then the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub chain: Chain,
    pub matches: Vec<Match>,
    pub verdict: Verdict,
}

/// A condition of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    From(String),
    To(String),
    Source(IpAddr),
    Destination(IpAddr),
    Ports(Ports),
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Masquerade,
    Jump(Chain),
    DestinationNat(IpAddr),
    SourceNat(IpAddr),
    Return,
}

/// Who is who, in one address family.
pub struct Setup<'a> {
    pub pod_interface: &'a str,
    pub pod_address: IpAddr,
    pub bridge: &'a str,
    pub gateway: IpAddr,
    pub guest: IpAddr,
    pub masquerade: &'a Masquerade,
}

/// The rules for one address family.
pub fn rules(setup: &Setup<'_>) -> Vec<Rule> {
    let mut rules = vec![
        rule(Chain::Postrouting, [Match::Source(setup.guest)], Verdict::Masquerade),
        rule(
            Chain::Prerouting,
            [Match::From(setup.pod_interface.to_owned())],
            Verdict::Jump(Chain::PreInbound),
        ),
        rule(Chain::Postrouting, [Match::To(setup.bridge.to_owned())], Verdict::Jump(Chain::PostInbound)),
    ];
    rules.extend(kept(setup, &setup.masquerade.kept_ports));
    if setup.masquerade.ports.is_empty() {
        if setup.masquerade.istio {
            rules.extend(kept(setup, &ISTIO_PORTS));
        }
        rules.extend(forwarded(setup, None));
    }
    for ports in &setup.masquerade.ports {
        rules.extend(forwarded(setup, Some(*ports)));
    }
    rules
}

/// Leaves what the pod says to itself on `ports` alone.
fn kept(setup: &Setup<'_>, ports: &[u16]) -> Vec<Rule> {
    let local = Match::Source(loopback(setup.guest));
    let matches = |port| [Match::Ports(Ports::one(Protocol::Tcp, port)), local.clone()];
    let chains = [Chain::Output, Chain::PostInbound];
    let keep = |chain| ports.iter().map(move |port| rule(chain, matches(*port), Verdict::Return));
    chains.into_iter().flat_map(keep).collect()
}

/// Brings some ports, or all, to the guest: from outside, and from the pod itself.
fn forwarded(setup: &Setup<'_>, ports: Option<Ports>) -> Vec<Rule> {
    let to_guest = Verdict::DestinationNat(setup.guest);
    let on = |ports: Option<Ports>| ports.map(Match::Ports);
    let istio4 = setup.masquerade.istio && setup.guest.is_ipv4();
    let mut senders = vec![loopback(setup.guest)];
    let mut receivers = vec![loopback(setup.guest)];
    if istio4 {
        senders.push(ISTIO_LOOPBACK.into());
        receivers.push(setup.pod_address);
    }
    let mut rules = Vec::new();
    if !setup.masquerade.istio {
        rules.push(rule(Chain::PreInbound, on(ports), to_guest));
    } else if ports.is_none_or(|ports| ports.contains(SSH)) {
        rules.push(rule(Chain::PreInbound, on(Some(Ports::one(Protocol::Tcp, SSH))), to_guest));
    }
    for sender in senders {
        let matches = on(ports).into_iter().chain([Match::Source(sender)]);
        rules.push(rule(Chain::PostInbound, matches, Verdict::SourceNat(setup.gateway)));
    }
    for receiver in receivers {
        let matches = [Match::Destination(receiver)].into_iter().chain(on(ports));
        rules.push(rule(Chain::Output, matches, to_guest));
    }
    rules
}

fn rule(chain: Chain, matches: impl IntoIterator<Item = Match>, verdict: Verdict) -> Rule {
    Rule { chain, matches: matches.into_iter().collect(), verdict }
}

fn loopback(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

/// A short text that stands for these rules and no others.
pub fn fingerprint(rules: &[Rule]) -> String {
    let text: String = rules.iter().map(|rule| format!("{rule}\n")).collect();
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Chain {
    /// All chains, in the order in which they have to be made.
    pub const ALL: [Self; 6] =
        [Self::Prerouting, Self::Input, Self::Output, Self::Postrouting, Self::PreInbound, Self::PostInbound];

    pub fn name(self) -> &'static str {
        match self {
            Self::Prerouting => "prerouting",
            Self::Input => "input",
            Self::Output => "output",
            Self::Postrouting => "postrouting",
            Self::PreInbound => "KUBEVIRT_PREINBOUND",
            Self::PostInbound => "KUBEVIRT_POSTINBOUND",
        }
    }

    /// The kernel's hook and priority of a chain that packets come to by themselves.
    pub fn hook(self) -> Option<(u32, i32)> {
        match self {
            Self::Prerouting => Some((0, -100)),
            Self::Input => Some((1, 100)),
            Self::Output => Some((3, -100)),
            Self::Postrouting => Some((4, 100)),
            Self::PreInbound | Self::PostInbound => None,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::V4 { "ip" } else { "ip6" })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.chain.name())?;
        for condition in &self.matches {
            match condition {
                Match::From(name) => write!(f, " iifname {name}")?,
                Match::To(name) => write!(f, " oifname {name}")?,
                Match::Source(address) => write!(f, " saddr {address}")?,
                Match::Destination(address) => write!(f, " daddr {address}")?,
                Match::Ports(ports) => write!(f, " {ports}")?,
            }
        }
        match self.verdict {
            Verdict::Masquerade => write!(f, " masquerade"),
            Verdict::Jump(chain) => write!(f, " jump {}", chain.name()),
            Verdict::DestinationNat(address) => write!(f, " dnat to {address}"),
            Verdict::SourceNat(address) => write!(f, " snat to {address}"),
            Verdict::Return => write!(f, " return"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(v4: bool, masquerade: &Masquerade) -> Vec<String> {
        let [pod, gateway, guest] =
            if v4 { ["10.9.8.7", "10.0.2.1", "10.0.2.2"] } else { ["fd99::7", "fd10:0:2::1", "fd10:0:2::2"] };
        let setup = Setup {
            pod_interface: "eth0",
            pod_address: pod.parse().unwrap(),
            bridge: "k6t-eth0",
            gateway: gateway.parse().unwrap(),
            guest: guest.parse().unwrap(),
            masquerade,
        };
        let rules = rules(&setup);
        let always = [
            format!("postrouting saddr {guest} masquerade"),
            "prerouting iifname eth0 jump KUBEVIRT_PREINBOUND".to_owned(),
            "postrouting oifname k6t-eth0 jump KUBEVIRT_POSTINBOUND".to_owned(),
        ];
        let text: Vec<String> = rules.iter().map(ToString::to_string).collect();
        assert_eq!(text[..3], always);
        text[3..].to_vec()
    }

    #[test]
    fn everything_leads_to_the_guest() {
        assert_eq!(
            text(true, &Masquerade::default()),
            [
                "KUBEVIRT_PREINBOUND dnat to 10.0.2.2",
                "KUBEVIRT_POSTINBOUND saddr 127.0.0.1 snat to 10.0.2.1",
                "output daddr 127.0.0.1 dnat to 10.0.2.2",
            ]
        );
        assert_eq!(
            text(false, &Masquerade::default()),
            [
                "KUBEVIRT_PREINBOUND dnat to fd10:0:2::2",
                "KUBEVIRT_POSTINBOUND saddr ::1 snat to fd10:0:2::1",
                "output daddr ::1 dnat to fd10:0:2::2",
            ]
        );
    }

    #[test]
    fn only_some_ports_lead_to_the_guest() {
        let ports =
            vec![Ports::one(Protocol::Tcp, 80), Ports { protocol: Protocol::Udp, first: 5000, last: 5010 }];
        assert_eq!(
            text(true, &Masquerade { ports, kept_ports: vec![49152], ..Masquerade::default() }),
            [
                "output tcp dport 49152 saddr 127.0.0.1 return",
                "KUBEVIRT_POSTINBOUND tcp dport 49152 saddr 127.0.0.1 return",
                "KUBEVIRT_PREINBOUND tcp dport 80 dnat to 10.0.2.2",
                "KUBEVIRT_POSTINBOUND tcp dport 80 saddr 127.0.0.1 snat to 10.0.2.1",
                "output daddr 127.0.0.1 tcp dport 80 dnat to 10.0.2.2",
                "KUBEVIRT_PREINBOUND udp dport 5000-5010 dnat to 10.0.2.2",
                "KUBEVIRT_POSTINBOUND udp dport 5000-5010 saddr 127.0.0.1 snat to 10.0.2.1",
                "output daddr 127.0.0.1 udp dport 5000-5010 dnat to 10.0.2.2",
            ]
        );
    }

    #[test]
    fn istio_comes_first() {
        let all = text(true, &Masquerade { istio: true, ..Masquerade::default() });
        assert_eq!(all.len(), 2 * ISTIO_PORTS.len() + 5);
        assert_eq!(all[0], "output tcp dport 15000 saddr 127.0.0.1 return");
        assert_eq!(
            all[2 * ISTIO_PORTS.len()..],
            [
                "KUBEVIRT_PREINBOUND tcp dport 22 dnat to 10.0.2.2",
                "KUBEVIRT_POSTINBOUND saddr 127.0.0.1 snat to 10.0.2.1",
                "KUBEVIRT_POSTINBOUND saddr 127.0.0.6 snat to 10.0.2.1",
                "output daddr 127.0.0.1 dnat to 10.0.2.2",
                "output daddr 10.9.8.7 dnat to 10.0.2.2",
            ]
        );
        let ports = vec![Ports::one(Protocol::Tcp, 80)];
        assert_eq!(
            text(false, &Masquerade { istio: true, ports, ..Masquerade::default() }),
            [
                "KUBEVIRT_POSTINBOUND tcp dport 80 saddr ::1 snat to fd10:0:2::1",
                "output daddr ::1 tcp dport 80 dnat to fd10:0:2::2",
            ]
        );
        let ssh = vec![Ports { protocol: Protocol::Tcp, first: 20, last: 30 }];
        let ssh = text(true, &Masquerade { istio: true, ports: ssh, ..Masquerade::default() });
        assert_eq!(ssh[0], "KUBEVIRT_PREINBOUND tcp dport 22 dnat to 10.0.2.2");
    }
}
