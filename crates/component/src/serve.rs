//! An HTTPS server that ends gracefully, and the routes that every component has.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::CertificateDer;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::tls::Tls;

/// How long a client may take to shake hands, and to send the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often an idle connection is asked whether its other end is there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How often in a row nobody answers until nobody is there.
const ATTEMPTS: u32 = 3;
/// How long requests may take to end once the server is told to.
const GRACE: Duration = Duration::from_secs(10);

/// Who is at the other end of a connection: an extension of every request.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The address.
    pub address: SocketAddr,
    /// The certificates, which were verified; none if the client showed none.
    pub certificates: Arc<[CertificateDer<'static>]>,
}

impl Peer {
    /// The common name in the client's certificate; none if it showed none, or has none, or more than one.
    pub fn common_name(&self) -> Option<String> {
        crate::tls::common_name(self.certificates.first()?)
    }
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    tls: Tls,
}

impl Server {
    /// Begins to listen.
    pub async fn bind(address: SocketAddr, tls: Tls) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await?, tls })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until `stop`; then those that were begun are answered to the end.
    pub async fn serve(self, router: Router, stop: &CancellationToken) {
        let connections = TaskTracker::new();
        while let Some(accepted) = stop.run_until_cancelled(self.listener.accept()).await {
            match accepted {
                Ok((stream, address)) => {
                    let connection =
                        serve_connection(stream, address, self.tls.clone(), router.clone(), stop.clone());
                    connections.spawn(connection);
                }
                Err(error) => {
                    // Too many open files, mostly: that passes when connections end.
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(self.listener);
        connections.close();
        if tokio::time::timeout(GRACE, connections.wait()).await.is_err() {
            tracing::warn!(connections = connections.len(), "ending with requests that are not answered");
        }
    }
}

/// Lets a connection end a minute after its other end is gone, also if nothing is sent over it. The kernel at the other
/// end answers by itself, so nobody is cut who is only slow. For the same reason there is no limit to how long what was
/// sent may wait: the kernel's own counts a reader who does not read as gone.
pub fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let probes = TcpKeepalive::new().with_time(KEEP_ALIVE).with_interval(PATIENCE).with_retries(ATTEMPTS);
    SockRef::from(stream).set_tcp_keepalive(&probes)
}

async fn serve_connection(
    stream: TcpStream,
    address: SocketAddr,
    tls: Tls,
    router: Router,
    stop: CancellationToken,
) {
    // A delay to collect small writes would be added to each answer.
    let _ = stream.set_nodelay(true);
    if let Err(error) = keep_alive(&stream) {
        tracing::debug!(%address, "cannot watch over a connection: {error}");
    }
    let handshake = TlsAcceptor::from(tls.now()).accept(stream);
    let stream = match tokio::time::timeout(PATIENCE, handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%address, "no TLS connection: {error}"),
        Err(_) => return tracing::debug!(%address, "no TLS connection: the client is too slow"),
    };
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let peer =
        Peer { address, certificates: certificates.iter().map(|one| one.clone().into_owned()).collect() };
    let service = router.map_request(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        request.map(Body::new)
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(KEEP_ALIVE).keep_alive_timeout(PATIENCE);
    let connection =
        builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%address, "connection ended: {error}");
    }
}
