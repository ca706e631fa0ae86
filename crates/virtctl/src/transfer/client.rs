//! A client for one request at a time, on a connection of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Scheme, Uri};
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::trust::Trust;

/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(30);
/// How often a server may send us somewhere else.
const REDIRECTS: usize = 10;

/// What is sent with a request.
pub type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is not one of the web.
    #[error("{0} is not an http or https address")]
    Address(Uri),
    /// Nobody is there.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Where.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// The connection broke.
    #[error("the connection to the server failed: {0}")]
    Connection(#[from] hyper::Error),
    /// The authorities cannot be read.
    #[error("the server's certificate authority cannot be used: {0}")]
    Authorities(String),
    /// The server sends us around.
    #[error("the server redirects to {0}, which leads nowhere")]
    Redirect(String),
    /// The request cannot be written.
    #[error("the request cannot be made: {0}")]
    Request(#[from] http::Error),
}

impl Error {
    /// Whether the same request may do better.
    pub fn is_passing(&self) -> bool {
        match self {
            // A certificate that is not believed stays what it is.
            Self::Connect { source, .. } => source.kind() != std::io::ErrorKind::InvalidData,
            Self::Connection(_) => true,
            _ => false,
        }
    }
}

/// Sends requests.
#[derive(Clone)]
pub struct Client {
    tls: Arc<ClientConfig>,
    via: Option<SocketAddr>,
}

impl Client {
    /// A client that believes whom it is told to.
    pub fn new(trust: &Trust) -> Result<Self, Error> {
        let tls = Arc::new(trust.config().map_err(Error::Authorities)?);
        Ok(Self { tls, via: None })
    }

    /// Reaches every server at this address, which only passes on what it gets: names and certificates stay the same.
    pub fn via(self, address: SocketAddr) -> Self {
        Self { via: Some(address), ..self }
    }

    /// Asks for a file and follows the server to where it is. Secrets go to no other host.
    pub async fn ask(
        &self,
        method: Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Response<Incoming>, Error> {
        let mut uri = uri.clone();
        let mut headers = headers.clone();
        for _ in 0..REDIRECTS {
            let mut request = Request::builder().method(method.clone()).uri(uri.clone());
            if let Some(all) = request.headers_mut() {
                *all = headers.clone();
            }
            let empty = Empty::new().map_err(|never| match never {}).boxed_unsync();
            let response = self.send(request.body(empty)?).await?;
            let Some(next) = redirect(&uri, &response)? else { return Ok(response) };
            if next.authority() != uri.authority() {
                headers = public(&headers);
            }
            uri = next;
        }
        Err(Error::Redirect(uri.to_string()))
    }

    /// Sends a request and waits for the head of the answer.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Incoming>, Error> {
        let uri = request.uri().clone();
        let (Some(host), Some(scheme)) = (uri.host(), uri.scheme()) else { return Err(Error::Address(uri)) };
        let secure = *scheme == Scheme::HTTPS;
        if !secure && *scheme != Scheme::HTTP {
            return Err(Error::Address(uri));
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let address = format!("{host}:{port}");
        let failed = |source: std::io::Error| Error::Connect { address: address.clone(), source };
        let slow = |_| failed(std::io::ErrorKind::TimedOut.into());
        let connect = async {
            match self.via {
                Some(address) => TcpStream::connect(address).await,
                None => TcpStream::connect((bare, port)).await,
            }
        };
        let stream = timeout(CONNECT, connect).await.map_err(slow)?.map_err(failed)?;
        let _ = stream.set_nodelay(true);
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        // A proxy may look at the host; user information is none of its business.
        let named = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        if let Ok(value) = HeaderValue::from_str(named) {
            request.headers_mut().insert(header::HOST, value);
        }
        *request.uri_mut() =
            uri.path_and_query().map_or("/", |path| path.as_str()).parse().map_err(http::Error::from)?;
        if !secure {
            return Ok(exchange(stream, request).await?);
        }
        let name = ServerName::try_from(bare.to_owned()).map_err(|_| Error::Address(uri.clone()))?;
        let handshake = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream);
        let stream = timeout(CONNECT, handshake).await.map_err(slow)?.map_err(failed)?;
        Ok(exchange(stream, request).await?)
    }
}

async fn exchange<S>(stream: S, request: Request<Body>) -> Result<Response<Incoming>, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // How the connection ends shows in the answer's body.
    tokio::spawn(async move { drop(connection.await) });
    sender.send_request(request).await
}

/// Where the server sends us.
fn redirect(from: &Uri, response: &Response<Incoming>) -> Result<Option<Uri>, Error> {
    if ![301, 302, 303, 307, 308].contains(&response.status().as_u16()) {
        return Ok(None);
    }
    let location =
        response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    next(from, location).map(Some).ok_or_else(|| Error::Redirect(location.to_owned()))
}

/// A location, which may be without a host. From a secure place nobody is sent to an insecure one.
fn next(from: &Uri, location: &str) -> Option<Uri> {
    let to: Uri = location.parse().ok()?;
    if to.scheme().is_some() {
        let worse = from.scheme() == Some(&Scheme::HTTPS) && to.scheme() != Some(&Scheme::HTTPS);
        return (!worse).then_some(to);
    }
    if !location.starts_with('/') {
        return None;
    }
    let mut parts = from.clone().into_parts();
    parts.path_and_query = to.into_parts().path_and_query;
    Uri::from_parts(parts).ok()
}

/// What may be told to any host: no tokens.
fn public(headers: &HeaderMap) -> HeaderMap {
    let secret =
        |name: &header::HeaderName| *name == header::AUTHORIZATION || name.as_str().starts_with("x-");
    headers
        .iter()
        .filter(|(name, _)| !secret(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_safe() {
        let from: Uri = "https://a:1/x?y".parse().unwrap();
        for (location, expected) in [
            ("/z", Some("https://a:1/z")),
            ("https://b/z", Some("https://b/z")),
            ("http://b/z", None),
            ("", None),
            ("z", None),
            ("a b", None),
        ] {
            assert_eq!(next(&from, location).map(|uri| uri.to_string()).as_deref(), expected, "{location}");
        }
    }
}
