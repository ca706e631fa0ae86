//! The cluster configuration, which follows the `KubeVirt` object without a restart.

use std::sync::Arc;

use futures_util::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use kubevirt_admission::ClusterConfig;
use kubevirt_api::kubevirt::KubeVirt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::limits::Limits;
use crate::role::Role;
use crate::tls::Policy;

/// What the installation is set to, always the latest that makes sense; cheap to clone.
#[derive(Clone)]
pub struct Configuration {
    config: watch::Receiver<Arc<ClusterConfig>>,
    known: CancellationToken,
}

impl Configuration {
    /// Follows the `KubeVirt` object of the namespace until `stop`. Returns when it is known what there is; where
    /// there is none, the defaults hold.
    pub async fn follow(client: Client, namespace: &str, stop: &CancellationToken) -> Self {
        let configuration = Self::begin(client, namespace, stop);
        stop.run_until_cancelled(configuration.ready()).await;
        configuration
    }

    /// Begins to follow; until it is [`ready`](Self::ready), the defaults hold.
    pub fn begin(client: Client, namespace: &str, stop: &CancellationToken) -> Self {
        let kind = ApiResource::erase::<KubeVirt>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &kind);
        let (sender, config) = watch::channel(Arc::default());
        let known = CancellationToken::new();
        let (task_stop, task_known) = (stop.clone(), known.clone());
        tokio::spawn(async move {
            task_stop.run_until_cancelled(watch_object(api, sender, &task_known)).await;
        });
        Self { config, known }
    }

    /// A configuration that stays as it is.
    pub fn fixed(config: ClusterConfig) -> Self {
        Self::told(watch::channel(Arc::new(config)).1)
    }

    /// Waits until it is known what the installation is set to.
    pub async fn ready(&self) {
        self.known.cancelled().await;
    }

    /// A configuration that somebody else follows.
    pub fn told(config: watch::Receiver<Arc<ClusterConfig>>) -> Self {
        let known = CancellationToken::new();
        known.cancel();
        Self { config, known }
    }

    /// What holds now.
    pub fn now(&self) -> Arc<ClusterConfig> {
        self.config.borrow().clone()
    }

    /// Waits until something else holds than when this was last called; forever if that can never be.
    pub async fn changed(&mut self) {
        if self.config.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Lets logs, limits and TLS of a component follow the configuration until `stop`. `verbosity` is what its flags
    /// ask for, `node` where it runs, if that matters.
    pub fn apply(
        &self,
        role: Role,
        verbosity: u32,
        node: Option<String>,
        limits: &Limits,
        stop: &CancellationToken,
    ) -> watch::Receiver<Policy> {
        let (mut configuration, limits, stop) = (self.clone(), limits.clone(), stop.clone());
        let (sender, receiver) = watch::channel(Policy::of(&self.now()));
        tokio::spawn(async move {
            stop.run_until_cancelled(async {
                loop {
                    let config = configuration.now();
                    kubevirt_logs::set_verbosity(
                        role.verbosity(&config, node.as_deref()).unwrap_or(verbosity),
                    );
                    limits.set(role.rate(&config));
                    let policy = Policy::of(&config);
                    sender.send_if_modified(|known| {
                        *known != policy && {
                            *known = policy;
                            true
                        }
                    });
                    configuration.changed().await;
                }
            })
            .await;
        });
        receiver
    }
}

async fn watch_object(
    api: Api<DynamicObject>,
    sender: watch::Sender<Arc<ClusterConfig>>,
    known: &CancellationToken,
) {
    let mut objects = Objects::default();
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let listed = matches!(event, Event::InitDone);
                objects.note(event);
                if let Some(config) = objects.changed() {
                    sender.send_replace(Arc::new(config));
                }
                if listed {
                    known.cancel();
                }
            }
            Err(error) => tracing::warn!("cannot watch KubeVirt objects: {error}"),
        }
    }
}

/// The `KubeVirt` objects of the namespace. There should be one.
#[derive(Default)]
struct Objects {
    all: Vec<DynamicObject>,
    listed: Vec<DynamicObject>,
    used: Option<serde_json::Value>,
}

impl Objects {
    fn note(&mut self, event: Event<DynamicObject>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => self.listed.push(object),
            Event::InitDone => self.all = std::mem::take(&mut self.listed),
            Event::Apply(object) => {
                self.all.retain(|other| other.name_any() != object.name_any());
                self.all.push(object);
            }
            Event::Delete(object) => self.all.retain(|other| other.name_any() != object.name_any()),
        }
    }

    /// The configuration, if it is another than the last one. What is broken or gone changes nothing.
    fn changed(&mut self) -> Option<ClusterConfig> {
        let oldest = self.all.iter().min_by_key(|object| (object.creation_timestamp(), object.name_any()))?;
        let mut value = serde_json::to_value(oldest).ok()?;
        // Only these count: most changes are of the status and of who made them.
        let data = value["metadata"].as_object_mut()?;
        data.retain(|field, _| ["name", "namespace", "annotations"].contains(&field.as_str()));
        let architecture = value["status"]["defaultArchitecture"].take();
        value["status"] = serde_json::json!({ "defaultArchitecture": architecture });
        if self.used.as_ref() == Some(&value) {
            return None;
        }
        let config = match serde_json::from_value::<KubeVirt>(value.clone()) {
            Ok(kubevirt) => Some(ClusterConfig::of(&kubevirt)),
            Err(error) => {
                tracing::error!(
                    "KubeVirt {} cannot be read, keeping the last one: {error}",
                    oldest.name_any()
                );
                None
            }
        };
        self.used = Some(value);
        config
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, created: &str, spec: Value) -> DynamicObject {
        let metadata = json!({ "name": name, "creationTimestamp": created });
        let kind =
            json!({ "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": metadata, "spec": spec });
        serde_json::from_value(kind).unwrap()
    }

    fn model(name: &str) -> Value {
        json!({ "configuration": { "cpuModel": name } })
    }

    /// The CPU model that is configured after each event; none where nothing changes.
    #[test]
    fn what_is_broken_or_gone_changes_nothing() {
        let old = "2024-01-01T00:00:00Z";
        let new = "2025-01-01T00:00:00Z";
        let mut objects = Objects::default();
        let mut after = |event| {
            objects.note(event);
            objects.changed().map(|config| config.cpu_model().unwrap_or_default().to_owned())
        };
        assert_eq!(after(Event::Init), None);
        assert_eq!(after(Event::InitDone), None);
        assert_eq!(after(Event::Apply(object("a", old, model("one")))), Some("one".into()));
        assert_eq!(after(Event::Apply(object("a", old, model("one")))), None);
        assert_eq!(after(Event::Apply(object("b", new, model("two")))), None);
        let broken = json!({ "configuration": { "cpuModel": [] } });
        assert_eq!(after(Event::Apply(object("a", old, broken))), None);
        assert_eq!(after(Event::Apply(object("a", old, model("three")))), Some("three".into()));
        assert_eq!(after(Event::Delete(object("a", old, model("three")))), Some("two".into()));
        assert_eq!(after(Event::Delete(object("b", new, model("two")))), None);
    }
}
