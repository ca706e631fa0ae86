//! The NAT rules, as the program `nft` sees them.

use kubevirt_network::{Binding, InterfaceRequest, Masquerade, Ports, Protocol, phase1};

use crate::ground::{Ground, wait};

fn masquerade(ports: Vec<Ports>) -> Binding {
    Binding::Masquerade(Masquerade { ports, kept_ports: vec![49152], ..Masquerade::default() })
}

#[test]
fn nft_reads_them() {
    let ground = Ground::new();
    let ports =
        vec![Ports::one(Protocol::Tcp, 80), Ports { protocol: Protocol::Udp, first: 5000, last: 5010 }];
    ground.configure(&[InterfaceRequest::on_pod_network(masquerade(ports))]);
    let text = ground.pod.run("nft", &["-s", "list", "table", "ip", "nat"]);
    let lines: Vec<_> = text.lines().map(|line| line.split(" comment").next().unwrap().trim()).collect();
    let expected = "\
table ip nat {
chain prerouting {
type nat hook prerouting priority dstnat; policy accept;
iifname \"eth0\" counter jump KUBEVIRT_PREINBOUND
}

chain input {
type nat hook input priority srcnat; policy accept;
}

chain output {
type nat hook output priority dstnat; policy accept;
tcp dport 49152 ip saddr 127.0.0.1 counter return
ip daddr 127.0.0.1 tcp dport 80 counter dnat to 10.0.2.2
ip daddr 127.0.0.1 udp dport 5000-5010 counter dnat to 10.0.2.2
}

chain postrouting {
type nat hook postrouting priority srcnat; policy accept;
ip saddr 10.0.2.2 counter masquerade
oifname \"k6t-eth0\" counter jump KUBEVIRT_POSTINBOUND
}

chain KUBEVIRT_PREINBOUND {
tcp dport 80 counter dnat to 10.0.2.2
udp dport 5000-5010 counter dnat to 10.0.2.2
}

chain KUBEVIRT_POSTINBOUND {
tcp dport 49152 ip saddr 127.0.0.1 counter return
tcp dport 80 ip saddr 127.0.0.1 counter snat to 10.0.2.1
udp dport 5000-5010 ip saddr 127.0.0.1 counter snat to 10.0.2.1
}
}";
    // Versions of nft differ in which priorities they have names for.
    let named = |line: &&str| {
        line.replace("priority 100;", "priority srcnat;").replace("priority -100;", "priority dstnat;")
    };
    let lines: Vec<_> = lines.iter().map(named).collect();
    assert_eq!(lines, expected.lines().collect::<Vec<_>>());
    let six = ground.pod.run("nft", &["-s", "list", "table", "ip6", "nat"]);
    assert!(six.contains("ip6 daddr ::1 tcp dport 80 counter dnat to fd10:0:2::2"), "{six}");
}

#[test]
fn rules_of_others_stay() {
    let ground = Ground::new();
    let nft = |arguments: &str| ground.pod.run("nft", &arguments.split(' ').collect::<Vec<_>>());
    nft("add table ip nat");
    nft("add chain ip nat ISTIO");
    nft("add rule ip nat ISTIO tcp dport 15001 counter");
    let first = [InterfaceRequest::on_pod_network(masquerade(vec![Ports::one(Protocol::Tcp, 80)]))];
    let wirings = ground.configure(&first);
    nft("add rule ip nat prerouting tcp dport 7777 counter accept");
    let second = [InterfaceRequest::on_pod_network(masquerade(vec![Ports::one(Protocol::Tcp, 443)]))];
    ground.configure(&second);
    let after = nft("list ruleset");
    assert!(after.contains("15001") && after.contains("7777") && after.contains("443"), "{after}");
    assert!(!after.contains("dport 80 "), "{after}");
    wait(phase1::remove(&ground.pod.netns, &wirings[0])).unwrap();
    let after = nft("list ruleset");
    assert!(after.contains("15001") && after.contains("7777") && !after.contains("443"), "{after}");
}
