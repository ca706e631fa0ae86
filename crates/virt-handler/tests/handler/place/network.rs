//! Phase 1 of the network in the launcher's network namespace, remembered on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_network::BindingKind;
use kubevirt_virt_handler::prepare::{
    Place, PrepareError, after_end, before_start, remembered, while_running,
};
use serde_json::{Value, json};

use super::ground::{Node, UID, alone, vmi};

fn ip(place: &Place, arguments: &str) -> String {
    let output = Command::new("nsenter")
        .args(["-t", &place.launcher_id().to_string(), "-n", "ip"])
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn links(place: &Place) -> Vec<String> {
    let all: Value = serde_json::from_str(&ip(place, "-j link show")).unwrap();
    let mut names: Vec<_> =
        all.as_array().unwrap().iter().map(|link| link["ifname"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// The pod's interface as a network plugin leaves it.
fn plug_in(place: &Place, name: &str, address: &str) {
    ip(place, &format!("link add {name} type veth peer name w{name}"));
    ip(place, &format!("addr add {address} dev {name}"));
    ip(place, &format!("link set {name} up"));
    ip(place, &format!("link set w{name} up"));
}

fn machine(interfaces: Value, networks: Value, statuses: Value) -> VirtualMachineInstance {
    let spec = json!({"networks": networks, "domain": {"devices": {"interfaces": interfaces}}});
    vmi(spec, json!({"interfaces": statuses}))
}

#[test]
fn a_bridge_is_built_once_and_remembered() {
    alone("place::network::a_bridge_is_built_once_and_remembered", || async {
        let mut node = Node::new();
        let root = node.root(&[]);
        let place = node.launcher(&root, &[]);
        let config = ClusterConfig::default();
        let machine = machine(
            json!([{"name": "default", "bridge": {}}]),
            json!([{"name": "default", "pod": {}}]),
            json!([]),
        );
        let error = before_start(&machine, &place, &config).await.unwrap_err();
        assert!(matches!(error, PrepareError::NotYet(_)), "{error}");
        plug_in(&place, "eth0", "10.9.8.7/24");
        let prepared = before_start(&machine, &place, &config).await.unwrap();
        assert_eq!(prepared.network[0].binding, BindingKind::Bridge);
        assert_eq!(prepared.network[0].dhcp4.as_ref().unwrap().address.to_string(), "10.9.8.7/24");
        let all = links(&place);
        for name in ["k6t-eth0", "tap0", "eth0-nic"] {
            assert!(all.iter().any(|link| link == name), "{all:?}");
        }

        // The interface is taken apart by now: only the record still knows what it was.
        let place = node.found_again();
        assert_eq!(before_start(&machine, &place, &config).await.unwrap(), prepared);
        assert_eq!(while_running(&machine, &place, &config).await.unwrap().network, prepared.network);
        assert_eq!(links(&place), all);
        let file = node.folders.private.join("pods").join(format!("{UID}.json"));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(remembered(&node.folders).unwrap()[0].vmi_uid, "11111111-2222");
        after_end(UID, &node.folders).await.unwrap();
        assert!(!file.exists());
    });
}

#[test]
fn a_network_that_cannot_be_made_is_not_tried_again() {
    alone("place::network::a_network_that_cannot_be_made_is_not_tried_again", || async {
        let mut node = Node::new();
        let root = node.root(&[]);
        let place = node.launcher(&root, &[]);
        plug_in(&place, "eth0", "10.9.8.7/24");
        let before = links(&place);
        let small = json!([{"name": "default", "pod": {"vmNetworkCIDR": "10.0.2.0/31"}}]);
        for (interface, networks, expected) in [
            (json!({"name": "default", "masquerade": {}}), small.clone(), "too small"),
            (json!({"name": "default", "slirp": {}}), small, "interfaces[0].slirp"),
        ] {
            let machine = machine(json!([interface]), networks, json!([]));
            let error = before_start(&machine, &place, &ClusterConfig::default()).await.unwrap_err();
            assert!(matches!(&error, PrepareError::Hopeless(why) if why.contains(expected)), "{error:?}");
        }
        assert_eq!(links(&place), before);
    });
}

#[test]
fn interfaces_come_and_go() {
    alone("place::network::interfaces_come_and_go", || async {
        let mut node = Node::new();
        let root = node.root(&[]);
        let place = node.launcher(&root, &[]);
        let config = ClusterConfig::default();
        plug_in(&place, "eth0", "10.9.8.7/24");
        let networks =
            json!([{"name": "default", "pod": {}}, {"name": "blue", "multus": {"networkName": "b"}}]);
        let first = json!({"name": "default", "masquerade": {}});
        let second = |state: &str| json!({"name": "blue", "bridge": {}, "state": state});
        let known = |source: &str| json!([{"name": "default", "infoSource": "domain"}, {"name": "blue", "infoSource": source}]);
        let start = machine(json!([first, second("absent")]), networks.clone(), json!([]));
        let prepared = before_start(&start, &place, &config).await.unwrap();
        assert_eq!(prepared.network.len(), 1);
        let before = links(&place);

        let blue = kubevirt_network::names::hashed("blue");
        let wanted = machine(json!([first, second("up")]), networks.clone(), known("multus-status"));
        let early = while_running(&wanted, &place, &config).await.unwrap();
        assert_eq!((early.network.len(), early.problems.len()), (1, 1), "{early:?}");
        plug_in(&place, &blue, "10.7.7.7/24");
        let later = while_running(&wanted, &place, &config).await.unwrap();
        assert_eq!((later.network.len(), &later.problems), (2, &vec![]));
        assert_eq!(later.network[0], prepared.network[0]);
        let tap = later.network[1].tap.clone().unwrap();
        assert!(links(&place).contains(&tap));
        let again = while_running(&wanted, &place, &config).await.unwrap();
        assert_eq!(again, later);

        // The guest still has the card, then it lets go of it.
        let leaving =
            machine(json!([first, second("absent")]), networks.clone(), known("domain, multus-status"));
        assert_eq!(while_running(&leaving, &place, &config).await.unwrap().network.len(), 2);
        let left = machine(json!([first, second("absent")]), networks, known("multus-status"));
        assert_eq!(while_running(&left, &place, &config).await.unwrap().network, prepared.network);
        assert!(!links(&place).contains(&tap));
        assert!(before.iter().all(|link| links(&place).contains(link)));
    });
}
