//! One test: its namespace and what it can do in it.

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource};
use xtask::cluster::Cluster;

/// A test that runs on a cluster, in a namespace of its own.
pub struct Test {
    cluster: Cluster,
    client: Client,
    namespace: String,
}

impl Test {
    pub(crate) async fn start(cluster: &Cluster, name: &str) -> Result<Self> {
        let test = Self {
            cluster: cluster.clone(),
            client: connect(&cluster.kubeconfig()).await?,
            namespace: format!("{name}-{:x}", SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis()),
        };
        let metadata = ObjectMeta { name: Some(test.namespace.clone()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        Api::all(test.client()).create(&PostParams::default(), &namespace).await?;
        if !cluster.nodes().is_empty() {
            // No pod is accepted before it is there.
            test.wait(&test.api::<ServiceAccount>(), "default", "is there", |_| true).await?;
        }
        Ok(test)
    }

    pub(crate) async fn end(&self) -> Result<()> {
        if std::env::var_os("TEST_KIT_KEEP").is_none() {
            let namespaces: Api<Namespace> = Api::all(self.client());
            namespaces
                .delete(&self.namespace, &DeleteParams::background())
                .await
                .context("delete namespace")?;
        }
        Ok(())
    }

    /// The test's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The cluster. A test that stops a part of it runs by [`run_alone`](crate::Shared::run_alone).
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A client that may do everything.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The objects of a kind in the test's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Runs kubectl in the test's namespace and returns what it prints.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.cluster.kubectl(&[&["--namespace", self.namespace.as_str()], arguments].concat())
    }

    /// Runs a line of shell on a node, in its namespaces, and returns what it prints.
    pub fn run_on(&self, node: &str, line: &str) -> Result<String> {
        let enter = self.cluster.enter_node(node)?;
        let output = Command::new(&enter[0]).args(&enter[1..]).args(["sh", "-c", line]).output()?;
        let (said, complaint) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "{line} on {node}: {} {said}{complaint}", output.status);
        Ok(said.into_owned())
    }
}

/// A client of the cluster, as whom the kubeconfig says.
pub(crate) async fn connect(path: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(path).with_context(|| format!("read {}", path.display()))?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    // The cluster is on this machine, whatever the environment says of proxies.
    config.proxy_url = None;
    Ok(Client::try_from(config)?)
}
