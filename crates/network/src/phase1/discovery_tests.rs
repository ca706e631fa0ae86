use super::*;

fn mac() -> Mac {
    Mac([2, 0, 0, 0, 0, 9])
}

fn pod(addresses: &[&str], routes: &[(&str, Option<&str>)]) -> Observed {
    let link = Link {
        index: 2,
        name: "eth0".to_owned(),
        kind: "veth".to_owned(),
        mac: Some(mac()),
        mtu: 1400,
        up: true,
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        ..Link::default()
    };
    let route = |(to, by): &(&str, Option<&str>)| Route {
        link: 2,
        destination: to.parse().unwrap(),
        gateway: by.map(|text| text.parse().unwrap()),
    };
    Observed { links: vec![link], routes: routes.iter().map(route).collect(), ..Observed::default() }
}

fn one(observed: &Observed, request: InterfaceRequest) -> Wiring {
    discover(observed, &[request], &[]).unwrap().remove(0)
}

#[test]
fn masquerade() {
    let pod = pod(&["10.9.8.7/24", "fe80::1/64", "fd99::7/64"], &[]);
    let wiring = one(&pod, InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade::default())));
    let lease = wiring.dhcp4.clone().unwrap();
    assert_eq!(lease.address.to_string(), "10.0.2.2/24");
    assert_eq!((lease.server.to_string(), lease.router), ("10.0.2.1".to_owned(), Some(lease.server)));
    assert_eq!(lease.client, None);
    assert_eq!(wiring.dhcp6.as_ref().unwrap().address.to_string(), "fd10:0:2::2");
    assert_eq!(wiring.addresses, ["10.9.8.7".parse::<IpAddr>().unwrap(), "fd99::7".parse().unwrap()]);
    assert_eq!((wiring.tap.as_deref(), wiring.bridge.as_deref()), (Some("tap0"), Some("k6t-eth0")));
    assert_eq!((wiring.mac, wiring.mtu), (mac(), 1400));
    let gateways: Vec<_> =
        gateways(&wiring, &Masquerade::default()).iter().map(ToString::to_string).collect();
    assert_eq!(gateways, ["10.0.2.1/24", "fd10:0:2::1/120"]);
}

#[test]
fn masquerade_of_one_family_in_a_range_of_its_own() {
    let range = |v4: &str, v6: &str| {
        let (range4, range6) = (Some(v4.parse().unwrap()), Some(v6.parse().unwrap()));
        InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade {
            range4,
            range6,
            ..Masquerade::default()
        }))
    };
    let wiring = one(&pod(&["fd99::7/64"], &[]), range("10.1.1.77/28", "fd01::ff/126"));
    assert_eq!(wiring.dhcp4, None);
    assert_eq!(wiring.dhcp6.unwrap().address.to_string(), "fd01::fe");
    let wiring = one(&pod(&["10.9.8.7/24"], &[]), range("10.1.1.77/28", "fd01::/128"));
    assert_eq!(wiring.dhcp4.unwrap().address.to_string(), "10.1.1.66/28");
    assert_eq!(wiring.dhcp6, None);
    for (v4, v6) in
        [("10.1.1.0/31", "fd01::/64"), ("255.255.255.255/32", "fd01::/64"), ("10.0.0.0/8", "fd01::/127")]
    {
        let result = discover(&pod(&["10.9.8.7/24", "fd99::7/64"], &[]), &[range(v4, v6)], &[]);
        assert!(matches!(result, Err(NetworkError::SmallRange { .. })), "{v4} {v6}");
    }
}

#[test]
fn bridge_hands_on_address_and_routes() {
    let routes = [
        ("0.0.0.0/0", Some("10.9.8.1")),
        ("10.9.8.0/24", None),
        ("10.0.0.0/8", Some("10.9.8.2")),
        ("169.254.1.1/32", None),
    ];
    let pod = pod(&["fd99::7/64", "10.9.8.7/24"], &routes);
    let wanted: Mac = "02:aa:00:00:00:01".parse().unwrap();
    let wiring = one(
        &pod,
        InterfaceRequest { mac: Some(wanted), place: 3, ..InterfaceRequest::on_pod_network(Binding::Bridge) },
    );
    assert_eq!(wiring.addresses, ["10.9.8.7".parse::<IpAddr>().unwrap()]);
    assert_eq!(wiring.pod.addresses.len(), 2);
    assert_eq!((wiring.mac, wiring.pod.mac), (wanted, mac()));
    let lease = wiring.dhcp4.unwrap();
    assert_eq!(lease.server.to_string(), "169.254.75.13");
    assert_eq!((lease.router, lease.client), (Some(Ipv4Addr::new(10, 9, 8, 1)), Some(wanted)));
    let routes: Vec<_> = lease.routes.iter().map(|route| route.destination.to_string()).collect();
    assert_eq!(routes, ["10.0.0.0/8", "169.254.1.1/32", "0.0.0.0/0"]);
}

#[test]
fn bridge_without_an_address_is_a_cable() {
    let wiring = one(&pod(&["fe80::1/64"], &[]), InterfaceRequest::on_pod_network(Binding::Bridge));
    assert_eq!((wiring.dhcp4, wiring.dhcp6, wiring.addresses), (None, None, Vec::new()));
}

#[test]
fn what_is_known_goes_before_what_is_left() {
    let before = pod(&["10.9.8.7/24"], &[("0.0.0.0/0", Some("10.9.8.1"))]);
    let known = one(&before, InterfaceRequest::on_pod_network(Binding::Bridge));
    let mut half_done = before.clone();
    half_done.links[0].addresses.clear();
    half_done.routes.clear();
    let found = |observed: &Observed, known: &[Wiring]| {
        discover(observed, &[InterfaceRequest::on_pod_network(Binding::Bridge)], known)
    };
    assert_eq!(found(&half_done, std::slice::from_ref(&known)).unwrap()[0], known);
    half_done.links[0].name = "eth0-nic".to_owned();
    assert_eq!(found(&half_done, &[known]).unwrap().len(), 1);
    assert!(matches!(found(&half_done, &[]), Err(NetworkError::Forgotten { .. })));
}

#[test]
fn names_are_tried_in_turn() {
    let mut pod = pod(&[], &[]);
    pod.links[0].name = "net2".to_owned();
    let mut asked = InterfaceRequest {
        pod_interfaces: names::candidates("red", 2),
        primary: false,
        ..InterfaceRequest::on_pod_network(Binding::Bridge)
    };
    assert_eq!(one(&pod, asked.clone()).tap.as_deref(), Some("tap2"));
    asked.pod_interfaces = names::candidates("red", 1);
    assert!(matches!(discover(&pod, &[asked], &[]), Err(NetworkError::MissingInterface { .. })));
}

#[test]
fn queues() {
    let mut pod = pod(&[], &[]);
    let asked = InterfaceRequest { queues: 4, ..InterfaceRequest::on_pod_network(Binding::Bridge) };
    assert!(one(&pod, asked.clone()).multi_queue);
    pod.links.push(Link { index: 9, name: "tap0".to_owned(), ..Link::default() });
    let wiring = one(&pod, asked);
    assert_eq!((wiring.multi_queue, wiring.queues), (false, 4));
}

#[test]
fn refusals() {
    let masquerade = || InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade::default()));
    let result = discover(&pod(&[], &[]), &[masquerade(), masquerade()], &[]);
    assert!(matches!(result, Err(NetworkError::TwoMasquerades { .. })));
    let mut long = pod(&[], &[]);
    long.links[0].name = "a-name-too-long".to_owned();
    let asked = InterfaceRequest {
        pod_interfaces: vec!["a-name-too-long".to_owned()],
        ..InterfaceRequest::on_pod_network(Binding::Bridge)
    };
    assert!(matches!(discover(&long, &[asked], &[]), Err(NetworkError::LongName(_))));
}
