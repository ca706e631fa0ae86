//! What a real DHCP client hears, and what a launcher without its capability does.

use std::collections::BTreeMap;

use kubevirt_network::{
    Binding, InterfaceRequest, Masquerade,
    dhcp::{DhcpError, ExtraOptions, Settings},
    resolv::ResolvConf,
};
use rustix::thread::CapabilitySet;

use crate::{ground::Ground, guest::Guest, launcher};

pub fn settings() -> Settings {
    Settings {
        hostname: "vm1".to_owned(),
        resolv: ResolvConf::parse(
            "search ns.svc.cluster.local svc.cluster.local\nnameserver 10.96.0.10\nnameserver fd00::a",
        ),
        subdomain: Some("web".to_owned()),
        extra: ExtraOptions {
            boot_file_name: Some("pxe.0".to_owned()),
            tftp_server_name: Some("boot.example.com".to_owned()),
            ntp_servers: vec!["10.1.1.2".parse().unwrap()],
            private: BTreeMap::from([(240, "hello".to_owned())]),
        },
    }
}

#[test]
fn a_client_hears_every_option() {
    let ground = Ground::new();
    let wiring = ground
        .configure(&[InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade::default()))])
        .remove(0);
    let _servers =
        launcher::start(&ground.pod.netns, &wiring, &settings(), CapabilitySet::NET_BIND_SERVICE).unwrap();
    let guest = Guest::new(&ground, &wiring);
    let told = guest.dhcp();
    for (name, value) in [
        ("hostname", "vm1"),
        ("dns", "10.96.0.10"),
        ("domain", "web.ns.svc.cluster.local"),
        ("search", "web.ns.svc.cluster.local ns.svc.cluster.local svc.cluster.local"),
        ("mtu", "1400"),
        ("ntpsrv", "10.1.1.2"),
        ("tftp", "boot.example.com"),
        ("boot_file", "pxe.0"),
        ("lease", "86313600"),
        ("serverid", "10.0.2.1"),
        ("opt240", "68656c6c6f"),
    ] {
        assert_eq!(told.get(name).map(String::as_str), Some(value), "{name} in {told:?}");
    }
    assert_eq!(guest.dhcp_again()["ip"], "10.0.2.2", "whoever asks again gets the same");
}

#[test]
fn errors_say_what_is_missing() {
    let ground = Ground::new();
    let wiring = ground
        .configure(&[InterfaceRequest::on_pod_network(Binding::Masquerade(Masquerade::default()))])
        .remove(0);
    let start = |place: &crate::ground::Place, capabilities| {
        launcher::start(&place.netns, &wiring, &settings(), capabilities).err()
    };
    let error = start(&ground.pod, CapabilitySet::empty());
    assert!(matches!(error, Some(DhcpError::NotAllowed { port: 67 })), "{error:?}");
    let error = start(&ground.world, CapabilitySet::NET_BIND_SERVICE);
    assert!(matches!(error, Some(DhcpError::NoBridge(_))), "{error:?}");
}
