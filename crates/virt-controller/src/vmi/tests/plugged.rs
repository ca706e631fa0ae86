//! Volumes that are plugged and unplugged while the guest runs.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Volume};
use kubevirt_api::vmi::status::VolumeStatus;
use serde_json::{Value, json};

use super::build::{all_short, claim, data_volume, now, observed, pod, vmi};
use crate::vmi::{Observed, decide};

pub fn held(name: &str, claim: &str) -> Volume {
    serde_json::from_value(json!({"name": name, "persistentVolumeClaim": {"claimName": claim}})).unwrap()
}

/// A pod that holds volumes whose claims have their names.
fn holder(name: &str, volumes: &[&str], phase: &str, created: &str) -> Arc<Pod> {
    let ready = phase == "Running";
    let pod = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "creationTimestamp": created,
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": "virt-launcher-web-x", "uid": "pod-uid", "controller": true,
            }],
        },
        "spec": {"containers": [], "volumes": volumes.iter().map(|name| held(name, name)).collect::<Vec<_>>()},
        "status": {"phase": phase, "containerStatuses": [{
            "name": "hotplug-disk", "image": "", "imageID": "", "restartCount": 0, "ready": ready,
        }]},
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn running(volumes: &[&str], known: Value) -> Observed {
    let volume = |name: &&str| json!({"name": name, "persistentVolumeClaim": {"claimName": name, "hotpluggable": true}});
    let more = json!({
        "spec": {"volumes": volumes.iter().map(volume).collect::<Vec<_>>()},
        "status": {"nodeName": "node1", "volumeStatus": known},
    });
    let mut observed = observed(vmi("Running", more), [pod("ready")]);
    for name in ["a", "b"] {
        observed.claims.insert(name.into(), Arc::new(claim(name, "Bound", None)));
    }
    observed
}

fn steps(observed: &Observed) -> String {
    all_short(&decide(observed, now()).steps).join(", ")
}

fn status(observed: &Observed, name: &str) -> Option<VolumeStatus> {
    let status = decide(observed, now()).vmi.unwrap().status.unwrap();
    status.volume_status.unwrap_or_default().into_iter().find(|volume| volume.name == name)
}

fn phase(observed: &Observed, name: &str) -> String {
    status(observed, name).and_then(|volume| volume.phase).map(|phase| phase.to_string()).unwrap_or_default()
}

fn known(name: &str, phase: &str) -> Value {
    json!([{"name": name, "target": "", "phase": phase, "hotplugVolume": {"attachPodName": "one"}}])
}

const EARLY: &str = "2026-01-01T11:00:00Z";
const LATE: &str = "2026-01-01T11:10:00Z";

#[test]
fn a_plugged_volume_is_held_on_the_node_and_then_handed_over() {
    let mut observed = running(&["a"], json!([]));
    assert_eq!(steps(&observed), "hold a");
    observed.attachments = vec![holder("one", &["a"], "Pending", EARLY)];
    assert_eq!(steps(&observed), "");
    let told = status(&observed, "a").unwrap();
    assert_eq!(told.phase.unwrap().to_string(), "AttachedToNode");
    let hotplug = told.hotplug_volume.unwrap();
    assert_eq!((hotplug.attach_pod_name.as_deref(), hotplug.attach_pod_uid), (Some("one"), None));
    assert!(told.persistent_volume_claim_info.is_some());

    observed.attachments = vec![holder("one", &["a"], "Running", EARLY)];
    let uid = status(&observed, "a").unwrap().hotplug_volume.unwrap().attach_pod_uid;
    assert_eq!(uid.as_deref(), Some("uid-one"));
    // From here on the node leads.
    for phase_of_node in ["MountedToPod", "Ready"] {
        let mut observed = running(&["a"], known("a", phase_of_node));
        observed.attachments = vec![holder("one", &["a"], "Running", EARLY)];
        assert_eq!((steps(&observed).as_str(), phase(&observed, "a").as_str()), ("", phase_of_node));
    }
}

#[test]
fn what_is_not_ready_waits_and_keeps_nothing_else_waiting() {
    let mut observed = running(&["a", "b"], json!([]));
    observed.claims.remove("b");
    assert_eq!(steps(&observed), "hold a");
    observed.attachments = vec![holder("one", &["a"], "Running", EARLY)];
    assert_eq!(
        (phase(&observed, "a").as_str(), phase(&observed, "b").as_str()),
        ("AttachedToNode", "Pending")
    );

    observed.claims.insert("b".into(), Arc::new(claim("b", "Pending", Some("b"))));
    observed.data_volumes.insert("b".into(), Arc::new(data_volume("b", "WaitForFirstConsumer")));
    assert_eq!(steps(&observed), "trigger b");
    observed.data_volumes.insert("b".into(), Arc::new(data_volume("b", "ImportInProgress")));
    assert_eq!(steps(&observed), "");
}

#[test]
fn one_more_volume_means_another_pod_and_the_old_one_stays_until_it_runs() {
    let mut observed = running(&["a", "b"], known("a", "Ready"));
    observed.attachments = vec![holder("one", &["a"], "Running", EARLY)];
    assert_eq!(steps(&observed), "hold a,b");
    observed.attachments.push(holder("two", &["a", "b"], "Pending", LATE));
    assert_eq!(steps(&observed), "");
    // Nothing new is made while something is still starting.
    observed.attachments[1] = holder("two", &["b"], "Pending", LATE);
    assert_eq!(steps(&observed), "delete two");
    observed.attachments[1] = holder("two", &["a", "b"], "Running", LATE);
    assert_eq!(steps(&observed), "delete one");
    assert_eq!(phase(&observed, "a"), "Ready");
}

#[test]
fn an_unplugged_volume_is_held_until_the_node_has_let_go_of_it() {
    for (before, after, expected) in [
        ("Ready", "Ready", ""),
        ("MountedToPod", "MountedToPod", ""),
        ("UnMountedFromPod", "Detaching", "delete one"),
        ("Detaching", "Detaching", "delete one"),
        ("AttachedToNode", "Detaching", "delete one"),
    ] {
        let mut observed = running(&[], known("a", before));
        observed.attachments = vec![holder("one", &["a"], "Running", EARLY)];
        assert_eq!(
            (steps(&observed).as_str(), phase(&observed, "a").as_str()),
            (expected, after),
            "{before}"
        );
    }
    // With its pod the status goes, too.
    assert_eq!(status(&running(&[], known("a", "Detaching")), "a"), None);
}

#[test]
fn another_disk_in_the_same_drive_is_another_claim() {
    let mut observed = running(&["a"], known("a", "Ready"));
    let mut other = (*holder("one", &["a"], "Running", EARLY)).clone();
    other.spec.as_mut().unwrap().volumes = Some(vec![held("a", "before")]);
    observed.attachments = vec![Arc::new(other)];
    assert_eq!(steps(&observed), "hold a");
}

#[test]
fn an_empty_drive_needs_no_pod() {
    let more = json!({
        "spec": {"domain": {"devices": {"disks": [{"name": "cd", "cdrom": {"bus": "sata"}}]}}},
        "status": {"nodeName": "node1"},
    });
    let observed = observed(vmi("Running", more), [pod("ready")]);
    assert_eq!(steps(&observed), "");
}

#[test]
fn all_holders_go_with_the_guest() {
    let mut observed =
        observed(vmi("Succeeded", json!({"status": {"nodeName": "node1"}})), [pod("succeeded")]);
    observed.attachments = vec![holder("one", &["a"], "Running", EARLY)];
    assert_eq!(steps(&observed), "delete one");
}
