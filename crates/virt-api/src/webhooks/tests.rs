//! Whatever is sent to a webhook is answered: with a review, or with why it is none.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use kubevirt_component::Metrics;
use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::*;

/// Webhooks whose API server is not there.
fn webhooks() -> Arc<Webhooks> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
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

fn post(path: &str, body: Vec<u8>) -> (u16, Value) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let request =
            Request::post(path).header("content-type", "application/json").body(Body::from(body)).unwrap();
        let response = webhooks().routes().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (code, serde_json::from_slice(&body).unwrap())
    })
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
}
