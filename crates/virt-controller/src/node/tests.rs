//! Tables of what follows from what a node says, or does not say.

mod settling;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubevirt_api::names::{annotations, labels};
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};

use super::observe::living;
use super::{Observed, Plan, decide};

const MINUTE: Duration = Duration::from_secs(60);

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn node(heartbeat: Option<&str>, schedulable: &str) -> Option<Arc<Node>> {
    let mut notes = serde_json::Map::new();
    if let Some(heartbeat) = heartbeat {
        notes.insert(annotations::NODE_HEARTBEAT.into(), heartbeat.into());
    }
    let metadata = json!({
        "name": "node1", "annotations": notes, "labels": { labels::NODE_SCHEDULABLE: schedulable },
    });
    Some(Arc::new(serde_json::from_value(json!({ "metadata": metadata })).unwrap()))
}

fn vmi(uid: &str) -> Arc<VirtualMachineInstance> {
    let object =
        json!({"metadata": {"name": uid, "uid": uid}, "status": {"phase": "Running", "nodeName": "node1"}});
    Arc::new(serde_json::from_value(object).unwrap())
}

#[test]
fn a_node_that_was_heard_of_is_left_alone_until_it_has_been_silent_too_long() {
    let observed =
        |node| Observed { node, vmis: vec![vmi("a")], pods_confirmed: true, ..Observed::default() };
    let cases = [
        (Some("2026-01-01T12:00:00Z"), Some(5 * MINUTE)),
        (Some("2026-01-01T11:56:00Z"), Some(MINUTE)),
        (Some("2026-01-01T13:00:00Z"), Some(5 * MINUTE)),
        (Some("some day"), None),
        (None, None),
    ];
    for (heartbeat, recheck) in cases {
        let plan = decide(&observed(node(heartbeat, "true")), now());
        assert_eq!(plan, Plan { recheck, ..Plan::default() }, "{heartbeat:?}");
    }
}

#[test]
fn a_silent_node_gets_no_guests_and_loses_those_without_a_pod() {
    let late = Some("2026-01-01T11:54:59Z");
    let mut observed = Observed {
        node: node(late, "true"),
        vmis: vec![vmi("lost"), vmi("lives")],
        with_pod: ["lives".to_owned()].into(),
        ..Observed::default()
    };
    let plan = decide(&observed, now());
    assert!(plan.mark_unschedulable && plan.tell_of_orphans && plan.look_for_pods && plan.lost.is_empty());
    observed.pods_confirmed = true;
    observed.handler_runs = true;
    observed.node = node(late, "false");
    let plan = decide(&observed, now());
    assert!(!plan.mark_unschedulable && !plan.tell_of_orphans && !plan.look_for_pods);
    assert_eq!(plan.lost, [vmi("lost")]);
    assert_eq!(plan.recheck, Some(MINUTE));
}

#[test]
fn a_node_that_is_gone_loses_its_guests_too() {
    let mut observed = Observed { vmis: vec![vmi("lost")], pods_confirmed: true, ..Observed::default() };
    let plan = decide(&observed, now());
    assert_eq!(plan.lost, [vmi("lost")]);
    assert!(!plan.tell_of_orphans && !plan.mark_unschedulable);
    observed.vmis.clear();
    assert_eq!(decide(&observed, now()), Plan::default());
}

#[test]
fn a_pod_lives_until_it_or_all_its_containers_have_ended() {
    let pod = |phase: &str, states: &[Value]| -> Pod {
        let containers: Vec<Value> = states
            .iter()
            .map(|state| json!({"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}))
            .collect();
        let owner = json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "a", "uid": "u", "controller": true});
        let object = json!({
            "metadata": {"ownerReferences": [owner]},
            "status": {"phase": phase, "containerStatuses": containers},
        });
        serde_json::from_value(object).unwrap()
    };
    let (runs, ended) = (json!({"running": {}}), json!({"terminated": {"exitCode": 0}}));
    assert!(living(&pod("Running", &[runs.clone(), ended.clone()])).is_some());
    assert!(living(&pod("Pending", &[])).is_some());
    assert!(living(&pod("Running", &[ended.clone(), ended])).is_none());
    assert!(living(&pod("Failed", &[runs])).is_none());
    assert!(living(&Pod::default()).is_none());
}
