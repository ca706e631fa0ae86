//! Any request to the door: nothing that is sent makes it fail, and whom it does not trust it tells nothing.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use kubevirt_api::names::components::certificate_names;
use kubevirt_component::serve::Peer;
use kubevirt_component::{NamespacedName, Queue};
use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::json;
use tokio::sync::mpsc;
use tower::ServiceExt;

use super::*;
use crate::domains::Owner;
use crate::launchers::Settings;
use crate::testing::Folder;

/// A door behind which there is one instance, with a pod in which nobody listens.
fn router(folder: &Folder) -> Router {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let domains = Arc::new(Domains::load(&folder.path().join("records")).unwrap());
    let key = NamespacedName::new("a", "up");
    domains.note(&Owner { key, uid: "1234".into(), pod: "5678".into() }).unwrap();
    let (notices, _) = mpsc::unbounded_channel();
    let settings = Settings::new(folder.path().join("pods"), std::time::Duration::from_secs(1));
    let vmi = json!({
        "metadata": {"name": "up", "namespace": "a", "uid": "1234"},
        "spec": {"domain": {"devices": {"autoattachVSOCK": true}}},
        "status": {"VSOCKCID": 7},
    });
    let file = |name: &str| folder.path().join(name);
    let server = Server {
        here: Store::of([serde_json::from_value(vmi).unwrap()], []),
        launchers: Arc::new(Launchers::new(settings, domains.clone(), Queue::new("test"), notices)),
        domains,
        folders: Folders::new(file("pods"), file("records")),
        private: "/var/run/kubevirt-private".into(),
        recorder: Recorder::new(Client::try_from(nowhere).unwrap(), "virt-handler"),
        to_guests: Files { certificate: file("tls.crt"), key: file("tls.key") },
        trust: Trust::Named,
        stop: CancellationToken::new(),
    };
    server.routes(TaskTracker::new())
}

/// Somebody whose certificate has this name; without one if there is none.
fn peer(name: Option<&str>) -> Peer {
    let certificate = name.map(|name| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    });
    Peer { address: ([127, 0, 0, 1], 1).into(), certificates: Vec::from_iter(certificate).into() }
}

fn path() -> impl Strategy<Value = (String, String)> {
    let count = routes().len();
    let known = (0..count, prop_oneof![Just("up"), Just("nobody")], any::<bool>(), "(|/|[!-~&&[^?#]]{0,3})");
    let known = known.prop_map(|(at, name, put, end)| {
        let path = INSTANCE.replace("{namespace}", "a").replace("{name}", name);
        let method = if put { "PUT" } else { "GET" };
        (method.to_owned(), format!("{path}/{}{end}", routes()[at].0))
    });
    let words = proptest::collection::vec("(v1|namespaces|virtualmachineinstances|[!-~&&[^?#]]{0,8})", 0..7);
    let unknown = ("[A-Z]{1,7}", words).prop_map(|(method, words)| (method, format!("/{}", words.join("/"))));
    prop_oneof![5 => known, 1 => unknown]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_request_is_answered_and_only_virt_api_is_listened_to(
        client in prop_oneof![
            Just(None),
            Just(Some(certificate_names::MIGRATION_CLIENT)),
            Just(Some(certificate_names::HANDLER_CLIENT)),
            Just(Some(certificate_names::HANDLER_CLIENT)),
        ],
        (method, path) in path(),
        query in "((preserveSession|port|tls|moveCursor)=(true|maybe|1|-1|%zz)|[!-~&&[^#]]{0,16})",
        headers in proptest::collection::vec((
            "(connection|upgrade|sec-websocket-(key|version|protocol)|content-type|[a-z-]{1,8})",
            "(Upgrade|websocket|13|plain.kubevirt.io|dGhlIHNhbXBsZSBub25jZQ==|[ -~]{0,12})",
        ), 0..6),
        body in prop_oneof![
            Just(Vec::new()),
            "\\{\"(unfreezeTimeout|header|secret|cmd|name)\": (\"[ -~&&[^\"]]{0,8}\"|[0-9]{1,3}|null)\\}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..200),
        ],
    ) {
        let Ok(mut request) = Request::builder().method(method.as_str()).uri(format!("{path}?{query}")).body(Body::from(body))
        else { return Ok(()) };
        for (name, value) in &headers {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
                request.headers_mut().append(name, value);
            }
        }
        request.extensions_mut().insert(peer(client));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (code, text) = runtime.block_on(async {
            let folder = Folder::new();
            let response = router(&folder).oneshot(request).await.unwrap();
            let code = response.status().as_u16();
            (code, String::from_utf8_lossy(&to_bytes(response.into_body(), 1 << 20).await.unwrap()).into_owned())
        });
        // The launcher that is missing, and the guest that does not answer, are not the client's affair.
        let excused = code == 500 && (text.contains("cannot be reached") || text.contains("cannot be connected to"));
        prop_assert!(code != 101 && (code < 500 || excused), "{code}: {text}");
        if client != Some(certificate_names::HANDLER_CLIENT) {
            prop_assert_eq!(code, 403, "{}", text);
        }
    }
}
