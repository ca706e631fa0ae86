//! Whether a component is well, ready and the leader: `/healthz`, `/readyz`, `/leader` and `/metrics`.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::metrics::gauge::Gauge;

use crate::metrics::{self, Metrics};
use crate::role::Role;

/// How a component is; clones are the same.
#[derive(Clone, Debug)]
pub struct Health(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ill: Mutex<Option<String>>,
    ready: Gauge,
    leading: Gauge,
}

impl Health {
    /// A component that is well but not ready, and its metrics of that.
    pub fn new(role: Role, metrics: &Metrics) -> Self {
        let name = |what| format!("kubevirt_{}_{what}_status", role.name().replace('-', "_"));
        let ready = metrics.add_plain(&name("ready"), "Whether the component is ready", Gauge::default());
        let leading = match role {
            Role::Controller | Role::Operator => {
                metrics.add_plain(&name("leading"), "Whether the component leads", Gauge::default())
            }
            Role::Api | Role::Handler => Gauge::default(),
        };
        Self(Arc::new(Inner { ill: Mutex::new(None), ready, leading }))
    }

    /// Whether requests can be answered from now on.
    pub fn set_ready(&self, ready: bool) {
        self.0.ready.set(ready.into());
    }

    /// Whether this component is the one that works.
    pub fn set_leading(&self, leading: bool) {
        self.0.leading.set(leading.into());
    }

    /// What is so wrong that only a restart helps.
    pub fn set_ill(&self, why: Option<String>) {
        *self.0.ill.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Whether requests can be answered.
    pub fn is_ready(&self) -> bool {
        self.0.ready.get() == 1
    }

    /// The routes by which probes and Prometheus ask.
    pub fn routes(&self, metrics: &Metrics) -> Router {
        let (well, ready, leading, metrics) = (self.clone(), self.clone(), self.clone(), metrics.clone());
        Router::new()
            .route("/healthz", get(move || async move { well.well() }))
            .route("/readyz", get(move || async move { ready.ready() }))
            .route("/leader", get(move || async move { leading.leading() }))
            .route("/metrics", get(move || text(metrics.clone())))
    }

    /// The answer to a probe whether it is well.
    pub fn well(&self) -> impl IntoResponse + use<> {
        match self.0.ill.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            None => (StatusCode::OK, "ok".to_owned()),
            Some(why) => (StatusCode::INTERNAL_SERVER_ERROR, why),
        }
    }

    fn ready(&self) -> impl IntoResponse + use<> {
        if self.is_ready() { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready") }
    }

    fn leading(&self) -> impl IntoResponse + use<> {
        let leader = self.0.leading.get() == 1;
        let answer = format!("{{\"apiserver\":{{\"leader\":\"{leader}\"}}}}");
        ([(CONTENT_TYPE, "application/json")], answer)
    }
}

/// On a thread of its own, since it may take its time where there is much to tell.
async fn text(metrics: Metrics) -> impl IntoResponse {
    let told = tokio::task::spawn_blocking(move || metrics.text()).await;
    match told {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
