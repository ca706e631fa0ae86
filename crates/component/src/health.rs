//! Whether a component is well, ready and the leader: `/healthz`, `/readyz`, `/leader` and `/metrics`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::metrics::gauge::Gauge;

use crate::answers::Answers;
use crate::metrics::{self, Metrics};
use crate::role::Role;

/// How long the API server may be silent until we look for the fault in ourselves. One that is restarted, or moves to
/// another machine, is back before that, and those who waited for it go on at once.
const PATIENCE: Duration = Duration::from_secs(300);

/// How a component is; clones are the same.
#[derive(Clone, Debug)]
pub struct Health(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    answers: Answers,
    ready: Gauge,
    leading: Gauge,
}

impl Health {
    /// A component that is not ready, and its metrics of that. It is well as long as the requests are answered that these
    /// metrics count.
    pub fn new(role: Role, metrics: &Metrics) -> Self {
        let name = |what| format!("kubevirt_{}_{what}_status", role.name().replace('-', "_"));
        let ready = metrics.add_plain(&name("ready"), "Whether the component is ready", Gauge::default());
        let leading = match role {
            Role::Controller | Role::Operator => {
                metrics.add_plain(&name("leading"), "Whether the component leads", Gauge::default())
            }
            Role::Api | Role::Handler => Gauge::default(),
        };
        Self(Arc::new(Inner { answers: metrics.answers(), ready, leading }))
    }

    /// Whether requests can be answered from now on.
    pub fn set_ready(&self, ready: bool) {
        self.0.ready.set(ready.into());
    }

    /// Whether this component is the one that works.
    pub fn set_leading(&self, leading: bool) {
        self.0.leading.set(leading.into());
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

    /// The answer to a probe whether it is well, and need not be restarted.
    pub fn well(&self) -> impl IntoResponse + use<> {
        let silence = self.0.answers.silence();
        if silence < PATIENCE {
            return (StatusCode::OK, "ok".to_owned());
        }
        let why = format!("the API server has not answered for {} seconds", silence.as_secs());
        (StatusCode::INTERNAL_SERVER_ERROR, why)
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn who_hears_nothing_of_the_api_server_for_long_is_not_well() {
        let metrics = Metrics::new();
        let (health, begin) = (Health::new(Role::Api, &metrics), Instant::now());
        let cases = [
            (None, 0, StatusCode::OK),
            (None, 299, StatusCode::OK),
            (None, 300, StatusCode::INTERNAL_SERVER_ERROR),
            (Some(StatusCode::SERVICE_UNAVAILABLE), 400, StatusCode::INTERNAL_SERVER_ERROR),
            (Some(StatusCode::OK), 401, StatusCode::OK),
            (None, 402, StatusCode::OK),
        ];
        for (answer, second, expected) in cases {
            metrics.answers().note(answer, begin + Duration::from_secs(second));
            assert_eq!(health.well().into_response().status(), expected, "at {second}");
        }
    }

    #[test]
    fn all_requests_that_are_counted_tell_of_the_api_server() {
        let metrics = Metrics::new();
        let request = || {
            let uri = "/api/v1/pods".parse().unwrap();
            metrics.requests("server").sent(&axum::http::Method::GET, &uri, Duration::ZERO)
        };
        request().answered(None);
        std::thread::sleep(Duration::from_millis(2));
        request().answered(None);
        assert!(metrics.answers().silence() >= Duration::from_millis(2));
        request().answered(Some(StatusCode::OK));
        assert_eq!(metrics.answers().silence(), Duration::ZERO);
    }
}
