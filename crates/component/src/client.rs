//! The connection to the API server: one for all requests and watches of a client, kept alive and found out when dead.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Connections;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt, DynBody};
use rustls::pki_types::InvalidDnsNameError;
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use crate::leader::Gate;
use crate::limits::Limits;
use crate::metrics::RequestMetrics;

/// How long there may be silence before the API server is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(30);
/// How long it may take to answer that.
const ANSWER: Duration = Duration::from_secs(15);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The name that the API server's certificate should have.
    #[error("tls-server-name: {0}")]
    Name(#[from] InvalidDnsNameError),
    /// Certificates, tokens or headers.
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

/// A client that keeps to the limits and counts its requests, and changes nothing once its gate is shut.
///
/// `kube`'s own speaks HTTP/1.1, which takes a connection for each watch and for each request that is under way: with
/// twenty watches that is most of the memory of an idle daemon, and each request is sent and answered by itself.
pub fn client(
    config: &Config,
    limits: &Limits,
    metrics: RequestMetrics,
    gate: Option<Gate>,
) -> Result<kube::Client, Unusable> {
    let mut connections = Connections::builder(TokioExecutor::new());
    connections
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(SILENCE)
        .http2_keep_alive_timeout(ANSWER)
        .http2_keep_alive_while_idle(true);
    let service = ServiceBuilder::new()
        .layer(limits.layer(metrics))
        .layer(config.base_uri_layer())
        .option_layer(config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry())))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .option_layer(gate)
        .map_err(BoxError::from)
        .service(connections.build::<_, Body>(connector(config)?))
        .map_response(|answer| answer.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>));
    Ok(ClientBuilder::new(service.boxed(), config.default_namespace.clone()).build())
}

fn connector(config: &Config) -> Result<HttpsConnector<HttpConnector>, Unusable> {
    let mut plain = HttpConnector::new();
    plain.enforce_http(false);
    plain.set_nodelay(true);
    plain.set_connect_timeout(config.connect_timeout);
    let mut builder =
        HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name.clone().try_into()?));
    }
    Ok(builder.enable_all_versions().wrap_connector(plain))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::SocketAddr;
    use std::sync::{Arc, Mutex};

    use axum::http::Request;
    use axum::routing::get;
    use axum::{Extension, Router};
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use tokio::sync::Barrier;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::metrics::Metrics;
    use crate::serve::{Peer, Server};
    use crate::tls::tests::{Authority, Folder, follow};

    const AT_ONCE: usize = 20;

    /// Those whom a server has heard from.
    type Seen = Arc<Mutex<HashSet<SocketAddr>>>;

    /// A server of this name that answers only when it has been asked so many times at once, except for its root, and
    /// how to reach it by the name `api`.
    async fn serve(name: &str, seen: &Seen, stop: &CancellationToken) -> Config {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (authority, folder) = (Authority::new("authority"), Folder::new());
        let (certificate, key) = authority.issue(name);
        folder.mount(&[("tls.crt", &certificate), ("tls.key", &key)]);
        let tls = follow(folder.files(), None, stop).unwrap();
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), tls).await.unwrap();
        let address = server.address().unwrap();
        let together = Arc::new(Barrier::new(AT_ONCE));
        let seen = seen.clone();
        let wait = async move |Extension(peer): Extension<Peer>| {
            seen.lock().unwrap().insert(peer.address);
            together.wait().await;
            "{}"
        };
        let router = Router::new().route("/", get(async || "{}")).route("/together", get(wait));
        let stop = stop.clone();
        tokio::spawn(async move { server.serve(router, &stop).await });
        config(address, &authority)
    }

    fn config(address: SocketAddr, authority: &Authority) -> Config {
        let mut config = Config::new(format!("https://{address}").parse().unwrap());
        config.root_cert =
            Some(vec![CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap().to_vec()]);
        config.tls_server_name = Some("api".to_owned());
        config
    }

    fn made(config: &Config) -> Result<kube::Client, Unusable> {
        client(config, &Limits::none(), Metrics::new().requests("api"), None)
    }

    async fn ask(client: kube::Client, path: &str) -> kube::Result<String> {
        client.request_text(Request::get(path).body(vec![]).unwrap()).await
    }

    #[tokio::test]
    async fn all_that_is_under_way_shares_a_connection() {
        let (seen, stop) = (Seen::default(), CancellationToken::new());
        let client = made(&serve("api", &seen, &stop).await).unwrap();
        ask(client.clone(), "/").await.unwrap();
        let asked: Vec<_> = (0..AT_ONCE).map(|_| tokio::spawn(ask(client.clone(), "/together"))).collect();
        for answer in asked {
            assert_eq!(answer.await.unwrap().unwrap(), "{}");
        }
        assert_eq!(seen.lock().unwrap().len(), 1);
        stop.cancel();
    }

    #[tokio::test]
    async fn who_shows_another_name_is_not_believed() {
        let stop = CancellationToken::new();
        let mut config = serve("other", &Seen::default(), &stop).await;
        assert!(ask(made(&config).unwrap(), "/").await.is_err());
        config.tls_server_name = Some("not a name".to_owned());
        assert!(made(&config).is_err_and(|error| error.to_string().starts_with("tls-server-name: ")));
        stop.cancel();
    }
}
