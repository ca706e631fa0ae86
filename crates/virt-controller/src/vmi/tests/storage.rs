//! Claims and data volumes that the first pod waits for, and the claim for state.

use std::sync::Arc;

use kubevirt_api::condition;
use kubevirt_api::names::labels;
use serde_json::{Value, json};

use super::build::{all_short, claim, data_volume, now, observed, pod, temporary, vmi};
use crate::vmi::{Observed, Plan, Step, decide};

fn with_disk(source: Value) -> Observed {
    let mut volume = json!({"name": "disk"});
    volume.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    observed(vmi("Pending", json!({"spec": {"volumes": [volume]}})), None)
}

fn told(plan: &Plan, type_: &str) -> String {
    let status = plan.vmi.as_ref().and_then(|vmi| vmi.status.as_ref());
    let found = condition::find(status.and_then(|status| status.conditions.as_deref()), type_);
    found.map(|it| format!("{} {}", it.status, it.reason.as_deref().unwrap_or_default())).unwrap_or_default()
}

fn phase(plan: &Plan) -> String {
    let status = plan.vmi.as_ref().and_then(|vmi| vmi.status.as_ref());
    status.and_then(|status| status.phase.as_ref()).map(ToString::to_string).unwrap_or_default()
}

#[test]
fn a_claim_that_is_missing_is_waited_for() {
    let mut observed = with_disk(json!({"persistentVolumeClaim": {"claimName": "data"}}));
    let waits = decide(&observed, now());
    assert!(waits.steps.is_empty() && !waits.trouble.as_ref().unwrap().retry);
    assert_eq!(told(&waits, "Synchronized"), "False FailedPvcNotFound");
    assert_eq!(told(&waits, "PodScheduled"), "False Unschedulable");
    assert_eq!((phase(&waits).as_str(), waits.events.len()), ("Pending", 1));
    observed.vmi = Arc::from(waits.vmi.unwrap());
    observed.claims.insert("data".into(), Arc::new(claim("data", "Pending", None)));
    assert_eq!(all_short(&decide(&observed, now()).steps), ["make launcher"]);
    observed.pods = vec![Arc::new(pod("new"))];
    let goes_on = decide(&observed, now());
    assert_eq!(
        (told(&goes_on, "Synchronized"), told(&goes_on, "PodScheduled")),
        (String::new(), String::new())
    );
}

#[test]
fn a_data_volume_decides_when_its_claim_can_be_used() {
    let cases = [
        ("Succeeded", "make launcher", "", ""),
        ("PendingPopulation", "make launcher", "", ""),
        ("ImportInProgress", "", "Pending", "False NotAllDVsReady"),
        ("WaitForFirstConsumer", "make provisioner", "", ""),
        ("Failed", "", "Failed", "False NotAllDVsReady"),
    ];
    for (state, steps, after, ready) in cases {
        let mut observed = with_disk(json!({"dataVolume": {"name": "data"}}));
        observed.claims.insert("data".into(), Arc::new(claim("data", "Pending", Some("data"))));
        observed.data_volumes.insert("data".into(), Arc::new(data_volume("data", state)));
        let plan = decide(&observed, now());
        assert_eq!(all_short(&plan.steps).join(","), steps, "{state}");
        assert_eq!(
            (phase(&plan).as_str(), told(&plan, "DataVolumesReady").as_str()),
            (after, ready),
            "{state}"
        );
    }
}

#[test]
fn a_temporary_pod_stands_in_until_the_volume_is_filled() {
    let mut observed = with_disk(json!({"dataVolume": {"name": "data"}}));
    observed.claims.insert("data".into(), Arc::new(claim("data", "Pending", Some("data"))));
    observed.data_volumes.insert("data".into(), Arc::new(data_volume("data", "WaitForFirstConsumer")));
    for (state, after) in [("creating", "Pending"), ("unschedulable", "Pending"), ("failed", "Failed")] {
        observed.pods = vec![Arc::new(temporary(state))];
        let plan = decide(&observed, now());
        assert!(plan.steps.is_empty(), "{state}");
        assert_eq!(
            (phase(&plan).as_str(), told(&plan, "Provisioning").as_str()),
            (after, "True "),
            "{state}"
        );
        let scheduled = told(&plan, "PodScheduled");
        assert_eq!(scheduled, if state == "unschedulable" { "False Unschedulable" } else { "" });
    }
    // Filled: the stand-in goes, then the launcher comes.
    observed.data_volumes.insert("data".into(), Arc::new(data_volume("data", "Succeeded")));
    observed.pods = vec![Arc::new(temporary("succeeded"))];
    assert_eq!(all_short(&decide(&observed, now()).steps), ["delete virt-launcher-web-t"]);
    observed.pods.clear();
    assert_eq!(all_short(&decide(&observed, now()).steps), ["make launcher"]);
}

#[test]
fn state_of_firmware_and_tpm_gets_a_claim_before_the_pod() {
    let more = json!({
        "metadata": {"ownerReferences": [{
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "vm-uid", "controller": true,
        }]},
        "spec": {"domain": {"devices": {"tpm": {"persistent": true}}}},
    });
    let mut observed = observed(vmi("Pending", more), None);
    assert_eq!(told(&decide(&observed, now()), "Synchronized"), "False FailedBackendStorageCreate");
    observed.storage.class = Some("fast".into());
    observed.storage.access_mode = "ReadWriteMany".into();
    let plan = decide(&observed, now());
    let [Step::CreateStateClaim(wanted)] = plan.steps.as_slice() else { panic!("{:?}", plan.steps) };
    assert_eq!(wanted.metadata.labels.as_ref().unwrap()[labels::PERSISTENT_STATE_FOR], "web");
    assert_eq!(wanted.metadata.owner_references.as_ref().unwrap()[0].uid, "vm-uid");
    assert_eq!(wanted.spec.as_ref().unwrap().access_modes.as_deref().unwrap(), ["ReadWriteMany"]);

    let mut made = (**wanted).clone();
    made.status = Some(Default::default());
    observed.storage.state = Some(Arc::new(made.clone()));
    observed.storage.state_waits_for_consumer = Some(false);
    assert_eq!(told(&decide(&observed, now()), "Synchronized"), "False BackendStorageNotReady");
    made.status.as_mut().unwrap().phase = Some("Bound".into());
    observed.storage.state = Some(Arc::new(made));
    assert_eq!(all_short(&decide(&observed, now()).steps), ["make launcher"]);
    observed.pods = vec![Arc::new(pod("new"))];
    let status = decide(&observed, now()).vmi.unwrap().status.unwrap();
    assert_eq!(status.volume_status.unwrap()[0].name, "persistent-state-for-this-vm");
}

#[test]
fn the_claim_has_room_for_what_is_kept_on_it() {
    let tpm = json!({"spec": {"domain": {"devices": {"tpm": {"persistent": true}}}}});
    let tracks = |state: &str| json!({"status": {"changedBlockTracking": {"state": state}}});
    for (more, size) in [(tpm, "10Mi"), (tracks("Initializing"), "522Mi"), (tracks("Enabled"), "522Mi")] {
        let mut observed = observed(vmi("Pending", more.clone()), None);
        observed.storage.class = Some("fast".into());
        let plan = decide(&observed, now());
        let [Step::CreateStateClaim(wanted)] = plan.steps.as_slice() else { panic!("{:?}", plan.steps) };
        let resources = wanted.spec.as_ref().unwrap().resources.as_ref().unwrap();
        assert_eq!(resources.requests.as_ref().unwrap()["storage"].0, size, "{more}");
    }
}

#[test]
fn the_node_learns_of_claims_from_the_status() {
    let volumes = json!([{"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}]);
    let mut launcher = pod("running");
    launcher.spec.as_mut().unwrap().volumes = Some(vec![super::plugged::held("disk", "data")]);
    let mut observed = observed(vmi("Scheduling", json!({"spec": {"volumes": volumes}})), [launcher]);
    observed.claims.insert("data".into(), Arc::new(claim("data", "Bound", None)));
    let status = decide(&observed, now()).vmi.unwrap().status.unwrap();
    let expected = json!([{
        "name": "disk", "target": "",
        "persistentVolumeClaimInfo": {
            "claimName": "data", "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
            "capacity": {"storage": "2Gi"}, "requests": {"storage": "1Gi"}, "filesystemOverhead": "0.055",
        },
    }]);
    assert_eq!(serde_json::to_value(status.volume_status).unwrap(), expected);
}
