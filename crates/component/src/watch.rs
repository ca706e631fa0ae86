//! Keeps a store in line with the API server, and tells queues what changed.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::cutting::cutting;
use crate::key::NamespacedName;
use crate::queue::Queue;
use crate::readable::Readable;
use crate::store::{Change, IndexOf, State, Store};
use crate::unread::{Managers, Nothing, Unread};

/// After this time every object is looked at once more, whether it changed or not: it mends what a mistake of ours,
/// or a change outside the cluster, left behind.
const RESYNC: Duration = Duration::from_secs(3600);

/// How often to ask for a kind that the cluster does not have.
const NOT_SERVED: Duration = Duration::from_secs(10);

/// An object of a watch, whose text was cut when it arrived.
type Watched<K> = Readable<K, Nothing>;

type Listener<K> = Box<dyn Fn(&Change<'_, K>) + Send + Sync>;

/// What is to be watched, and who wants to hear of it.
pub struct Watch<K> {
    api: Api<Watched<K>>,
    selectors: watcher::Config,
    optional: bool,
    indexes: Vec<(&'static str, IndexOf<K>)>,
    trim: Option<fn(&mut K)>,
    listeners: Vec<Listener<K>>,
    dependents: Vec<Queue>,
}

impl<K> Watch<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    /// Watches the whole cluster.
    pub fn all(client: Client) -> Self {
        Self::all_without::<Managers>(client)
    }

    /// Watches the whole cluster, and reads nothing of what `U` names.
    pub fn all_without<U: Unread>(client: Client) -> Self {
        Self::of(Api::all(cutting::<U>(client)))
    }

    /// Watches one namespace.
    pub fn within(client: Client, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        Self::of(Api::namespaced(cutting::<Managers>(client), namespace))
    }

    fn of(api: Api<Watched<K>>) -> Self {
        Self {
            api,
            selectors: watcher::Config::default().any_semantic(),
            optional: false,
            indexes: Vec::new(),
            trim: None,
            listeners: Vec::new(),
            dependents: Vec::new(),
        }
    }

    /// Only objects with these labels.
    pub fn labels(mut self, selector: &str) -> Self {
        self.selectors = self.selectors.labels(selector);
        self
    }

    /// Only objects with these fields.
    pub fn fields(mut self, selector: &str) -> Self {
        self.selectors = self.selectors.fields(selector);
        self
    }

    /// The kind may be missing in the cluster, now or later.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Objects shall be found by these words, too.
    pub fn index(mut self, name: &'static str, of: IndexOf<K>) -> Self {
        self.indexes.push((name, of));
        self
    }

    /// Drops what nobody reads before an object is kept.
    pub fn trim(mut self, trim: fn(&mut K)) -> Self {
        self.trim = Some(trim);
        self
    }

    /// Puts into the queue what a change concerns.
    pub fn feeds(
        self,
        queue: &Queue,
        keys: impl Fn(&Change<'_, K>) -> Vec<NamespacedName> + Send + Sync + 'static,
    ) -> Self {
        self.passes_on(queue, Queue::add, keys)
    }

    /// Has what a change concerns tried again if it failed, as it does while something of this kind is missing.
    pub fn retries(
        self,
        queue: &Queue,
        keys: impl Fn(&Change<'_, K>) -> Vec<NamespacedName> + Send + Sync + 'static,
    ) -> Self {
        self.passes_on(queue, Queue::retry, keys)
    }

    /// Once the kind can be followed after it could not be, all that failed in the queue is tried again, too: it may have
    /// failed for that, and nothing else tells it so.
    fn passes_on(
        mut self,
        queue: &Queue,
        how: fn(&Queue, NamespacedName),
        keys: impl Fn(&Change<'_, K>) -> Vec<NamespacedName> + Send + Sync + 'static,
    ) -> Self {
        self.dependents.push(queue.clone());
        let queue = queue.clone();
        self.tells(move |change| {
            for key in keys(change) {
                how(&queue, key);
            }
        })
    }

    /// Calls the function for every change, which must be quick.
    pub fn tells(mut self, listener: impl Fn(&Change<'_, K>) + Send + Sync + 'static) -> Self {
        self.listeners.push(Box::new(listener));
        self
    }

    /// Begins to watch, until told to stop.
    pub fn start(self, stop: &CancellationToken) -> Store<K> {
        let (store, state) = Store::new(self.indexes);
        let follower = Follower {
            store: store.clone(),
            state,
            optional: self.optional,
            trim: self.trim,
            listeners: self.listeners,
            dependents: self.dependents,
            interrupted: false,
            listed: Listed::default(),
        };
        let stop = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = follower.follow(self.api, self.selectors) => {}
            }
        });
        store
    }
}

struct Follower<K> {
    store: Store<K>,
    state: watch::Sender<State>,
    optional: bool,
    trim: Option<fn(&mut K)>,
    listeners: Vec<Listener<K>>,
    /// Whose work may fail while the kind cannot be followed.
    dependents: Vec<Queue>,
    /// Whether the kind could not be followed, since the last thing that was heard.
    interrupted: bool,
    /// What a list that is under way has brought so far.
    listed: Listed<K>,
}

struct Listed<K> {
    objects: HashMap<NamespacedName, Arc<K>>,
    unreadable: HashSet<NamespacedName>,
}

impl<K> Default for Listed<K> {
    fn default() -> Self {
        Self { objects: HashMap::new(), unreadable: HashSet::new() }
    }
}

impl<K> Follower<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    async fn follow(mut self, api: Api<Watched<K>>, selectors: watcher::Config) {
        let begin = || watcher(api.clone(), selectors.clone()).default_backoff();
        let mut events = pin!(begin());
        let mut resync = next_resync();
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(event)) => self.take_in(event),
                    Some(Err(error)) if self.optional && is_unknown_kind(&error) => {
                        self.do_without();
                        sleep(NOT_SERVED).await;
                        // From the beginning, so that the kind is listed when it comes, or comes back.
                        events.set(begin());
                    }
                    Some(Err(error)) => {
                        tracing::warn!(kind = %K::kind(&()), %error, "the watch is interrupted");
                        self.interrupted = true;
                    }
                    None => return,
                },
                () = sleep_until(resync) => {
                    self.tell_all();
                    resync = next_resync();
                }
            }
        }
    }

    fn take_in(&mut self, event: watcher::Event<Watched<K>>) {
        match event {
            watcher::Event::Init => return self.listed = Listed::default(),
            watcher::Event::InitApply(object) => return self.list(object),
            watcher::Event::InitDone => self.replace_all(),
            watcher::Event::Apply(object) => match self.decoded(object) {
                Ok(object) => self.put(Arc::new(object)),
                Err(name) => self.tell_of_end(self.store.lose(&name)),
            },
            watcher::Event::Delete(object) => self.tell_of_end(self.store.take(&NamespacedName::of(&object))),
        }
        if std::mem::take(&mut self.interrupted) {
            self.dependents.iter().for_each(Queue::retry_all);
        }
    }

    fn list(&mut self, object: Watched<K>) {
        match self.decoded(object) {
            Ok(object) => {
                self.listed.objects.insert(NamespacedName::of(&object), Arc::new(object));
            }
            Err(name) => {
                self.listed.unreadable.insert(name);
            }
        }
    }

    fn replace_all(&mut self) {
        let Listed { objects, unreadable } = std::mem::take(&mut self.listed);
        // Listeners hear of the changes only when all of them can be seen.
        let known = self.store.names().into_iter();
        let gone: Vec<_> =
            known.filter(|name| !objects.contains_key(name) && !unreadable.contains(name)).collect();
        let mut changes = Vec::new();
        for object in objects.into_values() {
            let old = self.store.put(object.clone());
            if !same_version(old.as_deref(), &object) {
                changes.push((old, Some(object)));
            }
        }
        changes.extend(unreadable.iter().map(|name| (self.store.lose(name), None)));
        changes.extend(gone.iter().map(|name| (self.store.take(name), None)));
        self.state.send_replace(State::Following);
        for (old, new) in &changes {
            self.tell(&Change { old: old.as_ref(), new: new.as_ref() });
        }
    }

    fn put(&self, object: Arc<K>) {
        let old = self.store.put(object.clone());
        self.tell(&Change { old: old.as_ref(), new: Some(&object) });
    }

    /// An object is not there any more, or cannot be read.
    fn tell_of_end(&self, old: Option<Arc<K>>) {
        if let Some(old) = old {
            self.tell(&Change { old: Some(&old), new: None });
        }
    }

    fn tell(&self, change: &Change<'_, K>) {
        for listener in &self.listeners {
            listener(change);
        }
    }

    fn tell_all(&self) {
        for object in self.store.all() {
            self.tell(&Change { old: Some(&object), new: Some(&object) });
        }
    }

    /// The object without what nobody reads, or the name of one that cannot be read.
    fn decoded(&self, object: Watched<K>) -> Result<K, NamespacedName> {
        match object.0 {
            Ok(mut object) => {
                if let Some(trim) = self.trim {
                    trim(&mut object);
                }
                Ok(object)
            }
            Err(broken) => {
                let ObjectMeta { namespace, name, .. } = broken.metadata;
                let name = NamespacedName::new(namespace.unwrap_or_default(), name.unwrap_or_default());
                tracing::warn!(kind = %K::kind(&()), %name, error = broken.error, "left out what cannot be read");
                Err(name)
            }
        }
    }

    fn do_without(&mut self) {
        self.interrupted = true;
        if self.state.send_replace(State::NotServed) != State::NotServed {
            tracing::info!(kind = %K::kind(&()), "the cluster does not have this kind");
            for name in self.store.names() {
                self.tell_of_end(self.store.take(&name));
            }
        }
    }
}

fn is_unknown_kind(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(source) | watcher::Error::WatchStartFailed(source)) = error else {
        return false;
    };
    matches!(source, kube::Error::Api(status) if status.code == 404)
}

fn same_version<K: Resource>(old: Option<&K>, new: &K) -> bool {
    let version = new.meta().resource_version.as_deref();
    version.is_some() && old.is_some_and(|old| old.meta().resource_version.as_deref() == version)
}

/// Not all components, nor all kinds, at the same moment.
fn next_resync() -> Instant {
    Instant::now() + RESYNC.mul_f64(1.0 + fastrand::f64() / 4.0)
}

#[cfg(test)]
mod tests;
