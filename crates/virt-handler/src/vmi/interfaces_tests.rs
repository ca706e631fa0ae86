use kubevirt_launcher_rpc::report::{Reason, State};
use kubevirt_network::{BindingKind, PodLink};
use serde_json::{Value, json};

use super::super::testing::{domain, machine, vmi};
use super::*;

const MAC: &str = "02:00:00:00:00:01";

fn wiring(network: &str, addresses: &[&str]) -> Wiring {
    Wiring {
        network: network.into(),
        binding: BindingKind::Masquerade,
        pod: PodLink { name: "eth0".into(), mac: MAC.parse().unwrap(), addresses: Vec::new() },
        tap: Some("tap0".into()),
        multi_queue: false,
        queues: 1,
        bridge: None,
        mtu: 1500,
        mac: MAC.parse().unwrap(),
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        dhcp4: None,
        dhcp6: None,
    }
}

fn instance(status: Value) -> VirtualMachineInstance {
    let spec = json!({
        "domain": {"devices": {"interfaces": [
            {"name": "other", "bridge": {}, "macAddress": "02:00:00:00:00:02"},
            {"name": "default", "masquerade": {}, "macAddress": MAC},
        ]}},
        "networks": [{"name": "other", "multus": {"networkName": "n"}}, {"name": "default", "pod": {}}],
    });
    vmi(spec, json!({"interfaces": status}))
}

fn report(vmi: &VirtualMachineInstance, guest: Vec<Told>) -> DomainReport {
    let mut host = kubevirt_domain::HostFacts { kvm: true, ..Default::default() };
    for name in ["default", "other"] {
        let facts =
            kubevirt_domain::facts::InterfaceFacts { tap: Some(format!("tap-{name}")), ..Default::default() };
        host.interfaces.insert(name.into(), facts);
    }
    let spec = kubevirt_domain::convert(vmi, &host, &Default::default(), &Default::default()).unwrap();
    let mut report = domain(State::Running, Reason::Unknown);
    (report.spec, report.status.interfaces) = (Some(spec), guest);
    report
}

fn told(name: &str, mac: &str, ips: &[&str]) -> Told {
    let ips: Vec<String> = ips.iter().map(|ip| (*ip).to_owned()).collect();
    let ip = ips.first().cloned().unwrap_or_default();
    Told { interface_name: name.into(), mac: mac.into(), ip, ips }
}

#[test]
fn the_pod_network_comes_first_with_the_pods_addresses() {
    let vmi = instance(json!([]));
    let report = report(&vmi, Vec::new());
    let all = interfaces(&vmi, &report, Some(&[wiring("default", &["10.244.0.148"])])).unwrap();
    let expected = InterfaceStatus {
        name: Some("default".into()),
        mac: Some(MAC.into()),
        ip_address: Some("10.244.0.148".into()),
        ip_addresses: Some(vec!["10.244.0.148".into()]),
        info_source: Some("domain".into()),
        queue_count: Some(1),
        link_state: Some("up".into()),
        pod_interface_name: Some("eth0".into()),
        interface_name: None,
    };
    assert_eq!(all[0], expected);
    assert_eq!((all.len(), all[1].name.as_deref()), (2, Some("other")));
}

#[test]
fn the_guest_adds_what_only_it_knows() {
    let vmi = instance(json!([]));
    let guest = vec![
        told("lo", "00:00:00:00:00:00", &["127.0.0.1"]),
        told("eth0", "02:00:00:00:00:01", &["10.0.2.2", "fe80::1"]),
        told("eth1", "02:00:00:00:00:02", &["192.168.0.9", "fe80::2"]),
    ];
    let report = report(&vmi, guest);
    let all = interfaces(&vmi, &report, Some(&[wiring("default", &["10.244.0.148"])])).unwrap();
    let addresses = |index: usize| all[index].ip_addresses.clone().unwrap_or_default();
    // The pod's address leads to the guest; the guest's own does not, nor does that of the link.
    assert_eq!(addresses(0), ["10.244.0.148"]);
    assert_eq!(all[0].info_source.as_deref(), Some("domain, guest-agent"));
    assert_eq!(all[0].interface_name.as_deref(), Some("eth0"));
    assert_eq!(addresses(1), ["192.168.0.9", "fe80::2"]);
    assert_eq!((all[2].name.as_deref(), all[2].interface_name.as_deref()), (None, Some("lo")));
    assert_eq!(all[2].info_source.as_deref(), Some("guest-agent"));
}

#[test]
fn a_guest_without_addresses_cannot_be_reached() {
    let vmi = instance(json!([]));
    let report = report(&vmi, vec![told("eth0", MAC, &[])]);
    let all = interfaces(&vmi, &report, Some(&[wiring("default", &["10.244.0.148"])])).unwrap();
    assert_eq!((all[0].ip_address.as_deref(), all[0].ip_addresses.as_deref()), (None, None));
}

#[test]
fn only_some_of_the_guests_own_are_listed() {
    let vmi = instance(json!([]));
    let guest = (0..30).map(|n| told(&format!("veth{n}"), &format!("06:00:00:00:00:{n:02}"), &[])).collect();
    assert_eq!(interfaces(&vmi, &report(&vmi, guest), Some(&[])).unwrap().len(), 12);
}

#[test]
fn what_the_controller_knows_of_the_pod_stays() {
    let before = json!([
        {"name": "other", "podInterfaceName": "pod6446d58d6df", "infoSource": "multus-status"},
        {"name": "default", "podInterfaceName": "eth7"},
    ]);
    let vmi = instance(before);
    let all = interfaces(&vmi, &report(&vmi, Vec::new()), Some(&[wiring("default", &[])])).unwrap();
    assert_eq!(all[0].pod_interface_name.as_deref(), Some("eth7"));
    assert_eq!(all[1].pod_interface_name.as_deref(), Some("pod6446d58d6df"));
    assert_eq!(all[1].info_source.as_deref(), Some("domain, multus-status"));
    // Again, and nothing changes.
    let mut again = vmi.clone();
    again.status.as_mut().unwrap().interfaces = Some(all.clone());
    assert_eq!(interfaces(&again, &report(&vmi, Vec::new()), Some(&[wiring("default", &[])])).unwrap(), all);
}

#[test]
fn an_instance_without_interfaces_has_none() {
    let vmi = vmi(json!({}), json!({}));
    let report = machine(domain(State::Running, Reason::Unknown), &vmi);
    let none = interfaces(&vmi, &report, Some(&[]));
    assert!(none.is_none_or(|all| all.is_empty()));
}

#[test]
fn a_handler_that_does_not_know_yet_takes_nothing_back() {
    let before = json!([{"name": "default", "ipAddress": "10.244.0.148", "ipAddresses": ["10.244.0.148"]}]);
    let vmi = instance(before);
    let told = interfaces(&vmi, &report(&vmi, Vec::new()), None);
    assert_eq!(told, vmi.status.unwrap().interfaces);
}
