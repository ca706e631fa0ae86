use std::time::Duration;

use serde_json::{Value, json};

use super::*;

fn plan(change: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = Plan {
        kind: Kind::DataVolume,
        name: "a".into(),
        file: "f".into(),
        archive: false,
        size: None,
        storage_class: None,
        access_mode: None,
        volume_mode: None,
        no_create: false,
        force_bind: false,
        data_source: false,
        labels: Default::default(),
        proxy: None,
        insecure: false,
        retries: 0,
        wait: Duration::ZERO,
    };
    change(&mut plan);
    plan
}

fn claim(annotations: Value) -> PersistentVolumeClaim {
    let metadata = json!({ "name": "a", "namespace": "ns", "annotations": annotations });
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

fn volume(phase: &str, annotations: Value) -> DataVolume {
    let metadata = json!({ "name": "a", "annotations": annotations });
    serde_json::from_value(json!({ "metadata": metadata, "status": { "phase": phase } })).unwrap()
}

#[test]
fn a_claim_must_be_empty_and_meant_for_it() {
    let target = json!({ cdi::UPLOAD_TARGET: "" });
    let archive = json!({ cdi::UPLOAD_TARGET: "", cdi::CONTENT_TYPE: "archive" });
    let full = json!({ cdi::UPLOAD_TARGET: "", cdi::POD_PHASE: "Succeeded" });
    for (annotations, change, expected) in [
        (target.clone(), (|_| ()) as fn(&mut Plan), Ok(())),
        (full, |_| (), Err(Error::Full("a".into()))),
        (json!({}), |_| (), Err(Error::Other("a".into()))),
        (json!({}), |plan| plan.no_create = true, Ok(())),
        (target, |plan| plan.archive = true, Err(Error::NoArchive("a".into()))),
        (archive, |plan| plan.archive = true, Ok(())),
    ] {
        assert_eq!(check(&claim(annotations.clone()), &plan(change)), expected, "{annotations}");
    }
    assert!(needs_mark(&claim(json!({}))) && !needs_mark(&claim(json!({ cdi::UPLOAD_TARGET: "" }))));
}

#[test]
fn a_data_volume_may_fill_another_claim() {
    let plain = volume("Pending", json!({}));
    assert_eq!(filled(&claim(json!({})), Some(&plain)), Ok(None));
    let populator = volume("Pending", json!({ cdi::USE_POPULATOR: "true" }));
    let prime = claim(json!({ cdi::PVC_PRIME: "p" }));
    assert_eq!(filled(&prime, Some(&populator)), Ok(Some("p".into())));
    assert_eq!(filled(&claim(json!({})), Some(&populator)), Err(Error::NoPrime("ns/a".into())));
    let mut bound = claim(json!({}));
    bound.status = serde_json::from_value(json!({ "phase": "Bound" })).unwrap();
    assert_eq!(filled(&bound, Some(&populator)), Err(Error::Populated("a".into())));
    assert_eq!(filled(&claim(json!({})), None), Err(Error::NoDataVolume("ns/a".into())));
    let done = claim(json!({ cdi::DELETE_AFTER_COMPLETION: "true", cdi::POD_PHASE: "Succeeded" }));
    assert_eq!(filled(&done, None), Err(Error::Collected("ns/a".into())));
}

#[test]
fn readiness_is_told_by_annotations_and_phases() {
    assert!(is_ready(&claim(json!({ cdi::POD_READY: "true" }))) && !is_ready(&claim(json!({}))));
    assert!(is_stored(&claim(json!({ cdi::POD_PHASE: "Succeeded" }))) && !is_stored(&claim(json!({}))));
    let ready = |phase: &str, force| {
        volume_is_ready(&volume(phase, json!({})), &plan(|plan| plan.force_bind = force))
    };
    assert_eq!(ready("UploadReady", false), Ok(true));
    assert_eq!(ready("UploadScheduled", false), Ok(false));
    assert_eq!(ready("WaitForFirstConsumer", false), Err(Error::Waits("WaitForFirstConsumer".into())));
    assert_eq!(ready("PendingPopulation", true), Ok(false));
}

#[test]
fn events_end_the_wait() {
    let event = |kind: &str, uid: &str, reason: &str, message: &str| -> Event {
        serde_json::from_value(json!({
            "metadata": {}, "involvedObject": { "kind": kind, "uid": uid }, "reason": reason, "message": message,
        }))
        .unwrap()
    };
    let claim_failed = event("PersistentVolumeClaim", "c", "ProvisioningFailed", "no disks");
    let passing = event("PersistentVolumeClaim", "c", "ProvisioningFailed", CONFLICT);
    let invalid = event("DataVolume", "v", "ErrClaimNotValid", "no class");
    let of = |events: &[Event]| hopeless(events, Some("c"), Some("v"));
    assert_eq!(of(&[]), Ok(()));
    assert_eq!(of(std::slice::from_ref(&claim_failed)), Err(Error::Provisioning("no disks".into())));
    assert_eq!(of(&[passing]), Ok(()));
    assert_eq!(of(&[invalid]), Err(Error::Invalid("no class".into())));
    assert_eq!(hopeless(&[claim_failed], Some("other"), None), Ok(()));
}
