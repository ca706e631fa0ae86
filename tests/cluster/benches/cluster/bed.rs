//! A cluster with the system as it is shipped, one of each component.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Config, Resource};
use serde_json::{Value, json};
use xtask::cluster::node::config::PAUSE_IMAGE;
use xtask::cluster::{Cluster, Options};
use xtask::images::{self, Profile};
use xtask::install;

/// Its name; `cargo xtask cluster down bench` ends it.
const NAME: &str = "bench";

/// Where measurements are taken.
pub struct Bed {
    pub cluster: Cluster,
    pub client: Client,
}

impl Bed {
    /// Starts it, or finds it.
    pub async fn up() -> Result<Self> {
        let images = images::build(Profile::Release, None, None, images::REGISTRY)?;
        let cluster = Cluster::up(&Options::with_nodes(NAME, 2))?;
        install::install(&cluster, &images, 1)?;
        let path = cluster.kubeconfig();
        let file = Kubeconfig::read_from(&path).with_context(|| format!("read {}", path.display()))?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        config.proxy_url = None;
        Ok(Self { cluster, client: Client::try_from(config)? })
    }

    /// A new namespace, in which pods can be made.
    pub async fn namespace(&self, name: &str) -> Result<String> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let object = json!({"metadata": {"generateName": format!("{name}-")}});
        let made = namespaces.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        let name = made.metadata.name.context("a namespace without name")?;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &name);
        while accounts.get_opt("default").await?.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(name)
    }

    /// Objects of a kind in a namespace.
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The pod of a component.
    pub async fn component(&self, name: &str) -> Result<Pod> {
        let chosen = ListParams::default().labels(&format!("kubevirt.io={name}"));
        let pods = self.api::<Pod>(install::NAMESPACE).list(&chosen).await?;
        pods.items.into_iter().next().with_context(|| format!("no {name} runs"))
    }
}

/// A pod that does nothing, of an image that every node has.
pub fn bare_pod(name: &str) -> Result<Pod> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "one", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}],
        },
    }))?)
}

/// An instance without disks, whose firmware soon has nothing to do.
pub fn instance(name: &str) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            // So little that two nodes of two CPUs have room for all.
            "domain": {"memory": {"guest": "64Mi"}, "devices": {}, "resources": {"requests": {"cpu": "10m"}}},
        },
    })
}
