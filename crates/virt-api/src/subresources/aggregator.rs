//! Follows how the aggregator shows who it is, and whom handlers' certificates are from.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kubevirt_api::names::components::secrets::CA_BUNDLE;
use kubevirt_api::names::external::kubernetes::{
    AGGREGATOR_AUTHENTICATION as NAME, SYSTEM_NAMESPACE as NAMESPACE,
};
use kubevirt_component::{Store, Watch};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::access::Aggregator;

/// How the aggregator is known, always the latest.
pub struct Followed {
    store: Store<ConfigMap>,
    current: watch::Receiver<Arc<Aggregator>>,
    authorities: watch::Receiver<String>,
}

impl Followed {
    /// Begins to follow.
    pub fn begin(client: Client, stop: &CancellationToken) -> Self {
        let (sender, current) = watch::channel(Arc::new(Aggregator::default()));
        let (pem, authorities) = watch::channel(String::new());
        let tell = move |map: Option<&ConfigMap>| {
            // While there is none, the last one holds: an API server that starts anew writes it again.
            let Some(data) = map.and_then(|map| map.data.as_ref()) else { return };
            let aggregator = Aggregator::of(data);
            if aggregator.authorities.is_empty() {
                tracing::warn!("{NAMESPACE}/{NAME} has no requestheader-client-ca-file: nobody can be known");
            }
            pem.send_if_modified(|known| replaced(known, aggregator.authorities.clone()));
            sender.send_replace(Arc::new(aggregator));
        };
        let store = follow(client, NAMESPACE, NAME, tell, stop);
        Self { store, current, authorities }
    }

    /// How it is known now.
    pub fn now(&self) -> Arc<Aggregator> {
        self.current.borrow().clone()
    }

    /// Whom its certificate must be from.
    pub fn authorities(&self) -> watch::Receiver<String> {
        self.authorities.clone()
    }

    /// Waits until it is known.
    pub async fn ready(&self) {
        self.store.ready().await;
    }
}

/// The authorities of the installation, always the latest.
pub fn bundle(
    client: Client,
    namespace: &str,
    name: &str,
    stop: &CancellationToken,
) -> watch::Receiver<String> {
    let (sender, receiver) = watch::channel(String::new());
    let tell = move |map: Option<&ConfigMap>| {
        let bundle = map.and_then(|map| map.data.as_ref()?.get(CA_BUNDLE).cloned());
        if let Some(bundle) = bundle {
            sender.send_if_modified(|known| replaced(known, bundle));
        }
    };
    follow(client, namespace, name, tell, stop);
    receiver
}

fn replaced(known: &mut String, new: String) -> bool {
    let changed = *known != new;
    *known = new;
    changed
}

fn follow(
    client: Client,
    namespace: &str,
    name: &str,
    tell: impl Fn(Option<&ConfigMap>) + Send + Sync + 'static,
    stop: &CancellationToken,
) -> Store<ConfigMap> {
    Watch::<ConfigMap>::within(client, namespace)
        .fields(&format!("metadata.name={name}"))
        .tells(move |change| tell(change.new.map(|map| &**map)))
        .start(stop)
}
