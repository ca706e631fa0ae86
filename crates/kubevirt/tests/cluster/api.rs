//! A virt-api in front of a handler's door, as a process of its own, and clients that the aggregator would be.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hyper::header::HeaderValue;
use kube::Api as Objects;
use kube::api::Patch;
use kubevirt_api::names::components::secrets;
use kubevirt_virt_operator::Certificates;
use kubevirt_virt_operator::certificates::Pair;
use serde_json::{Value, json};
use test_kit::Test;
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::{Child, Command};

use super::door::{Client, Door, free_address, secured, write};

/// The name that its certificate is for.
pub(crate) const SERVER: &str = "virt-api.kubevirt.svc";
/// The longest that it may take to get ready.
const PATIENCE: Duration = Duration::from_secs(180);
/// The node that everything is on.
const NODE: &str = "here";

/// A running virt-api, until it is dropped.
pub(crate) struct Api {
    pub(crate) address: SocketAddr,
    /// The certificate of the authority that it is known by.
    pub(crate) authority: String,
    /// By which the aggregator is known.
    aggregator: Pair,
    namespace: String,
    child: Child,
}

impl Api {
    /// Starts it in the test's namespace; `folder` is for its files.
    pub(crate) async fn start(test: &Test, door: &Door, folder: &Path) -> Result<Self> {
        test.establish_crds().await?;
        handler(test, &door.certificates).await?;
        let address = free_address();
        let files = |name: &str, secret: &str| write(folder, name, &door.certificates.issued[secret]);
        let (own, to_handlers) = (files("api", secrets::API), files("client", secrets::HANDLER_CLIENT));
        let shipped = std::env::var_os("KUBEVIRT_BINARY");
        let mut command = Command::new(shipped.unwrap_or_else(|| env!("CARGO_BIN_EXE_kubevirt").into()));
        command.args(["virt-api", "--listen=127.0.0.1", &format!("--port={}", address.port())]);
        command.arg("--kubeconfig").arg(test.cluster().kubeconfig());
        command.arg("--install-namespace").arg(test.namespace());
        command.arg("--tls-cert-file").arg(own.certificate).arg("--tls-key-file").arg(own.key);
        command.arg("--handler-cert-file").arg(to_handlers.certificate);
        command.arg("--handler-key-file").arg(to_handlers.key);
        command.arg(format!("--console-server-port={}", door.address.port()));
        let log = std::fs::File::create(folder.join("api.log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let pki = test.cluster().layout().certificates();
        let read = |name: &str| std::fs::read_to_string(pki.join(name)).context(name.to_owned());
        let aggregator =
            Pair { certificate: read("front-proxy-client.crt")?, key: read("front-proxy-client.key")? };
        let authority = door.certificates.authority.certificate.clone();
        let namespace = test.namespace().to_owned();
        let child = command.kill_on_drop(true).spawn().context("start virt-api")?;
        let api = Self { address, authority, aggregator, namespace, child };
        let began = Instant::now();
        while !api.is_ready().await {
            let log = || std::fs::read_to_string(folder.join("api.log")).unwrap_or_default();
            ensure!(began.elapsed() < PATIENCE, "virt-api does not get ready:\n{}", log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(api)
    }

    async fn is_ready(&self) -> bool {
        let Ok(stream) = TcpStream::connect(self.address).await else { return false };
        let Ok(mut client) = self.client_over(stream).await else { return false };
        client.ask("GET", "/readyz", "").await.is_ok_and(|(status, _)| status == 200)
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// The aggregator, on behalf of an administrator.
    pub(crate) async fn client(&self) -> Client {
        self.client_over(TcpStream::connect(self.address).await.unwrap()).await.unwrap()
    }

    /// The same with so little room that hardly anything is on its way.
    pub(crate) async fn narrow_client(&self) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        self.client_over(socket.connect(self.address).await.unwrap()).await.unwrap()
    }

    async fn client_over(&self, stream: TcpStream) -> Result<Client, String> {
        let stream = secured(stream, &self.authority, SERVER, Some(&self.aggregator)).await?;
        let mut client = Client::over(stream).await?;
        for (name, value) in [("x-remote-user", "admin"), ("x-remote-group", "system:masters")] {
            client.headers.insert(name, HeaderValue::from_static(value));
        }
        Ok(client)
    }

    /// The path of a subresource of an instance.
    pub(crate) fn path(&self, instance: &str, what: &str) -> String {
        let namespace = &self.namespace;
        format!(
            "/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/{instance}/{what}"
        )
    }
}

/// An instance that the API server believes to run behind the door.
pub(crate) async fn instance(test: &Test, name: &str) -> Result<()> {
    let own = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
        "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}},
        "status": {"phase": "Running", "nodeName": NODE},
    });
    test.apply(&own).await.map(drop)
}

/// The handler's pod, at the address of this machine, and whom its certificates are from.
async fn handler(test: &Test, certificates: &Certificates) -> Result<()> {
    let bundle = certificates.authority.certificate.clone();
    test.apply(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": secrets::CA},
        "data": {secrets::CA_BUNDLE: bundle},
    }))
    .await?;
    test.apply(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "virt-handler-x", "labels": {"kubevirt.io": "virt-handler"}},
        "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": "i"}]},
    }))
    .await?;
    let status: Value = json!({"status": {
        "phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    let pods: Objects<k8s_openapi::api::core::v1::Pod> = test.api();
    pods.patch_status("virt-handler-x", &Default::default(), &Patch::Merge(status)).await?;
    Ok(())
}
