//! What is asked of the API server, how often and how long it takes.

use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode, Uri};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::{Metric, Told};
use crate::answers::Answers;

const LATENCY: Metric = Metric::histogram(
    "kubevirt_rest_client_request_latency_seconds",
    "Time from a request to the head of its answer",
)
.by(&["verb", "url"]);
const WAITS: Metric = Metric::histogram(
    "kubevirt_rest_client_rate_limiter_duration_seconds",
    "How long requests were held back by our own limit",
)
.by(&["verb", "url"]);
const ANSWERS: Metric =
    Metric::counter("kubevirt_rest_client_requests_total", "Requests that were sent, by answer")
        .by(&["code", "method", "host", "resource", "verb"]);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Url {
    verb: &'static str,
    url: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    code: String,
    method: String,
    host: String,
    resource: String,
    verb: &'static str,
}

type Histograms = Family<Url, Histogram, fn() -> Histogram>;

/// The metrics of requests to all hosts.
#[derive(Clone)]
pub(super) struct Families {
    latency: Histograms,
    waits: Histograms,
    answers: Family<Answered, Counter>,
    pub(super) latest: Answers,
}

impl Families {
    pub(super) fn register(told: &mut Told) -> Self {
        Self {
            latency: told.register(&LATENCY, Family::new_with_constructor(latencies as fn() -> Histogram)),
            waits: told.register(&WAITS, Family::new_with_constructor(waits as fn() -> Histogram)),
            answers: told.register(&ANSWERS, Family::default()),
            latest: Answers::default(),
        }
    }

    pub(super) fn to(&self, host: &str) -> RequestMetrics {
        RequestMetrics { families: self.clone(), host: host.to_owned() }
    }
}

fn latencies() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}

fn waits() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 8))
}

/// The metrics of requests to one host.
#[derive(Clone)]
pub struct RequestMetrics {
    families: Families,
    host: String,
}

/// A request that was sent and has no answer yet.
pub struct SentRequest {
    metrics: RequestMetrics,
    url: Url,
    method: Method,
    resource: String,
    at: Instant,
}

impl RequestMetrics {
    /// A request is sent, after it had waited for so long.
    pub fn sent(&self, method: &Method, uri: &Uri, waited: Duration) -> SentRequest {
        let target = Target::of(method, uri);
        let url = Url { verb: target.verb, url: target.url };
        self.families.waits.get_or_create_owned(&url).observe(waited.as_secs_f64());
        SentRequest {
            metrics: self.clone(),
            url,
            method: method.clone(),
            resource: target.resource,
            at: Instant::now(),
        }
    }
}

impl SentRequest {
    /// The answer's head is there, or none came.
    pub fn answered(self, status: Option<StatusCode>) {
        let Self { metrics, url, method, resource, at } = self;
        metrics.families.latest.note(status, Instant::now());
        metrics.families.latency.get_or_create_owned(&url).observe(at.elapsed().as_secs_f64());
        let code = status.map_or("<error>".to_owned(), |status| status.as_u16().to_string());
        let labels =
            Answered { code, method: method.to_string(), host: metrics.host, resource, verb: url.verb };
        metrics.families.answers.get_or_create_owned(&labels).inc();
    }
}

/// What a request is about, without the names that would make a series of each object.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    verb: &'static str,
    resource: String,
    url: String,
}

impl Target {
    fn of(method: &Method, uri: &Uri) -> Self {
        let parts: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
        let base = match parts.first() {
            Some(&"api") => 2,
            Some(&"apis") => 3,
            _ => parts.len(),
        };
        let (prefix, rest) = parts.split_at(base.min(parts.len()));
        let (namespaced, rest) = match rest {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        let resource = rest.first().copied().unwrap_or("none");
        let named = rest.len() > 1;
        let mut url = format!("/{}", prefix.join("/"));
        if namespaced {
            url += "/namespaces/{namespace}";
        }
        for (index, part) in rest.iter().enumerate() {
            url.push('/');
            url += if index == 1 { "{name}" } else { part };
        }
        Self { verb: verb(method, uri, resource, named), resource: resource.to_owned(), url }
    }
}

fn verb(method: &Method, uri: &Uri, resource: &str, named: bool) -> &'static str {
    let watch = uri.query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"));
    match *method {
        _ if resource == "none" => "none",
        Method::GET if watch => "WATCH",
        Method::GET if named => "GET",
        Method::GET => "LIST",
        Method::POST => "CREATE",
        Method::PUT => "UPDATE",
        Method::PATCH => "PATCH",
        Method::DELETE if named => "DELETE",
        Method::DELETE => "DELETECOLLECTION",
        _ => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_is_about() {
        let cases = [
            ("GET", "/api/v1/pods?watch=true&x=y", "WATCH", "pods", "/api/v1/pods"),
            ("GET", "/api/v1/namespaces/a/pods", "LIST", "pods", "/api/v1/namespaces/{namespace}/pods"),
            (
                "PATCH",
                "/apis/kubevirt.io/v1/namespaces/a/virtualmachines/b/status",
                "PATCH",
                "virtualmachines",
                "/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachines/{name}/status",
            ),
            ("GET", "/api/v1/namespaces/a", "GET", "namespaces", "/api/v1/namespaces/{name}"),
            ("DELETE", "/api/v1/nodes/a", "DELETE", "nodes", "/api/v1/nodes/{name}"),
            ("GET", "/version", "none", "none", "/version"),
            ("GET", "/api", "none", "none", "/api"),
            ("GET", "/", "none", "none", "/"),
        ];
        for (method, uri, verb, resource, url) in cases {
            let target = Target::of(&method.parse().unwrap(), &uri.parse().unwrap());
            assert_eq!(
                (target.verb, target.resource.as_str(), target.url.as_str()),
                (verb, resource, url),
                "{uri}"
            );
        }
    }
}
