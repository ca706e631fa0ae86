use axum::Router;
use axum::routing::get;
use kubevirt_admission::ClusterConfig;
use kubevirt_component::Configuration;
use kubevirt_component::serve::Server;
use kubevirt_component::tls::{Policy, Tls};
use rcgen::ExtendedKeyUsagePurpose;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::subresources::handler_client::tests::{Authority, Folder};
use crate::subresources::tests::server_with;
use crate::subresources::{Query, routes};
use crate::testing::ApiServer;

fn pod(name: &str, change: impl FnOnce(&mut Value)) -> Pod {
    let mut pod = json!({
        "metadata": { "name": name },
        "status": {
            "phase": "Running", "podIP": "127.0.0.1", "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    change(&mut pod);
    serde_json::from_value(pod).unwrap()
}

#[test]
fn only_components_that_are_ready_are_asked() {
    for (name, asked) in [
        ("virt-api-1-2", true),
        ("virt-controller-1-2", true),
        ("virt-handler-1", true),
        ("virt-operator-1-2", true),
        ("virt-api", false),
        ("virt-apis-1", false),
        ("virt-launcher-vm-1", false),
        ("virt-exportproxy-1", false),
        ("my-virt-api-1", false),
        ("", false),
    ] {
        assert_eq!(answers(&pod(name, |_| {})), asked, "{name}");
    }
    type Change = fn(&mut Value);
    let not_asked: [(&str, Change); 5] = [
        ("it starts", |pod| pod["status"]["phase"] = json!("Pending")),
        ("it leaves", |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")),
        ("it is not ready", |pod| pod["status"]["conditions"][0]["status"] = json!("False")),
        ("nobody knows", |pod| pod["status"]["conditions"] = json!([])),
        ("it has no status", |pod| pod["status"] = json!({})),
    ];
    for (why, change) in not_asked {
        assert!(!answers(&pod("virt-api-1", change)), "{why}");
    }
}

#[test]
fn pages_have_a_usual_and_a_largest_size() {
    for (asked, size) in [
        (0, 10),
        (-1, 10),
        (i64::MIN, 10),
        (1, 1),
        (10, 10),
        (20, 20),
        (21, 20),
        (1 << 32, 20),
        (i64::MAX, 20),
    ] {
        assert_eq!(page(asked), size, "{asked}");
    }
}

#[test]
fn what_is_wanted_is_read_from_the_body() {
    let wanted = |label_selector: &str, token: &str, page_size| Wanted {
        label_selector: label_selector.to_owned(),
        r#continue: token.to_owned(),
        page_size,
    };
    for (body, expected) in [
        ("", wanted("", "", 0)),
        ("{}", wanted("", "", 0)),
        (r#"{"pageSize":5}"#, wanted("", "", 5)),
        (r#"{"labelSelector":"a=b","continue":"x","pageSize":5}"#, wanted("a=b", "x", 5)),
    ] {
        assert_eq!(Wanted::of(body.as_bytes()).unwrap(), expected, "{body}");
    }
    for body in ["{", "7", r#"{"pageSize":"ten"}"#, "nothing"] {
        let failure = Wanted::of(body.as_bytes()).unwrap_err();
        assert_eq!(failure.code, 400);
        assert!(failure.message.starts_with("failed to parse cluster profiler request: "), "{body}");
    }
    let list = wanted("kubevirt.io=virt-api", "x", 5).list();
    assert_eq!(list.label_selector.as_deref(), Some("kubevirt.io,kubevirt.io=virt-api"));
    assert_eq!((list.limit, list.continue_token.as_deref()), (Some(5), Some("x")));
    let list = Wanted::default().list();
    assert_eq!((list.label_selector.as_deref(), list.limit), (Some("kubevirt.io"), Some(10)));
    assert_eq!(list.continue_token, None);
}

#[test]
fn components_are_known_by_their_own_names() {
    for (component, name) in [
        ("virt-api", "virt-api.test.pod.cluster.local"),
        ("virt-controller", "virt-controller.test.pod.cluster.local"),
        ("virt-handler", "kubevirt.io:system:node:virt-handler"),
        ("virt-operator", "kubevirt-operator-webhook.test.pod.cluster.local"),
    ] {
        assert_eq!(certificate_name(component, "test"), name);
    }
}

/// A component on this machine.
struct Running {
    folder: Folder,
    authority: Authority,
    port: u16,
    _stop: tokio_util::sync::DropGuard,
}

impl Running {
    async fn new(name: &str, certificate: &str, router: Router) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (folder, authority, stop) = (Folder::new(name), Authority::new(), CancellationToken::new());
        let files = authority.issue(&folder, certificate, ExtendedKeyUsagePurpose::ServerAuth);
        let tls = Tls::follow(files, None, watch::channel(Policy::default()).1, &stop).unwrap();
        let server = Server::bind(([127, 0, 0, 1], 0).into(), tls).await.unwrap();
        let port = server.address().unwrap().port();
        let ended = stop.clone();
        tokio::spawn(async move { server.serve(router, &ended).await });
        Self { folder, authority, port, _stop: stop.drop_guard() }
    }

    async fn ask(
        &self,
        authorities: &str,
        what: Profiler,
        pods: &[Pod],
    ) -> Result<Vec<(String, Bytes)>, Failure> {
        let authorities = watch::channel(authorities.to_owned()).1;
        let asked = Asked {
            namespace: "test",
            port: self.port,
            authorities: &authorities,
            externally_managed: false,
        };
        asked.all(what, pods).await
    }
}

fn allowed(profiler: bool) -> ClusterConfig {
    let developer = json!({ "developerConfiguration": { "clusterProfiler": profiler } });
    let kubevirt = json!({ "spec": { "configuration": developer } });
    ClusterConfig::of(&serde_json::from_value(kubevirt).unwrap())
}

const CONTROLLER: &str = "virt-controller.test.pod.cluster.local";

#[tokio::test]
async fn components_do_what_they_are_asked() {
    let routes = profiler::routes(Configuration::fixed(allowed(true)));
    let component = Running::new("profiled", CONTROLLER, routes).await;
    let pods = [pod("virt-controller-1", |_| {}), pod("virt-controller-2", |_| {})];
    let ask = async |what| component.ask(&component.authority.pem, what, &pods).await.unwrap();
    for what in [Profiler::Start, Profiler::Stop] {
        assert_eq!(ask(what).await.len(), 2);
    }
    let results = results(ask(Profiler::Dump).await).unwrap();
    assert_eq!(results.keys().collect::<Vec<_>>(), ["virt-controller-1", "virt-controller-2"]);
    assert!(results.values().all(|result| result["pprofData"]["cpu.pprof"].is_string()), "{results:?}");
    assert!(component.folder.0.is_dir());
}

#[tokio::test]
async fn a_component_that_does_not_is_named() {
    let routes = profiler::routes(Configuration::fixed(allowed(false)));
    let component = Running::new("unprofiled", CONTROLLER, routes).await;
    let (pem, port) = (&component.authority.pem, component.port);
    let controller = [pod("virt-controller-1", |_| {})];
    for (what, first) in [(Profiler::Start, "Encountered"), (Profiler::Dump, "encountered")] {
        let failure = component.ask(pem, what, &controller).await.unwrap_err();
        let expected = format!(
            "Internal error encountered: {first} [403] status code while contacting url \
             [https://127.0.0.1:{port}{}] for pod [virt-controller-1]",
            what.path()
        );
        assert_eq!((failure.code, failure.message), (500, expected));
    }
    // Neither a stranger, nor a pod with the certificate of another component.
    let stranger = Authority::new();
    for (authority, name) in
        [(stranger.pem.as_str(), "virt-controller-1"), (pem, "virt-api-1"), ("", "virt-controller-1")]
    {
        let failure = component.ask(authority, Profiler::Start, &[pod(name, |_| {})]).await.unwrap_err();
        assert_eq!(failure.code, 500);
        assert!(!failure.message.contains("status code"), "{}", failure.message);
    }
    let nowhere = pod("virt-controller-1", |pod| pod["status"]["podIP"] = json!(""));
    let failure = component.ask(pem, Profiler::Start, &[nowhere]).await.unwrap_err();
    assert_eq!(failure.message, "Internal error encountered: pod virt-controller-1 has no address yet");

    let broken = Router::new().route("/dump-profiler", get(async || "no JSON"));
    let broken = Running::new("broken", CONTROLLER, broken).await;
    let answers = broken.ask(&broken.authority.pem, Profiler::Dump, &controller).await.unwrap();
    let failure = results(answers).unwrap_err();
    assert!(failure.message.contains("the profile of pod virt-controller-1"), "{}", failure.message);
}

#[tokio::test]
async fn where_there_is_no_component_nobody_is_asked() {
    for (profiler, what, expected) in [
        (true, "start", Err((500, "Internal error, no component pods found"))),
        (true, "stop", Err((500, "Internal error, no component pods found"))),
        (true, "dump", Ok(204)),
        (
            false,
            "start",
            Err((403, "Unable to start profiler. \"ClusterProfiler\" feature gate must be enabled")),
        ),
        (
            false,
            "stop",
            Err((403, "Unable to stop profiler. \"ClusterProfiler\" feature gate must be enabled")),
        ),
        (
            false,
            "dump",
            Err((403, "Unable to dump profiler results. \"ClusterProfiler\" feature gate must be enabled")),
        ),
    ] {
        let server = server_with(ApiServer::new(true).client(), allowed(profiler));
        let path = format!("/apis/subresources.kubevirt.io/v1/{what}-cluster-profiler");
        let matched = routes::find("GET", &path).unwrap();
        let call = Call { matched: &matched, query: Query::of(""), body: Bytes::new() };
        let answer = server.about_installation(&call).await;
        let answer = answer.map(|response| response.status().as_u16()).map_err(|it| (it.code, it.message));
        assert_eq!(answer, expected.map_err(|(code, words)| (code, words.to_owned())), "{profiler} {what}");
    }
}
