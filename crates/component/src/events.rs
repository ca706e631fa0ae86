//! Tells users, as events on their objects, what happened.

mod told;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Patch;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::patch;
use told::{Say, Told};

/// So many events may wait for a slow API server; more are lost, for nothing may wait for an event.
const BACKLOG: usize = 1000;

/// Whether all is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It is.
    Normal,
    /// Somebody should have a look.
    Warning,
}

/// Sends events in the background, in the order in which they happened. Clones share the way.
#[derive(Clone)]
pub struct Recorder {
    way: mpsc::Sender<Happening>,
    reporter: &'static str,
}

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Happening {
    reporter: &'static str,
    object: Named,
    kind: Kind,
    reason: String,
    message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Named {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: Option<String>,
}

impl Recorder {
    /// Speaks as the component of this name.
    pub fn new(client: Client, reporter: &'static str) -> Self {
        let (way, receiver) = mpsc::channel(BACKLOG);
        tokio::spawn(send_all(client, receiver));
        Self { way, reporter }
    }

    /// Speaks as another component, on the same way.
    pub fn reporting_as(&self, reporter: &'static str) -> Self {
        Self { way: self.way.clone(), reporter }
    }

    /// Tells what happened to an object. What is said again is counted, not repeated.
    pub fn event<K>(&self, object: &K, kind: Kind, reason: &str, message: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        let object = Named {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespace: object.namespace(),
            name: object.name_any(),
            uid: object.uid(),
        };
        let (reporter, reason, message) = (self.reporter, reason.to_owned(), message.into());
        if let Err(lost) = self.way.try_send(Happening { reporter, object, kind, reason, message }) {
            tracing::warn!(%lost, "an event is lost");
        }
    }
}

async fn send_all(client: Client, mut happenings: mpsc::Receiver<Happening>) {
    let mut told = Told::default();
    while let Some(happening) = happenings.recv().await {
        let namespace = happening.object.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let events = Api::<Event>::namespaced(client.clone(), &namespace);
        let outcome = match told.hear(&happening, Instant::now()) {
            Say::Nothing => continue,
            Say::New => announce(&events, &happening)
                .await
                .map(|name| told.announced(happening, name, Instant::now())),
            Say::Again { name, count } => count_again(&events, &name, count).await,
        };
        if let Err(error) = outcome {
            // The object, or its whole namespace, may be gone.
            tracing::debug!(%error, "an event could not be told");
        }
    }
}

async fn announce(events: &Api<Event>, happening: &Happening) -> kube::Result<String> {
    let now = jiff::Timestamp::now();
    let (named, component) = (&happening.object, happening.reporter.to_owned());
    let mut event = Event {
        count: Some(1),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        message: Some(happening.message.clone()),
        reason: Some(happening.reason.clone()),
        reporting_component: Some(component.clone()),
        source: Some(EventSource { component: Some(component), host: None }),
        type_: Some(format!("{:?}", happening.kind)),
        ..Event::default()
    };
    event.involved_object = ObjectReference {
        api_version: Some(named.api_version.clone()),
        kind: Some(named.kind.clone()),
        namespace: named.namespace.clone(),
        name: Some(named.name.clone()),
        uid: named.uid.clone(),
        ..ObjectReference::default()
    };
    let name = format!("{}.{:x}", named.name, now.as_nanosecond());
    event.metadata.name = Some(name.clone());
    patch::create_unread(events, &event).await.map(|()| name)
}

async fn count_again(events: &Api<Event>, name: &str, count: i32) -> kube::Result<()> {
    let patch = json!({"count": count, "lastTimestamp": Time(jiff::Timestamp::now())});
    patch::overwrite(events, name, &Patch::Merge(patch)).await
}
