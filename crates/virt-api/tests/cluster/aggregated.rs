//! A virt-api that the API server's aggregator knows, a handler beside it, and ways to ask both.

use std::fs;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body as ServerBody;
use axum::extract::Request as ServerRequest;
use axum::response::Response as ServerResponse;
use k8s_openapi::ByteString;
use kube::client::Body;
use kube::{Api, Client};
use kubevirt_component::serve::Server as Https;
use kubevirt_component::tls::{Authorities, Clients, Files, Policy, Tls};
use kubevirt_streams::{Code, Farewell, Offer, Stream, Upgraded, accept};
use rcgen::ExtendedKeyUsagePurpose;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::fixture::Server;

/// The namespace of the Service, which all tests share: there is only one aggregator.
const NAMESPACE: &str = "virt-api-aggregated";
const GROUPS: [(&str, [&str; 2]); 2] = [
    ("subresources.kubevirt.io", ["v1", "v1alpha3"]),
    ("subresources.template.kubevirt.io", ["v1alpha1", "v1beta1"]),
];

/// How the handler's streams end.
pub const TAKEN_OVER: Farewell = Farewell::new(Code::POLICY, "somebody else took over");

/// What the API server answered.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or(&self.body).to_owned()
    }
}

/// Tells the aggregator of a virt-api, and waits until it passes requests on.
pub async fn register(server: &Server<'_>) -> Result<()> {
    let apply = async |object: Value| {
        server.test.cluster().kubectl_with_input(
            &["apply", "--server-side", "--force-conflicts", "-f", "-"],
            &object.to_string(),
        )
    };
    apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } })).await?;
    // The API server is on this machine, and so is the server.
    apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "virt-api", "namespace": NAMESPACE },
        "spec": { "type": "ExternalName", "externalName": "localhost" },
    }))
    .await?;
    let authorities: String = server.authorities.iter().map(|authority| authority.pem.as_str()).collect();
    for (group, version) in versions() {
        let service = json!({ "namespace": NAMESPACE, "name": "virt-api", "port": server.address.port() });
        apply(json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": { "name": format!("{version}.{group}") },
            "spec": {
                "group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 15,
                "service": service, "caBundle": ByteString(authorities.clone().into_bytes()),
            },
        }))
        .await?;
    }
    for (group, version) in versions() {
        let path = format!("/apis/{group}/{version}");
        server
            .until("the aggregator passes requests on", async || Ok(get(server, &path).await?.code == 200))
            .await?;
    }
    Ok(())
}

/// Forgets it.
pub async fn unregister(server: &Server<'_>) -> Result<()> {
    for (group, version) in versions() {
        server.test.cluster().kubectl(&[
            "delete",
            "--ignore-not-found",
            "apiservice",
            &format!("{version}.{group}"),
        ])?;
    }
    Ok(())
}

fn versions() -> impl Iterator<Item = (&'static str, &'static str)> {
    GROUPS.into_iter().flat_map(|(group, versions)| versions.into_iter().map(move |version| (group, version)))
}

/// The path of a subresource in the namespace of the test.
pub fn path(server: &Server<'_>, rest: &str) -> String {
    format!("/apis/subresources.kubevirt.io/v1/namespaces/{}/{rest}", server.test.namespace())
}

pub async fn get(server: &Server<'_>, path: &str) -> Result<Answer> {
    ask(&server.plain, "GET", path, &Value::Null).await
}

/// A PUT on a subresource in the namespace of the test, through the aggregator.
pub async fn put(server: &Server<'_>, rest: &str, body: &Value) -> Result<Answer> {
    ask(&server.plain, "PUT", &path(server, rest), body).await
}

pub async fn ask(client: &Client, method: &str, path: &str, body: &Value) -> Result<Answer> {
    let text = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request =
        axum::http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    answer(client, request.body(Body::from(text))?).await
}

pub async fn answer(client: &Client, request: axum::http::Request<Body>) -> Result<Answer> {
    let response = client.send(request).await?;
    let code = response.status().as_u16();
    let body = axum::body::to_bytes(ServerBody::new(response.into_body()), usize::MAX).await?;
    Ok(Answer { code, body: String::from_utf8_lossy(&body).into_owned() })
}

/// Opens a stream through the aggregator.
pub async fn open(server: &Server<'_>, rest: &str) -> Result<Stream<Upgraded>> {
    let mut request = axum::http::Request::get(path(server, rest)).body(Body::empty())?;
    let offer = Offer::add_to(request.headers_mut());
    let response = server.plain.send(request).await?;
    anyhow::ensure!(response.status() == 101, "{rest}: {}", response.status());
    Ok(offer.stream(response).await?)
}

/// A handler of the node `here`, which notes what it is asked for.
pub struct Handler {
    asked: Arc<Mutex<Vec<String>>>,
    _stop: DropGuard,
}

impl Handler {
    pub async fn start(server: &Server<'_>) -> Result<Self> {
        let authority = &server.authorities[0];
        let write = |name: &str, pair: (String, String)| -> Result<Files> {
            let file = |end: &str| server.mount.folder().join(format!("{name}.{end}"));
            fs::write(file("crt"), pair.0)?;
            fs::write(file("key"), pair.1)?;
            Ok(Files { certificate: file("crt"), key: file("key") })
        };
        let client =
            authority.issue("kubevirt.io:system:client:virt-handler", ExtendedKeyUsagePurpose::ClientAuth);
        write("handler", client)?;
        let own =
            authority.issue("kubevirt.io:system:node:virt-handler", ExtendedKeyUsagePurpose::ServerAuth);
        let files = write("handler-server", own)?;
        let (_, authorities) = watch::channel(authority.pem.clone());
        let clients = Clients { authorities: Authorities::Live(authorities), required: true };
        let stop = CancellationToken::new();
        let tls = Tls::follow(files, Some(clients), watch::channel(Policy::default()).1, &stop)?;
        let listener = Https::bind(([127, 0, 0, 1], server.handler_port).into(), tls).await?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (notes, ended) = (asked.clone(), stop.clone());
        tokio::spawn(async move {
            let answer = move |request: ServerRequest| respond(notes.clone(), request);
            listener.serve(Router::new().fallback(answer), &ended).await;
        });
        server
            .test
            .apply(&json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "kubevirt-ca" },
                "data": { "ca-bundle": authority.pem },
            }))
            .await?;
        pod(server, "virt-handler-x", json!({ "kubevirt.io": "virt-handler" })).await?;
        Ok(Self { asked, _stop: stop.drop_guard() })
    }

    /// What it was asked for since the last time.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// A pod on the node `here` with the address of this machine.
pub async fn pod(server: &Server<'_>, name: &str, labels: Value) -> Result<()> {
    server
        .test
        .apply(&json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "labels": labels },
            "spec": { "nodeName": "here", "containers": [{ "name": "c", "image": "i" }] },
        }))
        .await?;
    let status = json!({ "status": {
        "phase": "Running", "podIP": "127.0.0.1", "podIPs": [{ "ip": "127.0.0.1" }],
        "conditions": [{ "type": "Ready", "status": "True" }],
    } });
    let api: Api<k8s_openapi::api::core::v1::Pod> = server.test.api();
    let patch = kube::api::Patch::Merge(status);
    api.patch_status(name, &Default::default(), &patch).await.context("status of a pod")?;
    Ok(())
}

async fn respond(notes: Arc<Mutex<Vec<String>>>, mut request: ServerRequest) -> ServerResponse {
    let path = request.uri().path_and_query().unwrap().as_str().to_owned();
    let line = format!("{} {}", request.method(), path.rsplit("virtualmachineinstances/").next().unwrap());
    if let Ok((response, accepted)) = accept(&mut request) {
        notes.lock().unwrap().push(line);
        tokio::spawn(async move {
            let mut stream = accepted.stream().await.unwrap();
            let mut bytes = [0; 5];
            if stream.read_exact(&mut bytes).await.is_ok() {
                stream.write_all(&bytes).await.unwrap();
                stream.end(TAKEN_OVER).await.unwrap();
            }
        });
        return response.map(|()| ServerBody::empty());
    }
    let body = axum::body::to_bytes(request.into_body(), 10_000).await.unwrap();
    notes.lock().unwrap().push(format!("{line} {}", String::from_utf8_lossy(&body)));
    let answer = if path.ends_with("guestosinfo") { r#"{"guestAgentVersion":"7"}"# } else { "" };
    let code = if path.ends_with("softreboot") { 500 } else { 202 };
    axum::http::Response::builder().status(code).body(ServerBody::from(answer)).unwrap()
}
