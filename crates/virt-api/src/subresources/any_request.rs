//! Any request that a client can make: never a panic, never an error of ours by what was sent alone, and no stream and
//! no look at the cluster for who has no right to it.

use std::net::TcpListener;

use axum::http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use axum::http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use rustls::pki_types::CertificateDer;
use tower::ServiceExt;

use super::tests::server_of;
use super::*;
use crate::testing::ApiServer;

/// Stands in paths for the port of a guest that listens.
const LISTENING: &str = "PORT";

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// Somebody without a certificate of the aggregator.
    Stranger,
    /// A user who has no rights.
    Powerless,
    /// A user who may do everything.
    Admin,
}

/// A request.
#[derive(Clone, Debug)]
struct Shot {
    who: Who,
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    websocket: bool,
    body: Vec<u8>,
}

/// What came of it.
struct Hit {
    code: u16,
    body: Vec<u8>,
    /// What the API server was asked for.
    asked: Vec<String>,
    /// Whether the guest was connected to.
    connected: bool,
}

/// The request as the server gets it; none if HTTP has no such request.
fn request(shot: &Shot, port: u16) -> Option<Request<Body>> {
    let path = shot.path.replace(LISTENING, &port.to_string());
    let builder = Request::builder().method(shot.method.as_str()).uri(format!("{path}?{}", shot.query));
    let mut request = builder.body(Body::from(shot.body.clone())).ok()?;
    let headers = request.headers_mut();
    for (name, value) in &shot.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            headers.append(name, value);
        }
    }
    if shot.websocket {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
    }
    // Strangers say the same as everyone, but show nothing that proves it.
    headers.insert("x-remote-user", HeaderValue::from_static("jane"));
    headers.insert("x-remote-group", HeaderValue::from_static("system:masters"));
    let certificates: Vec<CertificateDer<'static>> = match shot.who {
        Who::Stranger => Vec::new(),
        Who::Powerless | Who::Admin => vec![vec![1].into()],
    };
    let peer = Peer { address: ([127, 0, 0, 1], 1).into(), certificates: certificates.into() };
    request.extensions_mut().insert(peer);
    Some(request)
}

fn fire(shot: &Shot) -> Option<Hit> {
    let guest = TcpListener::bind("127.0.0.1:0").unwrap();
    guest.set_nonblocking(true).unwrap();
    let request = request(shot, guest.local_addr().unwrap().port())?;
    let api = ApiServer::new(shot.who == Who::Admin);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = server_of(&api);
        let before = api.asked().len();
        let response = server.routes().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec();
        let asked = api.asked().split_off(before);
        Some(Hit { code, body, asked, connected: guest.accept().is_ok() })
    })
}

fn stream(who: Who, websocket: bool) -> Shot {
    Shot {
        who,
        method: "GET".into(),
        path: format!(
            "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachineinstances/up/portforward/{LISTENING}"
        ),
        query: String::new(),
        headers: Vec::new(),
        websocket,
        body: Vec::new(),
    }
}

#[test]
fn a_stream_is_for_who_may_and_asks_for_one() {
    for (who, websocket, code) in [
        (Who::Admin, true, 101),
        (Who::Admin, false, 400),
        (Who::Powerless, true, 403),
        (Who::Stranger, true, 401),
    ] {
        let hit = fire(&stream(who, websocket)).unwrap();
        assert_eq!((hit.code, hit.connected), (code, code == 101), "{who:?}");
    }
}

/// Paths of all routes, some of them bent, and others.
fn path() -> impl Strategy<Value = (String, String)> {
    let names = || prop_oneof![4 => Just("up"), 2 => Just("down"), 1 => Just("nobody")];
    let ports = prop_oneof![
        3 => Just(LISTENING.to_owned()),
        1 => prop_oneof![Just("0"), Just("1"), Just("65536"), Just("-1"), Just("%32%32")].prop_map(str::to_owned),
        1 => "[!-~&&[^?#/]]{0,6}",
    ];
    let protocols = prop_oneof![Just("tcp"), Just("udp"), Just("sctp"), Just("")];
    let bends = prop_oneof![
        9 => Just(None),
        1 => ("[!-~&&[^?#]]{0,3}", any::<prop::sample::Index>()).prop_map(Some),
    ];
    let known = (0..routes::ROUTES.len(), any::<prop::sample::Index>(), names(), ports, protocols, bends)
        .prop_map(|(route, version, name, port, protocol, bend)| {
            let route = &routes::ROUTES[route];
            let mut path = route.template(version.get::<&str>(route.on.group().versions));
            for (word, value) in
                [("{namespace}", "a"), ("{name}", name), ("{port}", port.as_str()), ("{protocol}", protocol)]
            {
                path = path.replace(word, value);
            }
            if let Some((text, place)) = bend {
                path.insert_str(1 + place.index(path.len()).min(path.len() - 1), &text);
            }
            (route.method.method().to_owned(), path)
        });
    let words = "(apis|subresources.kubevirt.io|v1|namespaces|virtualmachines|[!-~&&[^?#]]{0,8})";
    let unknown = ("[A-Z]{1,7}", proptest::collection::vec(words, 0..9))
        .prop_map(|(method, words)| (method, format!("/{}", words.join("/"))));
    prop_oneof![6 => known, 1 => unknown]
}

fn query() -> impl Strategy<Value = String> {
    let names = "(dryRun|preserveSession|port|tls|moveCursor|fieldValidation|[a-z]{0,4})";
    let values = "(All|true|false|1024|maybe|%zz|%00|[!-~&&[^#&]]{0,8})";
    let pairs = proptest::collection::vec((names, values), 0..4);
    let pairs = pairs.prop_map(|all| {
        all.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    });
    prop_oneof![3 => pairs, 1 => "[!-~&&[^#]]{0,30}"]
}

/// What JSON can say, with words that the options know.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "(All|up|claim|root|5m|v1|\\PC{0,8})".prop_map(Value::from),
    ];
    let key = "(dryRun|paused|gracePeriod|gracePeriodSeconds|name|disk|volumeSource|persistentVolumeClaim|claimName|\
               dataVolume|hotpluggable|unfreezeTimeout|session|dhCert|header|secret|addedNodeSelector|spec|template|\
               metadata|kind|apiVersion|evacuationNodeName|labelSelector|[a-z]{0,5})";
    let json = leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            3 => proptest::collection::btree_map(key, inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    });
    prop_oneof![
        2 => Just(Vec::new()),
        4 => json.prop_map(|value| value.to_string().into_bytes()),
        1 => Just(crate::testing::machine().to_string().into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 0..200),
    ]
}

fn shot() -> impl Strategy<Value = Shot> {
    let who = prop_oneof![Just(Who::Stranger), Just(Who::Powerless), Just(Who::Admin), Just(Who::Admin)];
    let name = "(connection|upgrade|sec-websocket-protocol|sec-websocket-version|x-remote-user|x-remote-group|\
                x-remote-extra-a%zz|authorization|content-type|host|[a-z-]{1,10})";
    let value = "(Upgrade|websocket|13|plain.kubevirt.io|v4.channel.k8s.io|system:masters|[ -~]{0,16})";
    let headers = proptest::collection::vec((name, value), 0..4);
    let method = prop_oneof![8 => Just(None), 1 => "[A-Z]{1,7}".prop_map(Some)];
    (who, path(), method, query(), headers, any::<bool>(), body()).prop_map(
        |(who, (usual, path), method, query, headers, websocket, body)| Shot {
            who,
            method: method.unwrap_or(usual),
            path,
            query,
            headers,
            websocket,
            body,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_request_is_answered_and_only_who_may_gets_anywhere(shot in shot()) {
        let Some(hit) = fire(&shot) else { return Ok(()) };
        let text = String::from_utf8_lossy(&hit.body).into_owned();
        // A port of the guest where nobody listens is the guest's affair, and templates are not here yet.
        let excused = hit.code == 501 || hit.code == 500 && text.contains("dialing VM");
        prop_assert!(hit.code < 500 || excused, "{}: {text}", hit.code);
        if hit.code >= 400 {
            let status: Value = serde_json::from_slice(&hit.body).unwrap_or_default();
            prop_assert!(status["kind"] == "Status" && status["code"] == hit.code, "{}: {text}", hit.code);
        }
        if shot.who == Who::Admin {
            return Ok(());
        }
        prop_assert!(hit.code != 101 && !hit.connected, "a stream for {:?}", shot.who);
        let open = ["/version", "/kubevirts"];
        let touched = hit.asked.iter().find(|line| {
            !line.ends_with("/subjectaccessreviews") && !open.iter().any(|path| line.ends_with(path))
        });
        prop_assert!(touched.is_none(), "{touched:?} for {:?}", shot.who);
        let changed = hit.asked.iter().any(|line| !line.starts_with("GET ") && !line.contains("subjectaccessreviews"));
        prop_assert!(!changed, "{:?}", hit.asked);
    }
}
