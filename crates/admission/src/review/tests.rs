//! Whole reviews, from bytes to answer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Answer, Incoming, Steps, Surroundings, answer};
use crate::{ClusterConfig, KnownObjects, OwnAccounts};

fn respond(incoming: &Incoming, steps: Steps) -> Answer {
    let surroundings = Surroundings {
        config: &ClusterConfig::default(),
        objects: &KnownObjects::default(),
        own_accounts: &OwnAccounts::of_installation("kubevirt"),
        now: Time("2026-01-02T03:04:05Z".parse().unwrap()),
        fresh_uuid: &|| Uuid::from_u128(7),
    };
    answer(incoming, &surroundings, steps)
}

fn review(kind: &str, object: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "42",
            "kind": { "group": "kubevirt.io", "version": "v1", "kind": kind },
            "operation": "CREATE",
            "namespace": "default",
            "userInfo": { "username": "alice", "groups": ["system:authenticated"] },
            "object": object,
        },
    })
}

fn vmi() -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "domain": { "devices": {}, "memory": { "guest": "64Mi" } } },
    })
}

fn answered(review: &Value) -> Answer {
    respond(&Incoming::parse(review.to_string().as_bytes()).unwrap(), Steps::Both)
}

fn found(answer: &Answer) -> Vec<(&str, &str)> {
    answer.problems.iter().map(|problem| (problem.field.as_str(), problem.reason.as_str())).collect()
}

#[test]
fn a_good_object_is_allowed_with_a_patch_that_applies() {
    let object = vmi();
    let answer = answered(&review("VirtualMachineInstance", object.clone()));
    assert_eq!(found(&answer), []);
    let mut patched = object;
    json_patch::patch(&mut patched, answer.patch.as_ref().unwrap()).unwrap();
    assert_eq!(patched["status"]["phase"], "Pending");
    assert_eq!(patched["spec"]["domain"]["machine"]["type"], "q35");
    let response = &answer.to_review()["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("42"), &json!(true)));
    assert_eq!(response["patchType"], "JSONPatch");
}

#[test]
fn what_is_only_prepared_gets_the_same_patch_and_no_verdict() {
    let asked = |object: &Value, steps| {
        let review = review("VirtualMachineInstance", object.clone());
        respond(&Incoming::parse(review.to_string().as_bytes()).unwrap(), steps)
    };
    let mut object = vmi();
    object["metadata"]["managedFields"] = json!([{ "manager": "kubectl", "fieldsV1": { "f:spec": {} } }]);
    let patch = asked(&object, Steps::Prepare).patch;
    assert!(patch.is_some());
    assert_eq!(patch, asked(&object, Steps::Mutate).patch);
    object["spec"]["domain"]["coers"] = json!(2);
    assert!(asked(&object, Steps::Prepare).allowed());
    for steps in [Steps::Mutate, Steps::Validate] {
        assert!(found(&asked(&object, steps)).contains(&("spec.domain.coers", "FieldUnknown")));
    }
    // What cannot be read is held to its schema, to say where.
    object["spec"]["domain"]["cpu"] = json!({ "cores": "two" });
    let wrong = asked(&object, Steps::Prepare);
    assert!(found(&wrong).contains(&("spec.domain.cpu.cores", "FieldValueTypeInvalid")), "{wrong:?}");
}

#[test]
fn every_problem_is_a_cause_with_its_field() {
    let mut object = vmi();
    object["spec"]["domain"]["cpu"] = json!({ "coers": 2, "cores": "two" });
    object["spec"]["domain"]["devices"] = json!({ "disks": [{ "name": "a", "disk": { "bus": "floppy" } }] });
    let answer = answered(&review("VirtualMachineInstance", object));
    let found = found(&answer);
    assert!(found.contains(&("spec.domain.cpu.coers", "FieldUnknown")), "{found:?}");
    assert!(found.contains(&("spec.domain.cpu.cores", "FieldValueTypeInvalid")), "{found:?}");
    assert!(found.contains(&("spec.domain.devices.disks[0].disk.bus", "FieldValueInvalid")), "{found:?}");
    let status = &answer.to_review()["response"]["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
    assert_eq!(status["details"]["causes"].as_array().unwrap().len(), found.len());
}

#[test]
fn a_review_that_does_not_say_its_kind_is_about_what_its_object_says() {
    let mut review = review("VirtualMachineInstance", vmi());
    review["request"].as_object_mut().unwrap().remove("kind");
    assert_eq!(found(&answered(&review)), []);
}

#[test]
fn a_field_that_stands_twice_is_a_problem() {
    let text = review("VirtualMachineInstance", vmi()).to_string();
    let doubled = text.replace(r#""memory":{"#, r#""memory":{"guest":"1Gi","#);
    let answer = respond(&Incoming::parse(doubled.as_bytes()).unwrap(), Steps::Both);
    assert_eq!(found(&answer), [("spec.domain.memory.guest", "FieldValueDuplicate")]);
}

#[test]
fn metadata_that_the_schema_keeps_but_types_cannot_read_is_named() {
    let object = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "runStrategy": "Halted", "template": {
            "metadata": { "labels": { "a": 1 } },
            "spec": { "domain": { "devices": {} } },
        } },
    });
    let answer = answered(&review("VirtualMachine", object));
    assert_eq!(found(&answer), [("spec.template.metadata.labels.a", "FieldValueTypeInvalid")]);
}

#[test]
fn what_is_no_review_is_answered_with_a_reason() {
    let mut wrong = review("VirtualMachineInstance", vmi());
    wrong["request"]["operation"] = json!("PATCH");
    let cases: [(&[u8], &str); 5] = [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "apiVersion"),
        (br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#, "request: "),
        (wrong.to_string().leak().as_bytes(), "request.operation: "),
    ];
    for (bytes, expected) in cases {
        let error = Incoming::parse(bytes).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert_eq!(error.to_review()["response"]["allowed"], false);
    }
}

#[test]
fn a_kind_or_version_that_is_not_served_is_refused() {
    let mut pod = review("Pod", json!({}));
    pod["request"]["kind"] = json!({ "group": "", "version": "v1", "kind": "Pod" });
    assert_eq!(answered(&pod).refusal.unwrap().code, 400);
    let mut old = review("VirtualMachineInstance", vmi());
    old["request"]["kind"]["version"] = json!("v1alpha1");
    assert!(answered(&old).refusal.unwrap().message.contains("v1 or v1alpha3"));
}

/// Any JSON, with words of the API among the keys so that it gets past the first door.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "spec",
        "domain",
        "devices",
        "disks",
        "name",
        "disk",
        "bus",
        "volumes",
        "networks",
        "interfaces",
        "cpu",
        "cores",
        "memory",
        "guest",
        "template",
        "metadata",
        "labels",
        "running",
        "runStrategy",
        "resources",
        "requests",
        "firmware",
        "features",
        "instancetype",
        "preference",
        "configuration",
        "source",
        "kind",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["virtio", "1Gi", "-1", "9e99", "Always", "1.5Gi", "default"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_object_of_any_kind_gets_an_answer(spec in any_json(), old in any_json()) {
        for kind in kubevirt_api::crd::KINDS {
            let mut review = review(kind.name, json!({ "metadata": { "name": "x" }, "spec": spec }));
            review["request"]["kind"] = json!({
                "group": kind.group, "version": kind.versions[0].name, "kind": kind.name,
            });
            let creation = answered(&review);
            prop_assert_eq!(creation.allowed(), creation.problems.is_empty());
            review["request"]["operation"] = json!("UPDATE");
            review["request"]["oldObject"] = json!({ "metadata": { "name": "x" }, "spec": old });
            answered(&review);
        }
    }

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Incoming::parse(&bytes).is_err());
    }
}
