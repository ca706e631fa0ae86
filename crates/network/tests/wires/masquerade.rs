//! A guest behind the pod's address.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddrV6, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use kubevirt_network::{Binding, InterfaceRequest, Mac, Masquerade, Ports, Protocol, phase1};
use rustix::thread::CapabilitySet;

use crate::{
    dhcp::settings,
    ground::{Ground, PATIENCE, POD_MAC, Place, talk, wait},
    guest::Guest,
    launcher,
};

#[test]
fn links_are_as_asked() {
    let ground = Ground::new();
    let asked = InterfaceRequest {
        queues: 3,
        ..InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade::default()))
    };
    let wiring = ground.configure(&[asked]).remove(0);
    let pod = &ground.pod;

    assert_eq!(pod.links(), ["eth0", "k6t-eth0", "lo", "tap0"]);
    let bridge = pod.link("k6t-eth0");
    assert_eq!((&bridge["address"], &bridge["mtu"]), (&Mac::GATEWAY.to_string().into(), &1400.into()));
    assert_eq!(pod.addresses("k6t-eth0"), ["10.0.2.1/24", "fd10:0:2::1/120"]);
    let tap = pod.link("tap0");
    assert_eq!((&tap["master"], &tap["mtu"]), (&"k6t-eth0".into(), &1400.into()));
    let info = &tap["linkinfo"]["info_data"];
    for flag in ["persist", "vnet_hdr", "multi_queue"] {
        assert_eq!(info[flag], true, "{flag}");
    }
    assert_eq!(pod.addresses("eth0"), ["10.9.8.7/24", "fd99::7/64"], "the pod keeps its own");
    for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv4/conf/k6t-eth0/route_localnet"] {
        assert_eq!(pod.setting(key), "1", "{key}");
    }
    assert_eq!(wiring.mac, POD_MAC.parse().unwrap());

    // User 107 may, which proves whose it is.
    let queues = launcher::open_tap(pod, &wiring);
    assert_eq!(queues.len(), 3);
    assert_eq!(pod.link("tap0")["linkinfo"]["info_data"]["numqueues"], 3);
}

#[test]
fn traffic_goes_in_and_out() {
    let ground = Ground::new();
    let wiring = ground
        .configure(&[InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade::default()))])
        .remove(0);
    let _servers =
        launcher::start(&ground.pod.netns, &wiring, &settings(), CapabilitySet::NET_BIND_SERVICE).unwrap();
    let guest = Guest::new(&ground, &wiring);
    let told = guest.dhcp();
    assert_eq!(
        (told["ip"].as_str(), told["mask"].as_str(), told["router"].as_str()),
        ("10.0.2.2", "24", "10.0.2.1")
    );
    ask_for_ipv6(&guest.place);
    guest.place.ip("addr add fd10:0:2::2/120 dev guest0 nodad");
    guest.place.ip("-6 route add default via fd10:0:2::1");

    for (world, pod, inner, gateway, loopback) in [
        ("10.9.8.1", "10.9.8.7", "10.0.2.2", Some("10.0.2.1"), "127.0.0.1"),
        ("[fd99::1]", "[fd99::7]", "[fd10:0:2::2]", None, "[::1]"),
    ] {
        let address = |text: &str| text.trim_matches(['[', ']']).parse().unwrap();
        let outside = ground.world.listen(&format!("{world}:8080"));
        let (seen, _) = talk(&outside, guest.place.connect(&format!("{world}:8080")).unwrap());
        assert_eq!(seen, address(pod), "the guest hides behind the pod");

        let inside = guest.place.listen(&format!("{inner}:8080"));
        let (seen, own) = talk(&inside, ground.world.connect(&format!("{pod}:8080")).unwrap());
        assert_eq!((seen, own), (address(world), address(inner)));

        if let Some(gateway) = gateway {
            let (seen, _) = talk(&inside, ground.pod.connect(&format!("{loopback}:8080")).unwrap());
            assert_eq!(seen, address(gateway), "the pod itself reaches the guest too");
        }
    }
}

#[test]
fn new_links_speak_ipv6_where_the_default_is_not_to() {
    let ground = Ground::new();
    ground.pod.inside(|| std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")).unwrap();
    ground.configure(&[InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade::default()))]);
    assert_eq!(ground.pod.addresses("k6t-eth0"), ["10.0.2.1/24", "fd10:0:2::1/120"]);

    let ground = Ground::new();
    ground.pod.inside(|| std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")).unwrap();
    ground.configure(&[InterfaceRequest::on_pod_network(Binding::Bridge)]);
    assert_eq!(ground.pod.addresses("eth0"), ["10.9.8.7/24", "fd99::7/64"]);
}

#[test]
fn only_listed_ports_lead_to_the_guest() {
    let ground = Ground::new();
    let ports =
        vec![Ports::one(Protocol::Tcp, 80), Ports { protocol: Protocol::Tcp, first: 1000, last: 1010 }];
    let asked = InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade {
        ports,
        range4: Some("10.77.0.0/29".parse().unwrap()),
        ..Masquerade::default()
    }));
    let wiring = ground.configure(&[asked]).remove(0);
    let guest = Guest::new(&ground, &wiring);
    guest.place.ip("addr add 10.77.0.2/29 dev guest0");
    guest.place.ip("route add default via 10.77.0.1");
    for (port, leads) in [(80, true), (81, false), (999, false), (1000, true), (1010, true), (1011, false)] {
        let listener = guest.place.listen(&format!("10.77.0.2:{port}"));
        match ground.world.connect(&format!("10.9.8.7:{port}")) {
            Ok(stream) => {
                assert!(leads, "{port}");
                talk(&listener, stream);
            }
            Err(error) => assert!(!leads, "{port}: {error}"),
        }
    }
}

#[test]
fn removal_leaves_the_pod_as_it_was() {
    let ground = Ground::new();
    let wiring = ground
        .configure(&[InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade::default()))])
        .remove(0);
    wait(phase1::remove(&ground.pod.netns, &wiring)).unwrap();
    assert_eq!(ground.pod.links(), ["eth0", "lo"]);
    assert_eq!(ground.pod.addresses("eth0"), ["10.9.8.7/24", "fd99::7/64"]);
    let rules = ground.pod.run("nft", &["list", "ruleset"]);
    assert!(!rules.contains("nat to") && !rules.contains("masquerade"), "{rules}");
    assert_eq!(wait(phase1::remove(&ground.pod.netns, &wiring)).unwrap(), []);
}

/// Solicits and requests an IPv6 address by hand, for lack of a small client.
fn ask_for_ipv6(guest: &Place) {
    let index: u32 = u32::try_from(guest.link("guest0")["ifindex"].as_u64().unwrap()).unwrap();
    let servers = SocketAddrV6::new("ff02::1:2".parse().unwrap(), 547, 0, index);
    let reply = guest.inside(move || {
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 546)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let client: &[u8] = &[0, 1, 0, 4, 9, 9, 9, 9];
        let association: &[u8] = &[0, 3, 0, 12, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0];
        let packet = [&[1, 7, 7, 7], client, association, &[0, 14, 0, 0]].concat();
        let end = Instant::now() + PATIENCE;
        let mut buffer = [0; 1500];
        loop {
            assert!(Instant::now() < end, "no DHCPv6 server answered");
            // Both ends need a moment until they have an address of their own on the link.
            if socket.send_to(&packet, servers).is_err() {
                thread::sleep(Duration::from_millis(100));
                continue;
            }
            if let Ok((length, _)) = socket.recv_from(&mut buffer) {
                return buffer[..length].to_vec();
            }
        }
    });
    assert_eq!(reply[..4], [7, 7, 7, 7], "a reply at once, as asked");
    let holds = |bytes: &[u8]| reply.windows(bytes.len()).any(|window| window == bytes);
    assert!(holds(&"fd10:0:2::2".parse::<Ipv6Addr>().unwrap().octets()));
    assert!(holds(&"fd00::a".parse::<Ipv6Addr>().unwrap().octets()), "the name server");
    assert!(!holds(&Ipv4Addr::new(10, 96, 0, 10).octets()));
}
