//! A guest that takes over the pod's address, and one on a network without addresses.

use std::net::UdpSocket;

use kubevirt_network::{Binding, InterfaceRequest, Mac, Masquerade, NetworkError, Wiring, names, phase1};
use rustix::thread::CapabilitySet;

use crate::{
    dhcp::settings,
    ground::{Ground, PATIENCE, POD_MAC, talk, wait},
    guest::Guest,
    launcher,
};

fn mac() -> Mac {
    POD_MAC.parse().unwrap()
}

#[test]
fn the_guest_takes_over_the_pods_address() {
    let ground = Ground::new();
    ground.pod.ip("route add 10.50.0.0/16 via 10.9.8.2");
    let wiring = ground.configure(&[InterfaceRequest::on_pod_network(Binding::Bridge)]).remove(0);
    let pod = &ground.pod;

    assert_eq!(pod.links(), ["eth0", "eth0-nic", "k6t-eth0", "lo", "tap0"]);
    let port = pod.link("eth0-nic");
    assert_eq!(
        (&port["master"], &port["address"]),
        (&"k6t-eth0".into(), &mac().stand_in().to_string().into())
    );
    assert_eq!(port["linkinfo"]["info_slave_data"]["learning"], false);
    assert_eq!(pod.addresses("eth0-nic"), Vec::<String>::new());
    let stand_in = pod.link("eth0");
    assert_eq!((&stand_in["address"], &stand_in["mtu"]), (&POD_MAC.into(), &1400.into()));
    assert_eq!(stand_in["operstate"], "DOWN");
    assert_eq!(pod.addresses("eth0"), ["10.9.8.7/24", "fd99::7/64"]);
    assert_eq!(pod.addresses("k6t-eth0"), ["169.254.75.10/32"]);
    assert_eq!(pod.setting("ipv4/conf/all/arp_ignore"), "1");

    let _servers =
        launcher::start(&pod.netns, &wiring, &settings(), CapabilitySet::NET_BIND_SERVICE).unwrap();
    let guest = Guest::new(&ground, &wiring);
    let told = guest.dhcp();
    assert_eq!(
        (told["ip"].as_str(), told["mask"].as_str(), told["router"].as_str()),
        ("10.9.8.7", "24", "10.9.8.1")
    );
    assert_eq!(told["staticroutes"], "10.50.0.0/16 10.9.8.2 0.0.0.0/0 10.9.8.1");
    assert_eq!(told["serverid"], "169.254.75.10");

    renew(&guest);

    let outside = ground.world.listen("10.9.8.1:8080");
    let (seen, _) = talk(&outside, guest.place.connect("10.9.8.1:8080").unwrap());
    assert_eq!(seen.to_string(), "10.9.8.7");
    let inside = guest.place.listen("10.9.8.7:8080");
    talk(&inside, ground.world.connect("10.9.8.7:8080").unwrap());
    let neighbours = ground.world.ip("neigh show 10.9.8.7");
    assert!(neighbours.contains(POD_MAC), "the guest answers with the pod's hardware address: {neighbours}");
}

/// Asks again from the address that it has, which is the pod's too, and is answered there and not by broadcast.
fn renew(guest: &Guest) {
    let mut packet = vec![0; 240];
    packet[..3].copy_from_slice(&[1, 1, 6]);
    packet[12..16].copy_from_slice(&[10, 9, 8, 7]);
    packet[28..34].copy_from_slice(&mac().0);
    packet[236..].copy_from_slice(&[99, 130, 83, 99]);
    packet.extend([53, 1, 3, 255]);
    let reply = guest.place.inside(move || {
        let socket = UdpSocket::bind("10.9.8.7:68").unwrap();
        socket.set_broadcast(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send_to(&packet, "255.255.255.255:67").unwrap();
        let mut buffer = [0; 1500];
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!(from.to_string(), "169.254.75.10:67");
        buffer[..length].to_vec()
    });
    assert_eq!(reply[240..243], [53, 1, 5], "acknowledged");
}

#[test]
fn an_interrupted_run_is_completed_by_one_that_knows() {
    let ground = Ground::new();
    let asked = [InterfaceRequest::on_pod_network(Binding::Bridge)];
    let wirings = wait(phase1::discover(&ground.pod.netns, &asked, &[])).unwrap();
    // As far as the worst moment: the address is gone, and its old name too.
    ground.pod.ip("addr flush dev eth0");
    ground.pod.ip("link set eth0 down");
    ground.pod.ip("link set eth0 name eth0-nic");
    let lost = wait(phase1::discover(&ground.pod.netns, &asked, &[]));
    assert!(matches!(lost, Err(NetworkError::Forgotten { .. })), "{lost:?}");
    let again = wait(phase1::discover(&ground.pod.netns, &asked, &wirings)).unwrap();
    assert_eq!(again, wirings);
    ground.apply(&asked, &again).unwrap();
    assert_eq!(ground.pod.addresses("eth0"), ["10.9.8.7/24", "fd99::7/64"]);
    assert_eq!(ground.apply(&asked, &again).unwrap(), Vec::<String>::new());
}

/// A network of the second kind, whose pod interface has no address.
fn second(ground: &Ground) -> InterfaceRequest {
    let pod_interfaces = names::candidates("red", 1);
    ground.cable(&pod_interfaces[0], "world1", "0a:58:00:00:00:02");
    let mac = Some("02:11:22:33:44:55".parse().unwrap());
    let network = "red".to_owned();
    InterfaceRequest {
        network,
        pod_interfaces,
        primary: false,
        place: 1,
        mac,
        ..InterfaceRequest::on_pod_network(Binding::Bridge)
    }
}

#[test]
fn a_second_network_comes_and_goes() {
    let ground = Ground::new();
    let first = InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade::default()));
    let mut known = ground.configure(std::slice::from_ref(&first));
    let before = ground.pod.links();
    let second = second(&ground);
    known.extend(wait(phase1::configure(&ground.pod.netns, std::slice::from_ref(&second), &known)).unwrap());
    let red: &Wiring = &known[1];
    assert_eq!((red.dhcp4.as_ref(), red.dhcp6.as_ref(), red.addresses.len()), (None, None, 0));
    assert_eq!(red.tap.as_deref(), Some("tapb1f51a511f1"));
    assert_eq!(red.mac.to_string(), "02:11:22:33:44:55");

    let guest = Guest::new(&ground, red);
    guest.place.ip("addr add 192.168.5.2/24 dev guest0");
    ground.world.ip("addr add 192.168.5.1/24 dev world1");
    let outside = ground.world.listen("192.168.5.1:8080");
    talk(&outside, guest.place.connect("192.168.5.1:8080").unwrap());
    drop(guest);

    wait(phase1::remove(&ground.pod.netns, red)).unwrap();
    let mut after = ground.pod.links();
    after.retain(|name| name != "b1f51a511f1-nic");
    assert_eq!(after, before);
    assert_eq!(ground.apply(&[first], &known).unwrap(), Vec::<String>::new(), "the first is untouched");
}

#[test]
fn passt_needs_permissions_only() {
    let ground = Ground::new();
    let wiring = ground.configure(&[InterfaceRequest::on_pod_network(Binding::Passt)]).remove(0);
    assert_eq!((wiring.tap, wiring.bridge), (None, None));
    assert_eq!(ground.pod.links(), ["eth0", "lo"]);
    assert_eq!(ground.pod.setting("ipv4/ip_unprivileged_port_start"), "0");
    assert_eq!(ground.pod.setting("ipv4/ping_group_range"), "107\t107");
}
