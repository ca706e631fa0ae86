//! A handler's door for users, with certificates as an installation has them, and clients of it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use kubevirt_api::names::components::secrets;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::tls::{Files, Policy};
use kubevirt_component::{Recorder, Store};
use kubevirt_streams::{Offer, Stream, Upgraded};
use kubevirt_virt_handler::prepare::Folders;
use kubevirt_virt_handler::server::{Server, Trust};
use kubevirt_virt_operator::certificates::Pair;
use kubevirt_virt_operator::{Certificates, Lifetimes};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::adoption::Handler;
use super::super::handler::PATIENCE;
use super::super::pod::Pod;

/// A new authority with all that it issues.
pub(super) fn authority() -> Certificates {
    Certificates::issue("kubevirt", Lifetimes::default(), Timestamp::now()).unwrap()
}

/// The door of one handler, until it is dropped.
pub(super) struct Door {
    pub(super) address: SocketAddr,
    pub(super) certificates: Certificates,
    /// The authorities of clients, as the ConfigMap has them.
    pub(super) trusted: watch::Sender<String>,
    _policy: watch::Sender<Policy>,
    _open: DropGuard,
}

impl Door {
    pub(super) async fn open(pod: &Pod, handler: &Handler, vmi: &Value) -> Self {
        let certificates = authority();
        let stop = CancellationToken::new();
        let files = write(&pod.records(), &certificates.issued[secrets::HANDLER_SERVER]);
        let vmi: VirtualMachineInstance = serde_json::from_value(vmi.clone()).unwrap();
        // Nobody takes the events of this test.
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let server = Server {
            here: Store::of([vmi], []),
            domains: handler.domains.clone(),
            launchers: handler.launchers.clone(),
            // The first process of the machine may be hidden from us.
            folders: Folders { host_root: "/".into(), ..Folders::new(pod.pods(), pod.records()) },
            private: pod.private(),
            recorder: Recorder::new(kube::Client::try_from(nowhere).unwrap(), "virt-handler"),
            to_guests: files.clone(),
            trust: Trust::Named,
            stop: stop.clone(),
        };
        let address = free_address();
        let (trusted, authority) = watch::channel(String::new());
        let (policy, policies) = watch::channel(Policy::default());
        tokio::spawn(async move { server.listen(address, files, authority, policies).await.unwrap() });
        trusted.send_replace(certificates.authority.certificate.clone());
        let door = Self { address, certificates, trusted, _policy: policy, _open: stop.drop_guard() };
        let began = std::time::Instant::now();
        while TcpStream::connect(address).await.is_err() {
            assert!(began.elapsed() < PATIENCE, "nobody listens");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        door
    }

    /// virt-api.
    pub(super) async fn client(&self) -> Client {
        self.client_as(Some(&self.certificates.issued[secrets::HANDLER_CLIENT])).await.unwrap()
    }

    /// virt-api with so little room that hardly anything is on its way.
    pub(super) async fn narrow_client(&self) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let stream = socket.connect(self.address).await.unwrap();
        self.client_over(stream, Some(&self.certificates.issued[secrets::HANDLER_CLIENT])).await.unwrap()
    }

    /// Somebody with this certificate.
    pub(super) async fn client_as(&self, own: Option<&Pair>) -> Result<Client, String> {
        self.client_over(TcpStream::connect(self.address).await.unwrap(), own).await
    }

    async fn client_over(&self, stream: TcpStream, own: Option<&Pair>) -> Result<Client, String> {
        let mut roots = RootCertStore::empty();
        for certificate in parsed(&self.certificates.authority.certificate) {
            roots.add(certificate).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let config = match own {
            Some(own) => {
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(parsed(&own.certificate), key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let name = ServerName::try_from("virt-handler.kubevirt.svc").unwrap();
        let secured = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let secured = secured.map_err(|error| error.to_string())?;
        let (requests, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(secured)).await.map_err(|e| e.to_string())?;
        tokio::spawn(connection.with_upgrades());
        Ok(Client { requests })
    }
}

/// A connection to a door.
pub(super) struct Client {
    requests: SendRequest<Body>,
}

impl Client {
    async fn send(&mut self, request: Request<Body>) -> Result<Response<hyper::body::Incoming>, String> {
        let answer = tokio::time::timeout(PATIENCE, self.requests.send_request(request)).await;
        answer.expect("the door answers").map_err(|error| error.to_string())
    }

    /// The status and the body of an answer.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        what: &str,
        body: &str,
    ) -> Result<(StatusCode, Vec<u8>), String> {
        let request = Request::builder().method(method).uri(path(what));
        let response = self.send(request.body(Body::from(body.to_owned())).unwrap()).await?;
        let status = response.status();
        let body = axum::body::to_bytes(Body::new(response.into_body()), 64 << 20).await;
        Ok((status, body.map_err(|error| error.to_string())?.to_vec()))
    }

    /// A stream, or the status and the words that it was refused with.
    pub(super) async fn stream(mut self, what: &str) -> Result<Stream<Upgraded>, (u16, String)> {
        let mut request = Request::get(path(what)).body(Body::empty()).unwrap();
        let offer = Offer::add_to(request.headers_mut());
        let response = self.send(request).await.unwrap();
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(offer.stream(response).await.unwrap());
        }
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(Body::new(response.into_body()), 10_000).await.unwrap();
        Err((status, String::from_utf8(body.to_vec()).unwrap()))
    }
}

fn path(what: &str) -> String {
    if what.starts_with('/') {
        return what.to_owned();
    }
    format!("/v1/namespaces/default/virtualmachineinstances/web/{what}")
}

fn parsed(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect()
}

fn write(folder: &Path, pair: &Pair) -> Files {
    let files = Files { certificate: folder.join("tls.crt"), key: folder.join("tls.key") };
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(&files.certificate, &pair.certificate).unwrap();
    std::fs::write(&files.key, &pair.key).unwrap();
    files
}

/// An address that was free a moment ago.
fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
