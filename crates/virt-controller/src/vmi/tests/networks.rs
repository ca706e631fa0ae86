//! Interfaces, as the pod has them.

use kubevirt_api::condition;
use kubevirt_api::names::external::multus;
use serde_json::{Value, json};

use super::build::{now, observed, pod, vmi};
use crate::vmi::decide;

fn decided(networks: &Value, interfaces: &Value, known: &Value, attached: &Value) -> (Value, String, bool) {
    let more = json!({
        "spec": {"networks": networks, "domain": {"devices": {"interfaces": interfaces}}},
        "status": {"interfaces": known, "nodeName": "node1"},
    });
    let mut launcher = pod("ready");
    launcher.metadata.annotations = Some([(multus::NETWORK_STATUS.to_owned(), attached.to_string())].into());
    let plan = decide(&observed(vmi("Running", more), [launcher]), now());
    let status = plan.vmi.unwrap().status.unwrap();
    let migration = condition::find(status.conditions.as_deref(), "MigrationRequired");
    let migration = migration.map(|it| it.status.clone()).unwrap_or_default();
    (serde_json::to_value(status.interfaces).unwrap(), migration, plan.recheck.is_some())
}

#[test]
fn the_status_follows_what_multus_reports_and_keeps_what_the_node_reports() {
    let networks =
        json!([{"name": "default", "pod": {}}, {"name": "blue", "multus": {"networkName": "blue"}}]);
    let interfaces = json!([{"name": "default", "masquerade": {}}, {"name": "blue", "bridge": {}}]);
    let pod_name = kubevirt_network::names::hashed("blue");
    let attached = json!([
        {"name": "cni", "interface": "eth0", "default": true}, {"name": "ns/blue", "interface": pod_name},
    ]);
    let known = json!([
        {"name": "default", "mac": "02:00:00:00:00:01", "infoSource": "domain"},
        {"interfaceName": "docker0", "infoSource": "guest-agent"},
    ]);
    let (status, migration, _) = decided(&networks, &interfaces, &known, &attached);
    let expected = json!([
        {"name": "default", "mac": "02:00:00:00:00:01", "infoSource": "domain", "podInterfaceName": "eth0"},
        {"name": "blue", "infoSource": "multus-status", "podInterfaceName": pod_name},
        {"interfaceName": "docker0", "infoSource": "guest-agent"},
    ]);
    assert_eq!(status, expected);
    assert_eq!(migration, "");
    // Once more, in another order, is no news.
    let turned = json!([expected[2], expected[1], expected[0]]);
    assert_eq!(decided(&networks, &interfaces, &turned, &attached).0, turned);
}

#[test]
fn a_network_that_is_not_attached_in_time_asks_for_a_migration() {
    let networks = json!([{"name": "blue", "multus": {"networkName": "blue"}}]);
    let plugged = json!([{"name": "blue", "bridge": {}}]);
    let none = json!([]);
    let (_, migration, again) = decided(&networks, &plugged, &none, &none);
    assert_eq!((migration.as_str(), again), ("False", true));
    let device = json!([{"name": "blue", "sriov": {}}]);
    assert_eq!(decided(&networks, &device, &none, &none).1, "True");
    let absent = json!([{"name": "blue", "bridge": {}, "state": "absent"}]);
    assert_eq!(decided(&networks, &absent, &none, &none).1, "");
    // Attached, but to another network by now.
    let pod_name = kubevirt_network::names::hashed("blue");
    let attached = json!([{"name": "ns/red", "interface": pod_name}]);
    assert_eq!(decided(&networks, &plugged, &none, &attached).1, "True");
}
