//! The profilers of all components: which pods are asked, how, and what becomes of their answers.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::HOST;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use futures_util::future::try_join_all;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use kubevirt_api::names::components::certificate_names::{HANDLER_SERVER, of_service};
use kubevirt_api::names::components::{self, services};
use kubevirt_api::names::labels;
use kubevirt_component::profiler;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::failure::{Failure, empty_response, json_response};
use super::handler_client::is_ready;
use super::routes::Profiler;
use super::trust::Component;
use super::{Call, Subresources};

/// Where all components listen.
const PORT: u16 = 8443;
/// How long a component may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest profile that is taken.
const LARGEST: usize = 64 << 20;
/// How many pods are asked at once for their profiles, which are all in memory then.
const USUAL_PAGE: u32 = 10;
const LARGEST_PAGE: u32 = 20;

/// Which profiles are asked for.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
struct Wanted {
    label_selector: String,
    r#continue: String,
    page_size: i64,
}

impl Wanted {
    /// What a body says; all of them if it says nothing.
    fn of(body: &[u8]) -> Result<Self, Failure> {
        if body.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_slice(body).map_err(|error| {
            Failure::bad_request(format!("failed to parse cluster profiler request: {error}"))
        })
    }

    /// The question for a page of pods. Those of machines would only fill pages.
    fn list(&self) -> ListParams {
        let selector = match self.label_selector.as_str() {
            "" => labels::APP.to_owned(),
            more => format!("{},{more}", labels::APP),
        };
        let list = ListParams::default().labels(&selector).limit(page(self.page_size));
        if self.r#continue.is_empty() { list } else { list.continue_token(&self.r#continue) }
    }
}

fn page(asked: i64) -> u32 {
    if asked <= 0 {
        return USUAL_PAGE;
    }
    u32::try_from(asked).unwrap_or(LARGEST_PAGE).min(LARGEST_PAGE)
}

/// The component that a pod is of; none if it has no profiler.
fn component(pod: &Pod) -> Option<&'static str> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let all = [components::API, components::CONTROLLER, components::HANDLER, components::OPERATOR];
    all.into_iter().find(|component| name.strip_prefix(component).is_some_and(|rest| rest.starts_with('-')))
}

/// Whether a pod can be asked.
fn answers(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    component(pod).is_some()
        && phase == Some("Running")
        && pod.metadata.deletion_timestamp.is_none()
        && is_ready(pod)
}

/// The name in the certificate of a component.
fn certificate_name(component: &str, namespace: &str) -> String {
    match component {
        components::HANDLER => HANDLER_SERVER.to_owned(),
        components::OPERATOR => of_service(services::OPERATOR_WEBHOOK, namespace),
        other => of_service(other, namespace),
    }
}

impl Profiler {
    /// The route of a component.
    fn path(self) -> &'static str {
        match self {
            Self::Start => "/start-profiler",
            Self::Stop => "/stop-profiler",
            Self::Dump => "/dump-profiler",
        }
    }

    /// What a user is told that cannot be done.
    fn refusal(self) -> String {
        profiler::refusal(match self {
            Self::Start => "start profiler",
            Self::Stop => "stop profiler",
            Self::Dump => "dump profiler results",
        })
    }

    /// What is said of a component that does not do it.
    fn refused_by(self, code: u16, address: SocketAddr, pod: &str) -> String {
        let first = if self == Self::Dump { "encountered" } else { "Encountered" };
        let path = self.path();
        format!("{first} [{code}] status code while contacting url [https://{address}{path}] for pod [{pod}]")
    }
}

impl Subresources {
    /// Has all components do something with their profilers.
    pub(super) async fn profiler(&self, what: Profiler, call: &Call<'_>) -> Result<Response<Body>, Failure> {
        if !profiler::is_allowed(&self.configuration.now()) {
            return Err(Failure::denied(what.refusal(), Value::Null));
        }
        let asked = Asked {
            namespace: &self.namespace,
            port: PORT,
            authorities: &self.handlers.authorities,
            externally_managed: self.handlers.externally_managed,
        };
        if what == Profiler::Dump {
            return self.dump(&Wanted::of(&call.body)?, &asked).await;
        }
        let list = ListParams::default().labels(labels::APP);
        let (pods, _) = self.pods(list).await.map_err(|error| Failure::broken(no_look(&error)))?;
        if pods.is_empty() {
            return Err(Failure::broken("Internal error, no component pods found".to_owned()));
        }
        asked.all(what, &pods).await?;
        Ok(empty_response(StatusCode::OK))
    }

    async fn dump(&self, wanted: &Wanted, asked: &Asked<'_>) -> Result<Response<Body>, Failure> {
        let mut list = wanted.list();
        let (pods, rest) = loop {
            let found = self.pods(list.clone()).await;
            let (pods, rest) = found.map_err(|error| Failure::bad_request(no_look(&error)))?;
            // A page without any component is not the end.
            if !pods.is_empty() || rest.is_empty() {
                break (pods, rest);
            }
            list = list.continue_token(&rest);
        };
        if pods.is_empty() {
            return Ok(empty_response(StatusCode::NO_CONTENT));
        }
        let answers = asked.all(Profiler::Dump, &pods).await?;
        let mut results = json!({ "componentResults": results(answers)? });
        if !rest.is_empty() {
            results["continue"] = rest.into();
        }
        Ok(json_response(StatusCode::OK, &results))
    }

    /// The components among a page of pods, and how to go on.
    async fn pods(&self, list: ListParams) -> kube::Result<(Vec<Pod>, String)> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let page = api.list(&list).await?;
        let rest = page.metadata.continue_.unwrap_or_default();
        Ok((page.items.into_iter().filter(answers).collect(), rest))
    }
}

fn no_look(error: &kube::Error) -> String {
    format!("Internal error while looking up component pods for profiling: {error}")
}

/// The answers of pods, as clients read them.
fn results(answers: Vec<(String, Bytes)>) -> Result<BTreeMap<String, Value>, Failure> {
    let read = |(pod, answer): (String, Bytes)| match serde_json::from_slice(&answer) {
        Ok(result) => Ok((pod, result)),
        Err(error) => Err(encountered(&format!("the profile of pod {pod} cannot be read: {error}"))),
    };
    answers.into_iter().map(read).collect()
}

fn encountered(why: &str) -> Failure {
    Failure::broken(format!("Internal error encountered: {why}"))
}

/// How components are reached and believed.
struct Asked<'a> {
    namespace: &'a str,
    port: u16,
    authorities: &'a watch::Receiver<String>,
    externally_managed: bool,
}

impl Asked<'_> {
    /// Asks all pods at once; the answers, or the first failure.
    async fn all(&self, what: Profiler, pods: &[Pod]) -> Result<Vec<(String, Bytes)>, Failure> {
        let answers = try_join_all(pods.iter().map(|pod| self.one(what, pod))).await;
        answers.map_err(|error| encountered(&error))
    }

    async fn one(&self, what: Profiler, pod: &Pod) -> Result<(String, Bytes), String> {
        let name = pod.name_any();
        tracing::info!(pod = name, "profiler: {}", what.path());
        let ip = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).unwrap_or_default();
        let ip: IpAddr = ip.parse().map_err(|_| format!("pod {name} has no address yet"))?;
        let address = SocketAddr::new(ip, self.port);
        let answer = timeout(PATIENCE, self.ask(what, pod, address)).await;
        let (code, body) = answer
            .map_err(|_| format!("pod {name} did not answer within {PATIENCE:?}"))?
            .map_err(|error| format!("pod {name} ({address}): {error:#}"))?;
        if code != StatusCode::OK {
            return Err(what.refused_by(code.as_u16(), address, &name));
        }
        Ok((name, body))
    }

    async fn ask(
        &self,
        what: Profiler,
        pod: &Pod,
        address: SocketAddr,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let connector = TlsConnector::from(self.believing(component(pod).unwrap_or_default())?);
        let stream = TcpStream::connect(address).await?;
        let stream = connector.connect(ServerName::IpAddress(address.ip().into()), stream).await?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = axum::http::Uri::from_static(what.path());
        request.headers_mut().insert(HOST, HeaderValue::from_static("component"));
        let exchange = async move {
            let response = sender.send_request(request).await?;
            let code = response.status();
            anyhow::Ok((code, to_bytes(Body::new(response.into_body()), LARGEST).await?))
        };
        // The connection ends with its sender; what is wrong with it, the exchange says as well.
        tokio::join!(exchange, connection).0
    }

    /// Trusts the pods of a component, and shows nothing of its own: virt-api itself would not know what we have.
    fn believing(&self, component: &str) -> anyhow::Result<Arc<ClientConfig>> {
        let name = (!self.externally_managed).then(|| certificate_name(component, self.namespace));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Component::new(&self.authorities.borrow(), name, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        Ok(Arc::new(builder.with_no_client_auth()))
    }
}

#[cfg(test)]
mod tests;
