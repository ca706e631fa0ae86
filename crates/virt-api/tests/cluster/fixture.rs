//! A virt-api of the test's own, and an API server that asks it.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use futures_util::FutureExt;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::DeleteParams;
use kube::client::Body;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use kube::core::params::PostParams;
use kube::{Api, Client};
use kubevirt_api::names::accounts;
use kubevirt_virt_api::Arguments;
use serde_json::{Value, json};
use test_kit::{API_SERVER, Test};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::certificates::{Authority, Mount};
use crate::hooks;

pub const PATIENCE: Duration = Duration::from_secs(90);

/// A running virt-api.
pub struct Server<'a> {
    pub test: &'a Test,
    pub address: SocketAddr,
    /// Where it expects handlers.
    pub handler_port: u16,
    pub mount: Mount,
    /// The authority of its first certificate, and another one that the API server believes, too.
    pub authorities: [Authority; 2],
    /// A client of the API server that takes no for an answer; others ask again.
    pub plain: Client,
    /// The same for one of our own components.
    pub controller: Client,
    stop: CancellationToken,
    task: JoinHandle<Result<std::process::ExitCode>>,
}

/// Runs a test on an API server that asks a virt-api about all objects of the test's namespace.
pub async fn with_server(name: &str, body: impl AsyncFnOnce(&Server<'_>) -> Result<()>) -> Result<()> {
    API_SERVER
        .run(name, async |test| {
            test.establish_crds().await?;
            let server = Server::start(test).await?;
            let run = async {
                server.register().await?;
                body(&server).await
            };
            let result = AssertUnwindSafe(run).catch_unwind().await;
            // Whatever happened: nothing of it is in a namespace.
            server.unregister().await?;
            result.unwrap_or_else(|panic| resume_unwind(panic))?;
            server.stop().await
        })
        .await
}

impl<'a> Server<'a> {
    async fn start(test: &'a Test) -> Result<Self> {
        let authorities = [Authority::new("first"), Authority::new("second")];
        let mount = Mount::new(test.namespace());
        mount.renew(&authorities[0]);
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let handler_port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let flags = [
            "virt-api".into(),
            "--listen=127.0.0.1".into(),
            format!("--port={}", address.port()),
            format!("--kubeconfig={}", kubeconfig(test, accounts::API, &mount)?.display()),
            format!("--install-namespace={}", test.namespace()),
            format!("--tls-cert-file={}", mount.certificate().display()),
            format!("--tls-key-file={}", mount.key().display()),
            format!("--console-server-port={handler_port}"),
            format!("--handler-cert-file={}", mount.folder().join("handler.crt").display()),
            format!("--handler-key-file={}", mount.folder().join("handler.key").display()),
        ];
        let plain = client(test.cluster().kubeconfig()).await?;
        let controller = client(kubeconfig(test, accounts::CONTROLLER, &mount)?).await?;
        let (arguments, stop) = (Arguments::try_parse_from(flags)?, CancellationToken::new());
        let task = tokio::spawn({
            let stop = stop.clone();
            async move { kubevirt_virt_api::serve(&arguments, &stop).await }
        });
        let server = Self { test, address, handler_port, mount, authorities, plain, controller, stop, task };
        server.until("it is ready", async || Ok(server.get("/readyz").await?.0 == 200)).await?;
        Ok(server)
    }

    /// Lets the API server ask it, and waits until it does.
    async fn register(&self) -> Result<()> {
        let namespace = self.test.namespace();
        let authorities = self.authorities.iter().map(|authority| authority.pem.as_str()).collect::<String>();
        for configuration in
            hooks::configurations(namespace, &self.address.to_string(), &authorities, namespace)
        {
            self.test.apply(&configuration).await?;
        }
        let object = |kind: &str, spec: Value| json!({ "apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": { "name": "probe" }, "spec": spec });
        let spec = json!({ "domain": { "memory": { "guest": "64Mi" }, "devices": {} } });
        let others = json!({ "selector": { "matchLabels": { "a": "b" } }, "template": { "spec": spec } });
        let (others, one) =
            (object("VirtualMachineInstanceReplicaSet", others), object("VirtualMachineInstance", spec));
        self.until("verdicts are asked for", async || self.dry_run(&others).await?.refused().map(|_| true))
            .await?;
        let filled = async || Ok(self.dry_run(&one).await?.accepted()?["status"]["phase"] == "Pending");
        self.until("defaults are asked for", filled).await
    }

    async fn unregister(&self) -> Result<()> {
        let (name, parameters) = (self.test.namespace(), DeleteParams::default());
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.test.client());
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.test.client());
        let deleted = mutating.delete(name, &parameters).await.err();
        let and_deleted = validating.delete(name, &parameters).await.err();
        match deleted.or(and_deleted) {
            Some(error) if !kubevirt_component::patch::is_gone(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn stop(self) -> Result<()> {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.context("the server ends")???;
        Ok(())
    }

    pub async fn until(&self, what: &str, condition: impl AsyncFn() -> Result<bool>) -> Result<()> {
        let begin = Instant::now();
        loop {
            let last = match condition().await {
                Ok(true) => return Ok(()),
                Ok(false) => String::new(),
                Err(error) => format!(": {error:#}"),
            };
            if begin.elapsed() > PATIENCE || self.task.is_finished() {
                bail!("waited in vain until {what}{last}");
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// A client of the server itself, which believes one authority.
    pub fn client(&self, authority: &Authority) -> Result<Client> {
        let mut config = Config::new(format!("https://{}", self.address).parse()?);
        config.root_cert = Some(vec![authority.der.clone()]);
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// What the server answers.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        self.send("GET", path, "", Vec::new()).await
    }

    pub async fn send(&self, method: &str, path: &str, kind: &str, body: Vec<u8>) -> Result<(u16, String)> {
        let client = self.client(&self.authorities[0])?;
        let request = axum::http::Request::builder().method(method).uri(path).header("content-type", kind);
        let response = client.send(request.body(Body::from(body))?).await?;
        let status = response.status().as_u16();
        let bytes = read(response.into_body()).await?;
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Creates an object.
    pub async fn create(&self, object: &Value) -> Result<Verdict> {
        self.post(object, false).await
    }

    /// What would come of the creation of an object.
    pub async fn dry_run(&self, object: &Value) -> Result<Verdict> {
        self.post(object, true).await
    }

    async fn post(&self, object: &Value, dry_run: bool) -> Result<Verdict> {
        let typed = serde_json::from_value(object.clone())?;
        let api = self.test.api_of(&typed).await?;
        let parameters = PostParams { dry_run, ..PostParams::default() };
        let request = Request::new(api.resource_url()).create(&parameters, serde_json::to_vec(object)?)?;
        Verdict::of(&self.plain, request).await
    }
}

/// A kubeconfig by which one of our own components is known, who may write what users may not.
fn kubeconfig(test: &Test, account: &str, mount: &Mount) -> Result<PathBuf> {
    let text = fs::read_to_string(test.cluster().kubeconfig())?;
    let mut config: Value = serde_saphyr::from_str(&text)?;
    let user = &mut config["users"][0]["user"];
    user["as"] = json!(format!("system:serviceaccount:{}:{account}", test.namespace()));
    user["as-groups"] = json!(["system:masters"]);
    let path = mount.folder().join(account);
    fs::write(&path, config.to_string())?;
    Ok(path)
}

async fn client(path: PathBuf) -> Result<Client> {
    let file = Kubeconfig::read_from(path)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.proxy_url = None;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

async fn read(body: Body) -> Result<axum::body::Bytes> {
    Ok(axum::body::to_bytes(axum::body::Body::new(body), usize::MAX).await?)
}

/// What the API server said.
#[derive(Debug)]
pub struct Verdict {
    pub status: u16,
    pub warnings: Vec<String>,
    pub body: Value,
}

impl Verdict {
    pub async fn of(client: &Client, request: axum::http::Request<Vec<u8>>) -> Result<Self> {
        let response = client.send(request.map(Body::from)).await?;
        let status = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect();
        let bytes = read(response.into_body()).await?;
        Ok(Self { status, warnings, body: serde_json::from_slice(&bytes)? })
    }

    /// The object as it was stored.
    pub fn accepted(self) -> Result<Value> {
        if self.status >= 300 {
            bail!("refused: {}", self.body["message"]);
        }
        Ok(self.body)
    }

    /// The fields that are wrong, and the sentence.
    pub fn refused(self) -> Result<(Vec<String>, String)> {
        if self.status != 422 {
            bail!("{}: {}", self.status, self.body);
        }
        let causes = self.body["details"]["causes"].as_array().cloned().unwrap_or_default();
        let fields =
            causes.iter().map(|cause| cause["field"].as_str().unwrap_or_default().to_owned()).collect();
        Ok((fields, self.body["message"].as_str().unwrap_or_default().to_owned()))
    }
}
