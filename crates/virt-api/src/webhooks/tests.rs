//! Whatever is sent to a webhook is answered: with a review, or with why it is none.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use kubevirt_component::Metrics;
use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::*;
use crate::testing::{ApiServer, instance, machine};

/// A client of an API server that is not there.
fn nowhere() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

fn webhooks(client: Client) -> Arc<Webhooks> {
    let stop = CancellationToken::new();
    stop.cancel();
    Arc::new(Webhooks {
        cluster: Arc::new(Cluster::start(&client, client.clone(), &stop)),
        configuration: Configuration::fixed(ClusterConfig::default()),
        own_accounts: OwnAccounts::of_installation("test"),
        client,
        counters: Counters::new(&Metrics::new(), "pod".into()),
        synced: OnceCell::from(()),
    })
}

/// What is answered to a request.
fn send(client: fn() -> Client, request: Request<Body>) -> (u16, Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let response = webhooks(client()).routes().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        (code, to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec())
    })
}

fn post_to(client: fn() -> Client, path: &str, body: Vec<u8>) -> (u16, Value) {
    let request = Request::post(path).header("content-type", "application/json").body(Body::from(body));
    let (code, body) = send(client, request.unwrap());
    (code, serde_json::from_slice(&body).unwrap())
}

fn post(path: &str, body: Vec<u8>) -> (u16, Value) {
    post_to(nowhere, path, body)
}

/// The places of an object, as JSON pointers.
fn places(value: &Value, here: &str, all: &mut Vec<String>) {
    all.push(here.to_owned());
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{here}/{name}"), all);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{here}/{index}"), all);
            }
        }
        _ => {}
    }
}

/// An object with something else in some of its places.
fn bent(mut object: Value, changes: &[(prop::sample::Index, Value)]) -> Value {
    for (place, value) in changes {
        let mut all = Vec::new();
        places(&object, "", &mut all);
        // What an object is cannot be anything: an API server knows.
        all.retain(|place| place.starts_with("/spec") || place.starts_with("/metadata/"));
        if let Some(found) = object.pointer_mut(place.get::<String>(&all)) {
            *found = value.clone();
        }
    }
    object
}

/// Anything that JSON can say, with some of the words that our kinds know.
fn anything() -> impl Strategy<Value = Value> {
    let word =
        "(name|namespace|spec|status|template|domain|devices|disks|metadata|labels|cpu|memory|[a-z]{0,6})";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,10}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(word, inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

#[test]
fn a_drain_waits_for_troubles_of_ours() {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "7", "operation": "CREATE", "namespace": "a", "name": "b", "subResource": "eviction",
            "kind": { "group": "policy", "version": "v1", "kind": "Eviction" },
            "object": { "metadata": { "namespace": "a", "name": "b" } },
        },
    });
    let (_, answer) = post(EVICTIONS, review.to_string().into_bytes());
    let status = &answer["response"]["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(429), &json!("TooManyRequests")), "{answer}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bytes_are_answered(path in 0..HOOKS.len(), body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (code, answer) = post(HOOKS[path].path, body);
        prop_assert_eq!(code, 400);
        prop_assert_eq!(&answer["kind"], "AdmissionReview");
    }

    #[test]
    fn reviews_of_anything_are_answered(
        at in 0..=HOOKS.len(),
        operation in prop_oneof![Just("CREATE"), Just("UPDATE"), Just("DELETE"), Just("CONNECT")],
        object in anything(),
        old in anything(),
    ) {
        let (path, kind, subresource) = match HOOKS.get(at) {
            Some(hook) => (hook.path, hook.kinds[0], hook.subresource),
            None => (EVICTIONS, "Eviction", "eviction"),
        };
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "7", "operation": operation, "namespace": "a", "name": "b", "subResource": subresource,
                "kind": { "group": "kubevirt.io", "version": "v1", "kind": kind },
                "object": object, "oldObject": old,
            },
        });
        let (code, answer) = post(path, review.to_string().into_bytes());
        prop_assert!(code == 200 || code == 400, "{code}");
        prop_assert_eq!(&answer["kind"], "AdmissionReview");
        prop_assert!(answer["response"]["allowed"].is_boolean(), "{}", answer);
    }

    #[test]
    fn reviews_of_bent_machines_are_answered_without_an_error_of_ours(
        of_machine in any::<bool>(),
        mutate in any::<bool>(),
        update in any::<bool>(),
        name in "(up|down|\\PC{0,8})",
        changes in proptest::collection::vec((any::<prop::sample::Index>(), anything()), 1..4),
    ) {
        let (kind, good) = if of_machine { ("VirtualMachine", machine()) } else { ("VirtualMachineInstance", instance()) };
        let path = match (of_machine, mutate, update) {
            (true, true, _) => "/virtualmachines-mutate",
            (true, false, _) => "/virtualmachines-validate",
            (false, true, _) => "/virtualmachineinstances-mutate",
            (false, false, false) => "/virtualmachineinstances-validate-create",
            (false, false, true) => "/virtualmachineinstances-validate-update",
        };
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "7", "operation": if update { "UPDATE" } else { "CREATE" }, "namespace": "a", "name": name,
                "kind": { "group": "kubevirt.io", "version": "v1", "kind": kind },
                "object": bent(good.clone(), &changes), "oldObject": if update { good } else { Value::Null },
            },
        });
        let (code, answer) = post_to(|| ApiServer::new(true).client(), path, review.to_string().into_bytes());
        prop_assert_eq!(code, 200, "{}", answer);
        let response = &answer["response"];
        prop_assert!(response["allowed"].is_boolean() && response["uid"] == "7", "{}", answer);
        let inner = response["status"]["code"].as_u64().unwrap_or_default();
        prop_assert!(inner < 500, "{}", answer);
    }

    #[test]
    fn requests_of_any_kind_are_answered(
        method in "(POST|GET|PUT|[A-Z]{1,7})",
        at in 0..=HOOKS.len(),
        end in "(|[!-~&&[^#]]{0,8})",
        kind in "(application/json|application/json; charset=x|text/plain|[ -~]{0,12})",
        headers in proptest::collection::vec(("(content-length|expect|transfer-encoding|[a-z-]{1,10})", "[ -~]{0,10}"), 0..3),
        body in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let path = HOOKS.get(at).map_or(EVICTIONS, |hook| hook.path);
        let builder = Request::builder().method(method.as_str()).uri(format!("{path}{end}"));
        let builder = headers.iter().fold(builder, |all, (name, value)| all.header(name, value));
        if let Ok(request) = builder.header("content-type", kind).body(Body::from(body)) {
            let (code, _) = send(nowhere, request);
            prop_assert!((400..500).contains(&code), "{code}");
        }
    }
}
