//! Subresources: actions on machines and instances, and ways into them, behind the API server's aggregator.
//!
//! `routes` is the table of everything that is served. A request is matched with it, the one who asks is known by what
//! the aggregator says (`access`), the API server is asked whether they may, and only then is anything looked at.
//! What comes of a request is decided in `plan`, by functions of what was seen; `change` carries it out, `nodes` speaks
//! to handlers, and `relay` carries streams.

mod access;
mod actions;
mod aggregator;
mod change;
mod connections;
mod discovery;
mod failure;
mod graph;
mod handler_client;
mod installation;
mod nodes;
mod openapi;
mod options;
mod plan;
mod profilers;
mod query;
mod relay;
mod routes;
mod seen;
mod trust;

#[cfg(test)]
mod any_request;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{ALLOW, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, Client};
use kubevirt_api::names::components;
use kubevirt_api::names::labels;
use kubevirt_component::serve::Peer;
use kubevirt_component::tls::{Authorities, Clients, Files};
use kubevirt_component::{Configuration, Watch};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::arguments::Arguments;
use crate::cluster::Cluster;
use access::User;
use aggregator::Followed;
pub use connections::Connections;
use failure::{Failure, empty_response, json_response};
use handler_client::Handlers;
use query::Query;
use routes::{Action, Matched, NoRoute};

/// The largest body that is taken: no object is larger on an API server.
const BODY_LIMIT: usize = 3 << 20;
/// How long it may take to come.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// How long streams may go on after the order to stop.
const STREAM_GRACE: Duration = Duration::from_secs(10);

/// What answers requests for subresources.
pub struct Subresources {
    client: Client,
    /// Asks what users may do, at the rate of webhooks.
    reviews: Client,
    cluster: Arc<Cluster>,
    configuration: Configuration,
    aggregator: Followed,
    handlers: Handlers,
    connections: Connections,
    namespace: String,
    health: installation::Health,
    streams: TaskTracker,
    end_of_streams: CancellationToken,
}

/// What is needed to answer.
pub struct Needs<'a> {
    /// The flags.
    pub arguments: &'a Arguments,
    /// Reads and writes objects.
    pub client: Client,
    /// Asks what users may do.
    pub reviews: Client,
    /// The instance types and other objects.
    pub cluster: Arc<Cluster>,
    /// What the installation is set to.
    pub configuration: Configuration,
    /// Where streams are counted.
    pub connections: Connections,
}

impl Subresources {
    /// Begins to watch all that is needed.
    pub fn start(needs: Needs<'_>, stop: &CancellationToken) -> Self {
        let (arguments, client) = (needs.arguments, needs.client);
        let namespace = arguments.common.namespace();
        let pods = Watch::<Pod>::within(client.clone(), &namespace)
            .labels(&format!("{}={}", labels::APP, components::HANDLER))
            .index(handler_client::NODE, handler_client::node_of)
            .start(stop);
        let handlers = Handlers {
            pods,
            port: arguments.console_server_port,
            files: Files {
                certificate: arguments.handler_cert_file.clone(),
                key: arguments.handler_key_file.clone(),
            },
            authorities: aggregator::bundle(client.clone(), &namespace, &arguments.ca_configmap_name, stop),
            externally_managed: arguments.externally_managed,
            last: Mutex::new(None),
        };
        Self {
            aggregator: Followed::begin(client.clone(), stop),
            client,
            reviews: needs.reviews,
            cluster: needs.cluster,
            configuration: needs.configuration,
            handlers,
            connections: needs.connections,
            namespace,
            health: installation::Health::default(),
            streams: TaskTracker::new(),
            end_of_streams: CancellationToken::new(),
        }
    }

    /// Whom clients' certificates must be from to be believed; most have none.
    pub fn clients(&self) -> Clients {
        Clients { authorities: Authorities::Live(self.aggregator.authorities()), required: false }
    }

    /// Waits until requests can be answered.
    pub async fn ready(&self) {
        self.aggregator.ready().await;
        self.handlers.pods.ready().await;
        self.configuration.ready().await;
    }

    /// Everything that no other route is for.
    pub fn routes(self: Arc<Self>) -> Router {
        let answer = async |State(own): State<Arc<Self>>, request: Request<Body>| own.answer(request).await;
        Router::new().fallback(answer).with_state(self)
    }

    /// Lets streams go on for a while, and ends those that do not end by themselves.
    pub async fn finish(&self) {
        self.streams.close();
        if timeout(STREAM_GRACE, self.streams.wait()).await.is_err() {
            tracing::info!(streams = self.streams.len(), "ending streams");
            self.end_of_streams.cancel();
            let _ = timeout(Duration::from_secs(2), self.streams.wait()).await;
        }
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let mut response = match self.respond(request).await {
            Ok(response) => response,
            Err(failure) => {
                if failure.code >= 500 {
                    tracing::warn!(code = failure.code, "{}", failure.message);
                }
                failure.response()
            }
        };
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    async fn respond(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let path = request.uri().path();
        if let Some(document) = discovery::document(path) {
            return Ok(readable(request.method(), &document));
        }
        if let Some(document) = openapi::document(path) {
            return Ok(readable(request.method(), document));
        }
        let matched = match routes::find(request.method().as_str(), path) {
            Ok(matched) => matched,
            Err(NoRoute::Path) => return Err(Failure::no_such_path()),
            Err(NoRoute::Method(allowed)) => return Ok(not_by(request.method(), allowed)),
        };
        if !matched.route.open() {
            let peer = request.extensions().get::<Peer>();
            let user = self.aggregator.now().user(peer, request.headers())?;
            self.authorize(&user, &matched).await?;
        }
        self.dispatch(&matched, request).await
    }

    /// Whether the one who asks may do it.
    async fn authorize(&self, user: &User, matched: &Matched) -> Result<(), Failure> {
        let api: Api<SubjectAccessReview> = Api::all(self.reviews.clone());
        let review = access::review(user, matched);
        let answer = api.create(&PostParams::default(), &review).await;
        let answer =
            answer.map_err(|error| Failure::internal(format!("cannot ask who may do this: {error}")))?;
        let status = answer.status.unwrap_or_default();
        if status.allowed && status.denied != Some(true) {
            return Ok(());
        }
        Err(access::denied(user, matched, status.reason.as_deref()))
    }

    async fn dispatch(&self, matched: &Matched, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let query = Query::of(request.uri().query().unwrap_or_default());
        match matched.route.action {
            Action::Line(line) => return self.open_line(line, matched, &query, request).await,
            Action::PortForward => return self.forward_port(matched, request).await,
            _ => {}
        }
        let body = read(request).await?;
        let call = Call { matched, query, body };
        match matched.route.action {
            Action::Order(order) => self.order(order, &call).await,
            Action::Question(question) => self.ask(question, &call).await,
            Action::Version | Action::Guestfs | Action::Health | Action::Profiler(_) => {
                self.about_installation(&call).await
            }
            Action::Template => Err(Failure::not_implemented(format!(
                "templates are not made into machines by this version of KubeVirt: {} {} of {} is not served",
                matched.route.on.resource().unwrap_or_default(),
                matched.route.path,
                matched.route.on.group().name,
            ))),
            _ => self.act(&call).await,
        }
    }
}

/// A request whose body was read.
struct Call<'a> {
    matched: &'a Matched,
    query: Query,
    body: Bytes,
}

/// A document that is there to be read.
fn readable(method: &Method, document: &Value) -> Response<Body> {
    if method == Method::GET { json_response(StatusCode::OK, document) } else { not_by(method, "GET") }
}

/// What there is, by which other method. Whoever only wants to know that is told so.
fn not_by(method: &Method, allowed: &'static str) -> Response<Body> {
    let mut response = match *method {
        Method::OPTIONS => empty_response(StatusCode::OK),
        _ => Failure::wrong_method(method.as_str(), allowed).response(),
    };
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

async fn read(request: Request<Body>) -> Result<Bytes, Failure> {
    match timeout(BODY_PATIENCE, axum::body::to_bytes(request.into_body(), BODY_LIMIT)).await {
        Ok(Ok(body)) => Ok(body),
        // A body that breaks off looks the same as one that is too large; the latter is what happens.
        Ok(Err(_)) => Err(Failure::too_large(BODY_LIMIT)),
        Err(_) => Err(Failure::bad_request("the body of the request did not come in time")),
    }
}
