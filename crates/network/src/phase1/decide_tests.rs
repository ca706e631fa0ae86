//! A small model of the kernel takes the steps, so that every point at which a run can be cut short is tried.

use super::*;
use crate::{links::Route, phase1::discovery::discover, phase1::step::Step};

fn model(ipv6: bool) -> Observed {
    let addresses = ["10.9.8.7/24", "fd99::7/64", "fe80::1/64"];
    let eth0 = Link {
        index: 2,
        name: "eth0".to_owned(),
        kind: "veth".to_owned(),
        mac: Some(Mac([2, 0, 0, 0, 0, 9])),
        mtu: 1400,
        up: true,
        addresses: addresses[..if ipv6 { 3 } else { 1 }].iter().map(|text| text.parse().unwrap()).collect(),
        ..Link::default()
    };
    let route = Route {
        link: 2,
        destination: "0.0.0.0/0".parse().unwrap(),
        gateway: Some("10.9.8.1".parse().unwrap()),
    };
    let mut settings =
        vec![(FORWARDING4, "0"), (ARP_IGNORE, "0"), (PING_GROUPS, "1 0"), (FIRST_FREE_PORT, "1024")];
    settings.extend(ipv6.then_some((FORWARDING6, "0")));
    Observed {
        links: vec![eth0],
        routes: vec![route],
        settings: settings.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        marks: [(Family::V4, Vec::new()), (Family::V6, Vec::new())].into(),
    }
}

impl Observed {
    fn named(&mut self, name: &str) -> &mut Link {
        self.links.iter_mut().find(|link| link.name == name).unwrap()
    }

    fn add(&mut self, name: &str, kind: &str, mac: Mac) {
        assert!(self.link(name).is_none(), "{name} is there already");
        let index = self.links.iter().map(|link| link.index).max().unwrap_or_default() + 1;
        let (name, kind) = (name.to_owned(), kind.to_owned());
        self.links.push(Link { index, name, kind, mac: Some(mac), mtu: 1500, ..Link::default() });
    }

    fn take(&mut self, change: &Change) {
        match change {
            Change::AddBridge { name, mac } => self.add(name, "bridge", *mac),
            Change::AddTap { name, .. } => self.add(name, "tun", Mac([6; 6])),
            Change::AddStandIn { name, mac } => self.add(name, "dummy", *mac),
            Change::Rename { link, to } => {
                assert!(!self.named(link).up, "cannot be renamed while up");
                self.named(link).name.clone_from(to);
            }
            Change::SetMac { link, mac } => self.named(link).mac = Some(*mac),
            Change::SetMtu { link, mtu } => self.named(link).mtu = *mtu,
            Change::Attach { link, bridge } => {
                let master = self.named(bridge).index;
                let link = self.named(link);
                (link.master, link.learning) = (Some(master), true);
            }
            Change::StopLearning { link } => self.named(link).learning = false,
            Change::AddAddress { link, address } => self.named(link).addresses.push(*address),
            Change::RemoveAddress { link, address } => {
                self.named(link).addresses.retain(|net| net != address);
            }
            Change::Up { link } => self.named(link).up = true,
            Change::Down { link } => {
                let link = self.named(link);
                link.up = false;
                link.addresses.retain(|net| net.addr().is_ipv4());
                let index = link.index;
                self.routes.retain(|route| route.link != index);
            }
            Change::Set { key, value } => drop(self.settings.insert(key.clone(), value.clone())),
            Change::SetRules { family, rules } => {
                drop(self.marks.insert(*family, vec![fingerprint(rules); rules.len()]));
            }
            Change::ClearRules { family } => self.marks.entry(*family).or_default().clear(),
            Change::Remove { link } => {
                let index = self.named(link).index;
                self.links.retain(|link| link.index != index);
                self.links.iter_mut().filter(|l| l.master == Some(index)).for_each(|l| l.master = None);
            }
        }
    }
}

fn bindings() -> [Binding; 4] {
    [Binding::Masquerade(Masquerade::default()), Binding::Bridge, Binding::ManagedTap, Binding::Passt]
}

fn plan(observed: &Observed, request: &InterfaceRequest, known: &[Wiring]) -> (Vec<Wiring>, Vec<Change>) {
    let wirings = discover(observed, std::slice::from_ref(request), known).unwrap();
    let changes = decide(observed, &[(request.clone(), wirings[0].clone())]);
    (wirings, changes)
}

/// As the order of links and addresses has no meaning.
fn sorted(mut observed: Observed) -> Observed {
    for link in &mut observed.links {
        link.index = 0;
        link.master = link.master.map(|_| 0);
        link.addresses.sort();
    }
    observed.links.sort_by(|a, b| a.name.cmp(&b.name));
    observed
}

#[test]
fn wherever_a_run_is_cut_short_the_next_one_completes_it() {
    for (binding, ipv6) in
        bindings().into_iter().flat_map(|binding| [(binding.clone(), true), (binding, false)])
    {
        let request = InterfaceRequest::on_pod_network(binding);
        let start = model(ipv6);
        let (wirings, changes) = plan(&start, &request, &[]);
        let mut end = start.clone();
        changes.iter().for_each(|change| end.take(change));
        let (again, none) = plan(&end, &request, &wirings);
        assert_eq!((&again, none), (&wirings, Vec::new()), "a second run changes nothing");

        for cut in 0..changes.len() {
            let mut state = start.clone();
            changes[..cut].iter().for_each(|change| state.take(change));
            let (again, rest) = plan(&state, &request, &wirings);
            assert_eq!(again, wirings);
            rest.iter().for_each(|change| state.take(change));
            assert_eq!(sorted(state), sorted(end.clone()), "{request:?} cut after {cut}");
        }
    }
}

fn text(changes: Vec<Change>) -> Vec<String> {
    changes.into_iter().map(|change| Step(change).to_string()).collect()
}

#[test]
fn steps_of_a_masquerade() {
    let request = InterfaceRequest {
        queues: 2,
        ..InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade::default()))
    };
    assert_eq!(
        text(plan(&model(true), &request, &[]).1),
        [
            "add bridge k6t-eth0 with 02:00:00:00:00:00",
            "set MTU of k6t-eth0 to 1400",
            "set net/ipv6/conf/k6t-eth0/disable_ipv6 to 0",
            "add 10.0.2.1/24 to k6t-eth0",
            "add fd10:0:2::1/120 to k6t-eth0",
            "set k6t-eth0 up",
            "add tap tap0 of user 107 with many queues",
            "set MTU of tap0 to 1400",
            "set net/ipv6/conf/tap0/disable_ipv6 to 1",
            "attach tap0 to k6t-eth0",
            "set tap0 up",
            "set net/ipv4/conf/k6t-eth0/route_localnet to 1",
            "set net/ipv4/ip_forward to 1",
            "set 6 rules of ip nat",
            "set net/ipv6/conf/all/forwarding to 1",
            "set 6 rules of ip6 nat",
        ]
    );
}

#[test]
fn steps_of_a_bridge() {
    let stand_in = Mac([2, 0, 0, 0, 0, 9]).stand_in();
    assert_eq!(
        text(plan(&model(false), &InterfaceRequest::on_pod_network(Binding::Bridge), &[]).1),
        [
            &format!("add bridge k6t-eth0 with {stand_in}"),
            "add 169.254.75.10/32 to k6t-eth0",
            "set k6t-eth0 up",
            "remove 10.9.8.7/24 from eth0",
            "set eth0 down",
            "rename eth0 to eth0-nic",
            &format!("set hardware address of eth0-nic to {stand_in}"),
            "attach eth0-nic to k6t-eth0",
            "stop learning from eth0-nic",
            "set eth0-nic up",
            "add tap tap0 of user 107 with one queue",
            "set MTU of tap0 to 1400",
            "attach tap0 to k6t-eth0",
            "set tap0 up",
            "add stand-in eth0 with 02:00:00:00:00:09",
            "set MTU of eth0 to 1400",
            "add 10.9.8.7/24 to eth0",
            "set net/ipv4/conf/k6t-eth0/accept_local to 1",
            "set net/ipv4/conf/all/arp_ignore to 1",
        ]
    );
}

#[test]
fn all_is_made_for_the_user_that_asks() {
    for owner in [107, 0] {
        let steps = |binding| {
            let request = InterfaceRequest { owner, ..InterfaceRequest::on_pod_network(binding) };
            text(plan(&model(true), &request, &[]).1)
        };
        let pings = format!("set net/ipv4/ping_group_range to {owner} {owner}");
        assert!(steps(Binding::Passt).contains(&pings), "{:?}", steps(Binding::Passt));
        for binding in [Binding::Bridge, Binding::ManagedTap, Binding::Masquerade(Masquerade::default())] {
            let (tap, steps) = (format!("add tap tap0 of user {owner} with one queue"), steps(binding));
            assert!(steps.contains(&tap), "{steps:?}");
        }
    }
}

#[test]
fn removal_leaves_the_pods_own_interface() {
    for binding in bindings() {
        let request = InterfaceRequest::on_pod_network(binding);
        let mut state = model(true);
        let (wirings, changes) = plan(&state, &request, &[]);
        changes.iter().for_each(|change| state.take(change));
        removal(&state, &wirings[0]).iter().for_each(|change| state.take(change));
        let names: Vec<_> = state.links.iter().map(|link| link.name.as_str()).collect();
        let taken_over = matches!(request.binding, Binding::Bridge | Binding::ManagedTap);
        assert_eq!(names, [if taken_over { "eth0-nic" } else { "eth0" }]);
        assert!(state.marks.values().all(Vec::is_empty));
        assert_eq!(removal(&state, &wirings[0]), []);
    }
}
