//! A handler's door for users, with certificates as an installation has them, and clients of it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::client::conn::http1::SendRequest;
use hyper::header::HeaderMap;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use kubevirt_api::names::components::secrets;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::tls::{Files, Policy};
use kubevirt_component::{NamespacedName, Queue, Recorder, Store};
use kubevirt_streams::{Offer, Stream, Upgraded};
use kubevirt_virt_handler::domains::{Domains, Owner};
use kubevirt_virt_handler::launchers::{Launchers, Settings};
use kubevirt_virt_handler::prepare::Folders;
use kubevirt_virt_handler::server::{Server, Trust};
use kubevirt_virt_operator::certificates::Pair;
use kubevirt_virt_operator::{Certificates, Lifetimes};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The longest that anything may take; generous, for busy machines.
const PATIENCE: Duration = Duration::from_secs(180);

/// A new authority with all that it issues.
pub(crate) fn authority() -> Certificates {
    Certificates::issue("kubevirt", Lifetimes::default(), Timestamp::now()).unwrap()
}

/// What a door leads to.
pub(crate) struct Behind {
    /// The instances of the node.
    pub(crate) vmis: Vec<VirtualMachineInstance>,
    pub(crate) domains: Arc<Domains>,
    pub(crate) launchers: Arc<Launchers>,
    /// The kubelet's folder of pods.
    pub(crate) pods: PathBuf,
    /// A folder for the handler.
    pub(crate) records: PathBuf,
    /// The folder of the machines' sockets, as launchers see it.
    pub(crate) private: PathBuf,
}

impl Behind {
    /// Instances with the UIDs of their pods, to whose launchers nobody speaks.
    pub(crate) fn of(
        known: Vec<(VirtualMachineInstance, String)>,
        [pods, records, private]: [PathBuf; 3],
    ) -> Self {
        std::fs::create_dir_all(&records).unwrap();
        let domains = Arc::new(Domains::load(&records).unwrap());
        let mut vmis = Vec::new();
        for (vmi, pod) in known {
            let of = |text: &Option<String>| text.clone().unwrap_or_default();
            let key = NamespacedName::new(of(&vmi.metadata.namespace), of(&vmi.metadata.name));
            domains.note(&Owner { key, uid: of(&vmi.metadata.uid), pod }).unwrap();
            vmis.push(vmi);
        }
        let (notices, _) = mpsc::unbounded_channel();
        let settings = Settings::new(pods.clone(), PATIENCE);
        let launchers = Arc::new(Launchers::new(settings, domains.clone(), Queue::new("test"), notices));
        Self { vmis, domains, launchers, pods, records, private }
    }
}

/// The door of one handler, until it is dropped.
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) certificates: Certificates,
    /// The authorities of clients, as the ConfigMap has them.
    pub(crate) trusted: watch::Sender<String>,
    _policy: watch::Sender<Policy>,
    _open: DropGuard,
}

impl Door {
    pub(crate) async fn open(behind: Behind) -> Self {
        let certificates = authority();
        let stop = CancellationToken::new();
        let files = write(&behind.records, "handler", &certificates.issued[secrets::HANDLER_SERVER]);
        // Nobody takes the events of this test.
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let server = Server {
            here: Store::of(behind.vmis, []),
            domains: behind.domains,
            launchers: behind.launchers,
            // The first process of the machine may be hidden from us.
            folders: Folders { host_root: "/".into(), ..Folders::new(behind.pods, behind.records) },
            private: behind.private,
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
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        door
    }

    /// virt-api.
    pub(crate) async fn client(&self) -> Client {
        self.client_as(Some(&self.certificates.issued[secrets::HANDLER_CLIENT])).await.unwrap()
    }

    /// virt-api with so little room that hardly anything is on its way.
    pub(crate) async fn narrow_client(&self) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let stream = socket.connect(self.address).await.unwrap();
        self.client_over(stream, Some(&self.certificates.issued[secrets::HANDLER_CLIENT])).await.unwrap()
    }

    /// Somebody with this certificate.
    pub(crate) async fn client_as(&self, own: Option<&Pair>) -> Result<Client, String> {
        self.client_over(TcpStream::connect(self.address).await.unwrap(), own).await
    }

    async fn client_over(&self, stream: TcpStream, own: Option<&Pair>) -> Result<Client, String> {
        let authority = &self.certificates.authority.certificate;
        Client::over(secured(stream, authority, "virt-handler.kubevirt.svc", own).await?).await
    }
}

/// A connection that is secured: the server is of the authority and has the name, we have the certificate.
pub(crate) async fn secured(
    stream: TcpStream,
    authority: &str,
    name: &'static str,
    own: Option<&Pair>,
) -> Result<TlsStream<TcpStream>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in parsed(authority) {
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
    // A key that is pressed must be seen at once.
    stream.set_nodelay(true).unwrap();
    let name = ServerName::try_from(name).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| error.to_string())
}

/// A connection to a door.
pub(crate) struct Client {
    requests: SendRequest<Body>,
    /// Sent with every request.
    pub(crate) headers: HeaderMap,
}

impl Client {
    pub(crate) async fn over(stream: TlsStream<TcpStream>) -> Result<Self, String> {
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (requests, connection) = handshake.map_err(|error| error.to_string())?;
        tokio::spawn(connection.with_upgrades());
        Ok(Self { requests, headers: HeaderMap::new() })
    }

    async fn send(&mut self, mut request: Request<Body>) -> Result<Response<hyper::body::Incoming>, String> {
        request.headers_mut().extend(self.headers.clone());
        let answer = tokio::time::timeout(PATIENCE, self.requests.send_request(request)).await;
        answer.expect("the door answers").map_err(|error| error.to_string())
    }

    /// The status and the body of an answer.
    pub(crate) async fn ask(
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
    pub(crate) async fn stream(mut self, what: &str) -> Result<Stream<Upgraded>, (u16, String)> {
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

/// Puts a certificate and its key into a folder.
pub(crate) fn write(folder: &Path, name: &str, pair: &Pair) -> Files {
    let file = |end: &str| folder.join(format!("{name}.{end}"));
    let files = Files { certificate: file("crt"), key: file("key") };
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(&files.certificate, &pair.certificate).unwrap();
    std::fs::write(&files.key, &pair.key).unwrap();
    files
}

/// An address that was free a moment ago.
pub(crate) fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
