//! What goes over the wire, seen from the other end of it: a small server that notes what it is asked.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kubevirt_streams::{Farewell, accept};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::cluster::Flags;
use crate::commands::version;
use crate::connect::{Connect, Session};
use crate::farewell;
use crate::program::Program;
use crate::subresource::{Error, Kind};

type Seen = Arc<Mutex<Vec<String>>>;

/// An instance that is to leave its node.
const LEAVING: &str = r#"{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","metadata":{"name":"leaving"},
    "spec":{"domain":{"devices":{}}},"status":{"evacuationNodeName":"n1"}}"#;

/// Starts a server; gives its address and what it will have seen.
async fn server() -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let notes = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let notes = Arc::clone(&notes);
            let service = service_fn(move |request| answer(request, Arc::clone(&notes)));
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(connection), service)
                .with_upgrades();
            tokio::spawn(serving);
        }
    });
    (address, seen)
}

async fn answer(mut request: Request<Incoming>, seen: Seen) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    if let Ok((response, accepted)) = accept(&mut request) {
        seen.lock().unwrap().push(format!("STREAM {path}"));
        tokio::spawn(async move {
            let mut stream = accepted.stream().await.unwrap();
            let mut heard = [0; 4];
            stream.read_exact(&mut heard).await.unwrap();
            stream.write_all(&heard).await.unwrap();
            stream.flush().await.unwrap();
            stream.end(Farewell::TAKEN_OVER).await.unwrap();
        });
        return Ok(response.map(|()| Full::default()));
    }
    let asked = format!("{} {path}", request.method());
    let who = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let body = String::from_utf8_lossy(&body).into_owned();
    seen.lock().unwrap().push(format!("{asked} {body} {}", who.unwrap_or_default()).trim_end().to_owned());
    let (status, told) = match path.rsplit('/').next() {
        Some("stop" | "console") => {
            (409, r#"{"kind":"Status","reason":"Conflict","message":"VM is not running"}"#)
        }
        Some("subresources.kubevirt.io") => (200, r#"{"name":"subresources.kubevirt.io","versions":[]}"#),
        Some("version") => (200, r#"{"gitVersion":"v0.46.1"}"#),
        Some("guestosinfo") => (200, r#"{"hostname":"guest"}"#),
        Some("leaving") => (200, LEAVING),
        Some("gone") => (404, r#"{"kind":"Status","reason":"NotFound","code":404,"message":"not found"}"#),
        _ => (202, ""),
    };
    let mut response = Response::new(Full::from(told));
    *response.status_mut() = status.try_into().unwrap();
    Ok(response)
}

fn connect(address: &str) -> Connect {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let flags = Flags {
        kubeconfig: Some("/dev/null".into()),
        server: Some(address.to_owned()),
        token: Some("secret".to_owned()),
        namespace: Some("ns".to_owned()),
        ..Flags::default()
    };
    Connect::new(flags, Program { name: "virtctl".into() })
}

async fn session(address: &str) -> Session {
    connect(address).session().await.unwrap().clone()
}

const VM: &str = "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachines/a";
const VMI: &str = "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/a";

/// Runs a command line against a server, and tells whether it did what it should.
async fn run(address: &str, line: &str) -> bool {
    let line = format!("virtctl {line} --kubeconfig=/dev/null --server={address} -n ns --token=secret");
    let words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
    let ended = tokio::task::spawn_blocking(move || crate::run(&words)).await.unwrap().unwrap();
    format!("{ended:?}") == format!("{:?}", std::process::ExitCode::SUCCESS)
}

#[tokio::test]
async fn an_evacuation_is_called_off_by_its_node() {
    let (address, seen) = server().await;
    assert!(run(&address, "evacuate-cancel vmi leaving").await);
    assert!(run(&address, "evacuate-cancel vm a --dry-run").await, "whoever may not look names no node");
    let seen: Vec<String> =
        seen.lock().unwrap().iter().map(|line| line.replace(" Bearer secret", "")).collect();
    let leaving = format!("{}leaving", VMI.trim_end_matches('a'));
    let instances = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances";
    let expected = [
        format!("GET {instances}/leaving "),
        format!("PUT {leaving}/evacuate/cancel {{\"evacuationNodeName\":\"n1\"}}"),
        format!("GET {instances}/a "),
        format!("PUT {VM}/evacuate/cancel {{\"dryRun\":[\"All\"]}}"),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_command_is_one_request() {
    let (address, seen) = server().await;
    for (line, code) in [
        ("start a --paused", true),
        ("start a --dry-run", true),
        ("restart a --force --grace-period=0", true),
        ("stop a", false),
        ("migrate a --addedNodeSelector=k=v", true),
        ("soft-reboot a", true),
        ("pause vmi a", true),
        ("removevolume a --volume-name=v", true),
        ("guestosinfo a", true),
    ] {
        assert_eq!(run(&address, line).await, code, "{line}");
    }
    let put = |path: &str, verb: &str, body: &str| format!("PUT {path}/{verb} {body} Bearer secret");
    let expected = [
        put(VM, "start", r#"{"paused":true}"#),
        put(VM, "start", r#"{"dryRun":["All"]}"#),
        put(VM, "restart", r#"{"gracePeriodSeconds":0}"#),
        put(VM, "stop", "{}"),
        // A refusal may be one of another version.
        "GET /apis/subresources.kubevirt.io  Bearer secret".to_owned(),
        "GET /apis/subresources.kubevirt.io/v1/version  Bearer secret".to_owned(),
        put(VM, "migrate", r#"{"addedNodeSelector":{"k":"v"}}"#),
        put(VMI, "softreboot", ""),
        put(VMI, "pause", "{}"),
        put(VM, "removevolume", r#"{"name":"v"}"#),
        format!("GET {VMI}/guestosinfo  Bearer secret"),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn another_version_is_told_with_a_refusal() {
    let (address, _) = server().await;
    let told = version::difference(&session(&address).await).await.unwrap_or_default();
    assert!(told.contains("different from the KubeVirt version") && told.contains("v0.46.1"), "{told}");
}

#[tokio::test]
async fn streams_carry_bytes_and_a_farewell() {
    let (address, seen) = server().await;
    let session = session(&address).await;
    let query = [("preserveSession", "true")];
    let mut stream = session.stream(Kind::Vmi, "ns", "a", "vnc", &query).await.unwrap();
    stream.write_all(b"ping").await.unwrap();
    stream.flush().await.unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).await.unwrap();
    let told = Farewell::TAKEN_OVER.reason;
    assert_eq!((&heard[..], stream.farewell()), (&b"ping"[..], Some(told.as_ref())));
    assert_eq!(*seen.lock().unwrap(), [format!("STREAM {VMI}/vnc?preserveSession=true")]);
}

#[tokio::test]
async fn a_farewell_ends_as_its_reason_and_the_machine_say() {
    let (address, seen) = server().await;
    let session = session(&address).await;
    let gone = "GET /apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/gone";
    for (reason, looks, told) in [
        (Farewell::TAKEN_OVER.reason, false, Some("take the session back")),
        (Farewell::HANDLER_ENDS.reason, false, Some("KubeVirt restarts")),
        (Farewell::MACHINE_ENDED.reason, true, None),
        ("".into(), true, None),
    ] {
        let said = Some(reason.as_ref()).filter(|reason| !reason.is_empty());
        let error = farewell::tell(&session, "gone", said).await.err();
        let words = error.map(|error| crate::failure::words(&error));
        assert_eq!(words.is_some(), told.is_some(), "{reason}: {words:?}");
        assert!(words.unwrap_or_default().contains(told.unwrap_or_default()), "{reason}");
        let asked = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(asked.iter().any(|line| line.starts_with(gone)), looks, "{reason}: {asked:?}");
    }
}

#[tokio::test]
async fn refusals_say_what_the_server_said() {
    let (address, _) = server().await;
    let session = session(&address).await;
    let error = session.put(Kind::Vm, "ns", "a", "stop", None).await.unwrap_err();
    assert_eq!(
        error.refusal().map(|refusal| (refusal.code, refusal.message.as_str())),
        Some((409, "VM is not running"))
    );
    let nobody = self::session("http://127.0.0.1:1").await;
    let error = nobody.put(Kind::Vm, "ns", "a", "stop", None).await.unwrap_err();
    assert!(matches!(error, Error::Connection(_)), "{error:?}");
    let told = crate::failure::words(&anyhow::Error::from(error).context("error stopping"));
    assert!(told.contains("refused") && told.contains("--server"), "{told}");
}
