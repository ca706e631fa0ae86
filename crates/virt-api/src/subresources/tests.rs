//! The server as clients see it, without a cluster: nothing that needs one is reached by somebody unknown.

use axum::body::to_bytes;
use axum::http::header::CONTENT_TYPE;
use kubevirt_admission::ClusterConfig;
use kubevirt_component::Metrics;
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::routes::On;
use super::*;
use crate::testing::{ApiServer, failed_test};

/// A server with a client of an API server, whatever that is.
pub(super) fn server_with(client: Client, config: ClusterConfig) -> Arc<Subresources> {
    let stop = CancellationToken::new();
    stop.cancel();
    let arguments = clap::Parser::try_parse_from(["virt-api", "--install-namespace=test"]).unwrap();
    let needs = Needs {
        arguments: &arguments,
        client: client.clone(),
        reviews: client.clone(),
        cluster: Arc::new(Cluster::start(&client, client.clone(), &stop)),
        configuration: Configuration::fixed(config),
        connections: Connections::new(&Metrics::new()),
    };
    Arc::new(Subresources::start(needs, &stop))
}

/// A server of this API server, where all can be done that there is.
pub(super) fn server_of(api: &ApiServer) -> Arc<Subresources> {
    crypto();
    let gates = ["HotplugVolumes", "ObjectGraph", "WorkloadEncryptionSEV", "VSOCK"];
    let gates = json!({ "configuration": { "developerConfiguration": { "featureGates": gates } } });
    let installation = json!({ "metadata": { "name": "kubevirt" }, "spec": gates });
    server_with(api.client(), ClusterConfig::of(&serde_json::from_value(installation).unwrap()))
}

/// A server whose API server is not there.
fn server() -> Arc<Subresources> {
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    server_with(Client::try_from(config).unwrap(), ClusterConfig::default())
}

async fn ask(server: &Arc<Subresources>, request: Request<Body>) -> (u16, Value) {
    let response = server.clone().routes().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    assert_eq!(response.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (code, serde_json::from_slice(&body).unwrap())
}

fn request(method: &str, path: &str) -> Request<Body> {
    Request::builder().method(method).uri(path).body(Body::empty()).unwrap()
}

/// A request of a user whom the aggregator speaks for, on an object in the namespace `a`.
fn of_user(method: &str, rest: &str, body: &Value) -> Request<Body> {
    let mut request = request(method, &format!("/apis/subresources.kubevirt.io/v1/namespaces/a/{rest}"));
    for (name, value) in [("x-remote-user", "jane"), ("x-remote-group", "dev")] {
        request.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let peer = Peer { address: ([127, 0, 0, 1], 1).into(), certificates: vec![vec![1].into()].into() };
    request.extensions_mut().insert(peer);
    request.map(|_| Body::from(body.to_string()))
}

fn crypto() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[tokio::test]
async fn anybody_may_read_what_is_served() {
    crypto();
    let server = server();
    for path in [
        "/",
        "/apis",
        "/apis/subresources.kubevirt.io",
        "/apis/subresources.kubevirt.io/v1",
        "/apis/subresources.kubevirt.io/v1/",
        "/apis/subresources.kubevirt.io/v1alpha3",
        "/apis/subresources.kubevirt.io/v1/version",
        "/apis/subresources.kubevirt.io/v1alpha3/version",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/apis/subresources.kubevirt.io/v1?hash=1",
    ] {
        assert_eq!(ask(&server, request("GET", path)).await.0, 200, "{path}");
        assert_eq!(ask(&server, request("DELETE", path)).await.0, 405, "{path}");
    }
    let (code, status) =
        ask(&server, request("GET", "/apis/subresources.kubevirt.io/v1/start-cluster-profiler")).await;
    assert_eq!((code, status["reason"].as_str()), (403, Some("Forbidden")));
}

#[tokio::test]
async fn nobody_is_believed_without_the_aggregators_certificate() {
    crypto();
    let server = server();
    for route in routes::ROUTES.iter().filter(|route| !route.open()) {
        let path = route.template(route.on.group().versions[0]);
        let path = path.replace("{namespace}", "a").replace("{name}", "b").replace("{port}", "22");
        let mut request = request(route.method.method(), &path.replace("{protocol}", "tcp"));
        for (name, value) in [("x-remote-user", "admin"), ("x-remote-group", "system:masters")] {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let (code, status) = ask(&server, request).await;
        assert_eq!((code, status["reason"].as_str()), (401, Some("Unauthorized")), "{path}");
    }
}

#[tokio::test]
async fn who_loses_a_race_is_told_so_that_clients_know_what_to_do() {
    let server = server_of(&ApiServer::new(true).raced());
    let source = json!({ "persistentVolumeClaim": { "claimName": "c" } });
    let volume = json!({ "name": "new", "disk": { "disk": {} }, "volumeSource": source });
    let dump = json!({ "claimName": "claim" });
    for (rest, body) in [
        ("virtualmachines/up/addvolume", &volume),
        ("virtualmachineinstances/up/addvolume", &volume),
        ("virtualmachines/up/memorydump", &dump),
    ] {
        // KubeVirt's virtctl asks again after these words, and after no others.
        assert_eq!(ask(&server, of_user("PUT", rest, body)).await, (422, failed_test()), "{rest}");
    }
    for rest in ["virtualmachines/down/start", "virtualmachines/up/stop", "virtualmachines/up/restart"] {
        let (code, status) = ask(&server, of_user("PUT", rest, &Value::Null)).await;
        assert_eq!((code, status["reason"].as_str()), (409, Some("Conflict")), "{rest}");
    }
}

#[tokio::test]
async fn anybody_may_ask_by_which_method_something_is_served() {
    crypto();
    let server = server();
    let of_routes = routes::ROUTES.iter().map(|route| {
        let path = route.template(route.on.group().versions[0]).replace("{namespace}", "a");
        let path = path.replace("{name}", "b").replace("{port}", "22").replace("{protocol}", "tcp");
        (path, route.method.method())
    });
    for (path, method) in of_routes.chain([("/openapi/v2".to_owned(), "GET")]) {
        let response = server.clone().routes().oneshot(request("OPTIONS", &path)).await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()[ALLOW], method, "{path}");
        assert!(to_bytes(response.into_body(), usize::MAX).await.unwrap().is_empty());
    }
    assert_eq!(ask(&server, request("OPTIONS", "/nothing")).await.0, 404);
}

/// A body that is good enough for a route.
fn body_for(route: &routes::Route) -> Value {
    let source = json!({ "persistentVolumeClaim": { "claimName": "c" } });
    match route.path {
        "addvolume" => json!({ "name": "new", "disk": { "disk": {} }, "volumeSource": source }),
        "removevolume" => json!({ "name": "new" }),
        "freeze" => json!({ "unfreezeTimeout": "5m" }),
        "sev/setupsession" => json!({ "session": "s", "dhCert": "d" }),
        "sev/injectlaunchsecret" | "backup" | "redefine-checkpoint" => json!({}),
        _ => Value::Null,
    }
}

#[tokio::test]
async fn what_nothing_can_be_named_is_not_found_and_not_asked_for() {
    let api = ApiServer::new(true);
    let server = server_of(&api);
    let before = api.asked().len();
    for route in routes::ROUTES {
        let kind = match route.on {
            On::Machine => "virtualmachine",
            On::Instance => "virtualmachineinstance",
            _ => continue,
        };
        for (word, name) in [("Foo", "Foo"), ("a_b", "a_b"), ("a%3fwatch", "a?watch")] {
            let rest = format!("{kind}s/{word}/{}?port=1024", route.path);
            let rest = rest.replace("{port}", "22").replace("{protocol}", "tcp");
            let request = of_user(route.method.method(), &rest, &body_for(route));
            let (code, status) = ask(&server, request).await;
            let message = format!("{kind}.kubevirt.io {name:?} not found");
            assert_eq!((code, status["message"].as_str()), (404, Some(message.as_str())), "{rest}");
        }
    }
    let asked = api.asked().split_off(before);
    assert!(asked.iter().all(|line| line.ends_with("/subjectaccessreviews")), "{asked:?}");
}

#[tokio::test]
async fn a_claim_is_only_looked_for_by_what_can_be_its_name() {
    let api = ApiServer::new(true);
    let dump = json!({ "claimName": "../secrets/claim" });
    let (code, status) = ask(&server_of(&api), of_user("PUT", "virtualmachines/up/memorydump", &dump)).await;
    let message = "persistentvolumeclaim.kubevirt.io \"../secrets/claim\" not found";
    assert_eq!((code, status["message"].as_str()), (404, Some(message)));
    assert!(!api.asked().iter().any(|line| line.contains("secrets")), "{:?}", api.asked());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_comes_is_answered_with_a_status(
        method in "[A-Z]{1,7}",
        words in proptest::collection::vec("(apis|subresources.kubevirt.io|v1|namespaces|virtualmachines|[!-~&&[^?#]]{0,8})", 0..9),
        query in "[!-~&&[^#]]{0,20}",
        body in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let path = format!("/{}?{query}", words.join("/"));
        if let Ok(request) = Request::builder().method(method.as_str()).uri(path).body(Body::from(body)) {
            crypto();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let (code, answer) = runtime.block_on(async { ask(&server(), request).await });
            prop_assert!(code == 200 || answer["kind"] == "Status" && answer["code"] == code, "{code}: {answer}");
        }
    }

    #[test]
    fn whatever_a_body_says_is_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = options::decode::<options::StartOptions>(&body).map_err(|failure| assert_eq!(failure.code, 400));
        let _ = options::decode::<options::AddVolume>(&body).map_err(|failure| assert_eq!(failure.code, 400));
        let _ = options::decode::<options::ObjectGraphOptions>(&body);
    }

    #[test]
    fn whatever_a_query_says_is_read(text in "\\PC{0,40}") {
        let query = Query::of(&text);
        let _ = query.flag("a", true);
    }
}
