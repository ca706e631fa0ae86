//! Admission webhooks: reviews come in, verdicts go out; what they judge by is in `kubevirt_admission`.

mod eviction;
mod hooks;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kubevirt_admission::review::{Answer, Incoming, Refusal, Surroundings, answer};
use kubevirt_admission::{ClusterConfig, Context, Objects, Operation, OwnAccounts};
use kubevirt_component::Configuration;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::cluster::{CannotRead, Cluster};
use crate::counters::Counters;
use hooks::{EVICTIONS, HOOKS, Hook};

/// A review holds an object twice, and an API server takes no object larger than 3 MiB.
const BODY_LIMIT: usize = 8 << 20;
/// API servers wait for ten seconds and would rather hear why there is no verdict.
const PATIENCE: Duration = Duration::from_secs(9);

/// What answers reviews.
pub struct Webhooks {
    /// The other objects.
    pub cluster: Arc<Cluster>,
    /// What the installation is set to.
    pub configuration: Configuration,
    /// The service accounts of our own components.
    pub own_accounts: OwnAccounts,
    /// Marks instances that have to leave their node.
    pub client: Client,
    /// What is counted.
    pub counters: Counters,
    /// Set once all that is watched is known.
    pub synced: OnceCell<()>,
}

impl Webhooks {
    /// All paths that reviews are sent to.
    pub fn routes(self: Arc<Self>) -> Router {
        let evictions = async |State(own): State<Arc<Self>>, headers: HeaderMap, body: Bytes| {
            own.respond(&headers, &body, |incoming| own.evict(incoming)).await
        };
        let mut router = Router::new().route(EVICTIONS, post(evictions));
        for hook in &HOOKS {
            let review = async |State(own): State<Arc<Self>>, headers: HeaderMap, body: Bytes| {
                own.respond(&headers, &body, |incoming| own.review(hook, incoming)).await
            };
            router = router.route(hook.path, post(review));
        }
        router.layer(DefaultBodyLimit::max(BODY_LIMIT)).with_state(self)
    }

    /// Waits until all that is watched is known.
    pub async fn ready(&self) {
        let sync = async || {
            self.configuration.ready().await;
            self.cluster.ready().await;
        };
        self.synced.get_or_init(sync).await;
    }

    /// From the bytes of a review to those of its answer.
    async fn respond<V>(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        verdict: impl FnOnce(Incoming) -> V,
    ) -> Response
    where
        V: Future<Output = Answer>,
    {
        if !is_json(headers) {
            return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "a review is application/json").into_response();
        }
        let incoming = match Incoming::parse(body) {
            Ok(incoming) => incoming,
            Err(error) => {
                tracing::warn!("not a review: {error}");
                return json(StatusCode::BAD_REQUEST, &error.to_review());
            }
        };
        let (uid, kind) = (incoming.uid.clone(), incoming.resource.kind.clone());
        let verdict = async {
            self.ready().await;
            verdict(incoming).await
        };
        match tokio::time::timeout(PATIENCE, verdict).await {
            Ok(answer) => json(StatusCode::OK, &answer.to_review()),
            Err(_) => {
                let message = "the objects that are needed for a verdict could not be read in time";
                let answer = match kind.as_str() {
                    eviction::KIND => eviction::hindered(uid, &message),
                    _ => refused(uid, 504, "Timeout", message.to_owned()),
                };
                json(StatusCode::OK, &answer.to_review())
            }
        }
    }

    async fn review(&self, hook: &Hook, incoming: Incoming) -> Answer {
        if let Some(objection) = hook.objection(&incoming) {
            return refused(incoming.uid, 400, "BadRequest", objection);
        }
        let config = self.configuration.now();
        let judged = self.cluster.judge(|objects| {
            let surroundings = Surroundings {
                config: &config,
                objects,
                own_accounts: &self.own_accounts,
                now: Time(jiff::Timestamp::now()),
                fresh_uuid: &uuid::Uuid::new_v4,
            };
            answer(&incoming, &surroundings, hook.steps)
        });
        match judged.await {
            Ok(answer) => {
                self.count(hook, &incoming, &answer);
                answer
            }
            Err(error) => unreadable(incoming.uid, &error),
        }
    }

    fn count(&self, hook: &Hook, incoming: &Incoming, answer: &Answer) {
        let made = incoming.request.operation == Operation::Create && !incoming.request.dry_run;
        if made && hook.path == "/virtualmachines-validate" && answer.allowed() {
            self.counters.vm_created(&incoming.request.namespace);
        }
    }

    /// What rules know beside an object.
    fn context<'a>(
        &'a self,
        incoming: &'a Incoming,
        config: &'a ClusterConfig,
        objects: &'a dyn Objects,
    ) -> Context<'a> {
        Context {
            request: &incoming.request,
            config,
            objects,
            own_accounts: &self.own_accounts,
            now: Time(jiff::Timestamp::now()),
            fresh_uuid: &uuid::Uuid::new_v4,
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn json(status: StatusCode, review: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], review.to_string()).into_response()
}

/// The answer that something could not be looked up.
fn unreadable(uid: String, error: &CannotRead) -> Answer {
    tracing::warn!("no verdict: {error}");
    refused(uid, 500, "InternalError", error.to_string())
}

fn refused(uid: String, code: u16, reason: &'static str, message: String) -> Answer {
    let refusal = Some(Refusal { code, reason, message });
    Answer { uid, problems: Vec::new(), warnings: Vec::new(), patch: None, refusal }
}
