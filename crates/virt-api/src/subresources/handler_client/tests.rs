use std::path::PathBuf;

use axum::Router;
use axum::extract::Request as ServerRequest;
use kubevirt_component::tls::{Authorities, Clients, Tls};
use kubevirt_component::{IndexOf, serve::Server, tls::Policy};
use kubevirt_streams::accept;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::testing::watched_over;

/// An authority, and a folder with what it issued.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    pub fn issue(&self, folder: &Folder, name: &str, usage: ExtendedKeyUsagePurpose) -> Files {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = vec![SanType::DnsName("virt-handler".try_into().unwrap())];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let file = |end: &str| folder.0.join(format!("{}.{end}", name.replace(':', "-")));
        std::fs::write(file("crt"), certificate.pem()).unwrap();
        std::fs::write(file("key"), key.serialize_pem()).unwrap();
        Files { certificate: file("crt"), key: file("key") }
    }
}

/// A folder that is gone with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("virt-api-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const CLIENT: &str = "kubevirt.io:system:client:virt-handler";

/// A handler that answers on this machine, and who may call it.
struct World {
    folder: Folder,
    authority: Authority,
    port: u16,
    _stop: tokio_util::sync::DropGuard,
}

impl World {
    async fn new(name: &str, server_name: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (folder, authority, stop) = (Folder::new(name), Authority::new(), CancellationToken::new());
        let files = authority.issue(&folder, server_name, ExtendedKeyUsagePurpose::ServerAuth);
        let (pem, authorities) = watch::channel(authority.pem.clone());
        let clients = Clients { authorities: Authorities::Live(authorities), required: true };
        let tls = Tls::follow(files, Some(clients), watch::channel(Policy::default()).1, &stop).unwrap();
        let server = Server::bind(([127, 0, 0, 1], 0).into(), tls).await.unwrap();
        let port = server.address().unwrap().port();
        let ended = stop.clone();
        tokio::spawn(async move {
            server.serve(Router::new().fallback(answer), &ended).await;
            drop(pem);
        });
        Self { folder, authority, port, _stop: stop.drop_guard() }
    }

    fn handlers(&self, believed: &str) -> Handlers {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": "virt-handler", "namespace": "test" },
            "spec": { "nodeName": "here", "containers": [] }, "status": { "podIP": "127.0.0.1" },
        }))
        .unwrap();
        Handlers {
            pods: Store::of([pod], [(NODE, node_of as IndexOf<Pod>)]),
            port: self.port,
            files: self.authority.issue(&self.folder, CLIENT, ExtendedKeyUsagePurpose::ClientAuth),
            authorities: watch::channel(believed.to_owned()).1,
            externally_managed: false,
            last: Mutex::new(None),
        }
    }
}

/// Says what was asked, refuses `/no`, and sends back what comes over a stream, with a last word.
async fn answer(mut request: ServerRequest) -> axum::response::Response {
    if request.uri().path() == "/stream" {
        let (response, accepted) = accept(&mut request).unwrap();
        tokio::spawn(async move {
            let mut stream = accepted.stream().await.unwrap();
            let mut bytes = [0; 5];
            stream.read_exact(&mut bytes).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
            stream.end("somebody else took over").await.unwrap();
        });
        return response.map(|()| Body::empty());
    }
    let code = if request.uri().path() == "/no" { 503 } else { 200 };
    let words = format!("{} {}", request.method(), request.uri());
    let body = axum::body::to_bytes(request.into_body(), 1000).await.unwrap();
    let text = format!("{words} {}", String::from_utf8_lossy(&body));
    Response::builder().status(code).body(Body::from(text)).unwrap()
}

#[tokio::test]
async fn a_handler_answers_whom_it_knows() {
    let world = World::new("answers", HANDLER_SERVER).await;
    let handlers = world.handlers(&world.authority.pem);
    let answer =
        handlers.request("here", Method::PUT, "/v1/pause?a=b", Bytes::from_static(b"{}")).await.unwrap();
    assert_eq!(answer.body(), "PUT /v1/pause?a=b {}");
    let refused = handlers.request("here", Method::GET, "/no", Bytes::new()).await.unwrap_err();
    assert_eq!(refused.code, 500);
    assert!(
        refused.message.contains("unexpected return code 503 (503 Service Unavailable), message: GET /no")
    );
    let nowhere = handlers.request("there", Method::GET, "/", Bytes::new()).await.unwrap_err();
    assert_eq!((nowhere.code, nowhere.message.as_str()), (400, "No virt-handler on node there found"));
}

#[tokio::test]
async fn a_stream_ends_with_its_reason() {
    let world = World::new("streams", HANDLER_SERVER).await;
    let handlers = world.handlers(&world.authority.pem);
    let mut stream = handlers.open("here", "/stream").await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    assert_eq!((bytes.as_slice(), stream.farewell()), (&b"hello"[..], Some("somebody else took over")));
    let refused = handlers.open("here", "/no").await.unwrap_err();
    assert!(refused.message.contains("Can't connect to websocket (503)"), "{}", refused.message);
}

#[tokio::test]
async fn both_ends_of_a_stream_notice_that_the_other_is_gone() {
    let world = World::new("alive", HANDLER_SERVER).await;
    let stream = world.handlers(&world.authority.pem).open("here", "/stream").await.unwrap();
    watched_over(world.port, 2).await;
    drop(stream);
}

#[tokio::test]
async fn only_handlers_of_the_installation_are_believed() {
    let world = World::new("believed", HANDLER_SERVER).await;
    let ask = async |handlers: &Handlers| handlers.request("here", Method::GET, "/", Bytes::new()).await;
    assert!(ask(&world.handlers(&world.authority.pem)).await.is_ok());
    let failure = ask(&world.handlers(&Authority::new().pem)).await.unwrap_err();
    assert!(failure.message.contains("cannot reach virt-handler on node here"), "{}", failure.message);
    let failure = ask(&world.handlers("")).await.unwrap_err();
    assert!(failure.message.contains("authorities of the installation are not known"), "{}", failure.message);

    let other = World::new("other-name", "kubevirt.io:system:node:somebody").await;
    let mut handlers = other.handlers(&other.authority.pem);
    assert!(ask(&handlers).await.is_err(), "another name of the same authority");
    handlers.externally_managed = true;
    assert!(ask(&handlers).await.is_ok(), "names are not looked at where others make the certificates");
}

#[tokio::test]
async fn new_certificates_hold_at_once_and_broken_ones_never() {
    let world = World::new("renewed", HANDLER_SERVER).await;
    let handlers = world.handlers(&world.authority.pem);
    let ask = async || handlers.request("here", Method::GET, "/", Bytes::new()).await;
    assert!(ask().await.is_ok());
    std::fs::write(&handlers.files.key, "half a file").unwrap();
    assert!(ask().await.is_ok(), "the last ones still hold");
    world.authority.issue(&world.folder, CLIENT, ExtendedKeyUsagePurpose::ClientAuth);
    assert!(ask().await.is_ok());
    let stranger = Authority::new();
    stranger.issue(&world.folder, CLIENT, ExtendedKeyUsagePurpose::ClientAuth);
    assert!(ask().await.is_err(), "the handler does not know the new authority");
}
