//! The way to the handler of a node: mutual TLS, with the certificates that are there at the moment.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CONTENT_TYPE, HOST};
use axum::http::{HeaderValue, Method, Request, Response};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kubevirt_api::names::components::certificate_names::HANDLER_SERVER;
use kubevirt_component::Store;
use kubevirt_component::serve::keep_alive;
use kubevirt_component::tls::{self, Files};
use kubevirt_streams::{Offer, Stream, Upgraded};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::failure::Failure;
use super::trust::{Component, NoAuthority};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take: less than an API server waits.
const ANSWER: Duration = Duration::from_secs(30);
/// The largest answer that is taken: a picture of a large screen.
const LARGEST: usize = 64 << 20;
/// How a store finds the handler of a node.
pub const NODE: &str = "node";

/// The ways to all handlers.
pub struct Handlers {
    /// The pods of the handlers, by [`NODE`].
    pub pods: Store<Pod>,
    /// Where they listen.
    pub port: u16,
    /// By which they know this server.
    pub files: Files,
    /// Whom their certificates are from, as PEM.
    pub authorities: watch::Receiver<String>,
    /// Whether somebody else made the certificates, with other names.
    pub externally_managed: bool,
    /// The last certificates that could be used.
    pub last: Mutex<Option<Arc<ClientConfig>>>,
}

/// The node of a pod.
pub fn node_of(pod: &Pod) -> Vec<String> {
    pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
}

/// Why the certificates cannot be used.
#[derive(Debug, thiserror::Error)]
enum NotUsable {
    #[error(transparent)]
    Files(#[from] tls::NotUsable),
    #[error(transparent)]
    Authority(#[from] NoAuthority),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

impl Handlers {
    /// Lets the handler of a node do something; gives its answer.
    pub async fn request(
        &self,
        node: &str,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Bytes>, Failure> {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let response = timeout(ANSWER, self.send(node, path, request)).await;
        let response = response.map_err(|_| {
            Failure::internal(format!("virt-handler on node {node} did not answer within {ANSWER:?}"))
        })??;
        let status = response.status();
        if !status.is_success() {
            let words = words(response.body());
            return Err(Failure::internal(format!(
                "unexpected return code {} ({status}), message: {words}",
                status.as_u16()
            )));
        }
        Ok(response)
    }

    async fn send(&self, node: &str, path: &str, request: Request<Body>) -> Result<Response<Bytes>, Failure> {
        let mut sender = self.connect(node).await?;
        let response =
            sender.send_request(self.addressed(request, path)?).await.map_err(Failure::internal)?;
        whole(response).await
    }

    /// Opens a stream through the handler of a node.
    pub async fn open(&self, node: &str, path: &str) -> Result<Stream<Upgraded>, Failure> {
        let mut request = Request::new(Body::empty());
        let offer = Offer::add_to(request.headers_mut());
        let opened = timeout(ANSWER, async {
            let mut sender = self.connect(node).await?;
            let answer =
                sender.send_request(self.addressed(request, path)?).await.map_err(Failure::internal)?;
            if answer.status() == axum::http::StatusCode::SWITCHING_PROTOCOLS {
                return offer.stream(answer).await.map_err(Failure::internal);
            }
            let status = answer.status().as_u16();
            let words = words(whole(answer).await?.body());
            Err(Failure::internal(format!(
                "Can't connect to websocket ({status}): bad handshake: application info: {words}"
            )))
        });
        opened.await.unwrap_or_else(|_| {
            Err(Failure::internal(format!("virt-handler on node {node} did not answer within {ANSWER:?}")))
        })
    }

    fn addressed(&self, mut request: Request<Body>, path: &str) -> Result<Request<Body>, Failure> {
        *request.uri_mut() = path.parse().map_err(Failure::internal)?;
        request.headers_mut().insert(HOST, HeaderValue::from_static("virt-handler"));
        Ok(request)
    }

    /// A connection to the handler of a node.
    async fn connect(&self, node: &str) -> Result<SendRequest<Body>, Failure> {
        let address = self.address(node).map_err(Failure::bad_request)?;
        let config = self.config().map_err(|error| {
            Failure::internal(format!("cannot use the certificates for virt-handler: {error}"))
        })?;
        let connected = timeout(CONNECT, async {
            let stream = TcpStream::connect(address).await?;
            // A key that is pressed must be seen at once.
            stream.set_nodelay(true)?;
            keep_alive(&stream)?;
            TlsConnector::from(config).connect(ServerName::IpAddress(address.ip().into()), stream).await
        });
        let reach = |why: &dyn std::fmt::Display| {
            Failure::internal(format!("cannot reach virt-handler on node {node} ({address}): {why}"))
        };
        let stream = match connected.await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(reach(&error)),
            Err(_) => return Err(reach(&"no connection in time")),
        };
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| reach(&error))?;
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%address, "connection to a handler ended: {error}");
            }
        });
        Ok(sender)
    }

    /// Where the handler of a node listens.
    fn address(&self, node: &str) -> Result<SocketAddr, String> {
        let pods = self.pods.by(NODE, node);
        // There are two while one takes over from the other.
        let best = pods.iter().max_by_key(|pod| (pod.metadata.deletion_timestamp.is_none(), is_ready(pod)));
        let pod = best.ok_or_else(|| format!("No virt-handler on node {node} found"))?;
        let ip = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).unwrap_or_default();
        let ip: IpAddr = ip.parse().map_err(|_| format!("virt-handler on node {node} has no address yet"))?;
        Ok(SocketAddr::new(ip, self.port))
    }

    /// The certificates as they are now. In the middle of a change the last ones are used.
    fn config(&self) -> Result<Arc<ClientConfig>, NotUsable> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match self.load() {
            Ok(config) => {
                let config = Arc::new(config);
                *last = Some(config.clone());
                Ok(config)
            }
            Err(error) => last.clone().ok_or(error),
        }
    }

    fn load(&self) -> Result<ClientConfig, NotUsable> {
        let (chain, key) = self.files.read()?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let name = (!self.externally_managed).then(|| HANDLER_SERVER.to_owned());
        let verifier = Component::new(&self.authorities.borrow(), name, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        Ok(builder.with_client_auth_cert(chain, key)?)
    }
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

async fn whole<B>(response: Response<B>) -> Result<Response<Bytes>, Failure>
where
    B: axum::body::HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    let (head, body) = response.into_parts();
    let body = axum::body::to_bytes(Body::new(body), LARGEST).await.map_err(Failure::internal)?;
    Ok(Response::from_parts(head, body))
}

fn words(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(4096)]).trim().to_owned()
}

#[cfg(test)]
pub(super) mod tests;
