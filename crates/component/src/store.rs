//! The objects of a kind as they were last seen, found by name or by an index.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kube::Resource;
use tokio::sync::watch;

use crate::key::NamespacedName;

/// The words under which an index finds an object.
pub type IndexOf<K> = fn(&K) -> Vec<String>;

/// What happened to an object: it came, changed or went.
pub struct Change<'a, K> {
    /// As it was seen before.
    pub old: Option<&'a Arc<K>>,
    /// As it is seen now.
    pub new: Option<&'a Arc<K>>,
}

impl<'a, K> Change<'a, K> {
    /// The object as it was seen last.
    pub fn latest(&self) -> Option<&'a Arc<K>> {
        self.new.or(self.old)
    }
}

/// The objects of a kind as they were last seen. Clones share them.
pub struct Store<K> {
    shelves: Arc<RwLock<Shelves<K>>>,
    state: watch::Receiver<State>,
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self { shelves: self.shelves.clone(), state: self.state.clone() }
    }
}

/// How far a store has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The first list is still on its way.
    Starting,
    /// All objects were listed, and changes follow.
    Following,
    /// The API server does not know the kind.
    NotServed,
}

impl<K: Resource> Store<K> {
    pub(crate) fn new(indexes: Vec<(&'static str, IndexOf<K>)>) -> (Self, watch::Sender<State>) {
        let (sender, state) = watch::channel(State::Starting);
        let indexes = indexes.into_iter().map(|(name, of)| Index { name, of, names: HashMap::new() });
        let shelves =
            Shelves { objects: HashMap::new(), unreadable: HashSet::new(), indexes: indexes.collect() };
        (Self { shelves: Arc::new(RwLock::new(shelves)), state }, sender)
    }

    /// A store of these objects, which nothing changes.
    pub fn of(
        objects: impl IntoIterator<Item = K>,
        indexes: impl IntoIterator<Item = (&'static str, IndexOf<K>)>,
    ) -> Self {
        let (store, state) = Self::new(indexes.into_iter().collect());
        for object in objects {
            store.put(Arc::new(object));
        }
        // Nobody else holds the receiver yet; it keeps the value.
        state.send_replace(State::Following);
        store
    }

    /// The same with an object of this name that cannot be read.
    pub fn with_unreadable(self, name: NamespacedName) -> Self {
        self.lose(&name);
        self
    }

    /// The object of this name.
    pub fn get(&self, name: &NamespacedName) -> Option<Arc<K>> {
        self.read().objects.get(name).cloned()
    }

    /// Whether there is an object of this name that cannot be read. It is not among the others, for what it was like may be
    /// true no longer, but neither is it gone.
    pub fn is_unreadable(&self, name: &NamespacedName) -> bool {
        self.read().unreadable.contains(name)
    }

    /// All objects, in no order.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.read().objects.values().cloned().collect()
    }

    /// The objects that the index finds under the word, by name. An index that the store has not finds nothing.
    pub fn by(&self, index: &str, word: &str) -> Vec<Arc<K>> {
        let shelves = self.read();
        let names = shelves.indexes.iter().find(|it| it.name == index).and_then(|it| it.names.get(word));
        names.into_iter().flatten().filter_map(|name| shelves.objects.get(name).cloned()).collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the API server knows the kind, as far as was seen.
    pub fn served(&self) -> bool {
        *self.state.borrow() == State::Following
    }

    /// Waits until the first list is here, or until it is known that there is none.
    pub async fn ready(&self) {
        // The sender goes with the watch, and then nobody waits for it.
        let _ = self.state.clone().wait_for(|state| *state != State::Starting).await;
    }

    /// Puts an object in, and gives back the one that it replaces.
    pub(crate) fn put(&self, object: Arc<K>) -> Option<Arc<K>> {
        let name = NamespacedName::of(&*object);
        let mut shelves = self.write();
        shelves.unreadable.remove(&name);
        let old = shelves.objects.insert(name.clone(), object.clone());
        for index in &mut shelves.indexes {
            index.replace(&name, old.as_deref(), Some(&object));
        }
        old
    }

    /// Takes an object out.
    pub(crate) fn take(&self, name: &NamespacedName) -> Option<Arc<K>> {
        let mut shelves = self.write();
        shelves.unreadable.remove(name);
        shelves.take(name)
    }

    /// Takes an object out that is there but cannot be read any more.
    pub(crate) fn lose(&self, name: &NamespacedName) -> Option<Arc<K>> {
        let mut shelves = self.write();
        shelves.unreadable.insert(name.clone());
        shelves.take(name)
    }

    /// What all objects are called, readable or not.
    pub(crate) fn names(&self) -> Vec<NamespacedName> {
        let shelves = self.read();
        shelves.objects.keys().chain(&shelves.unreadable).cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Shelves<K>> {
        // A panic while the lock was held cannot leave an object half written.
        self.shelves.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shelves<K>> {
        self.shelves.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

struct Shelves<K> {
    objects: HashMap<NamespacedName, Arc<K>>,
    unreadable: HashSet<NamespacedName>,
    indexes: Vec<Index<K>>,
}

impl<K> Shelves<K> {
    fn take(&mut self, name: &NamespacedName) -> Option<Arc<K>> {
        let old = self.objects.remove(name)?;
        for index in &mut self.indexes {
            index.replace(name, Some(&old), None);
        }
        Some(old)
    }
}

struct Index<K> {
    name: &'static str,
    of: IndexOf<K>,
    names: HashMap<String, BTreeSet<NamespacedName>>,
}

impl<K> Index<K> {
    fn replace(&mut self, name: &NamespacedName, old: Option<&K>, new: Option<&K>) {
        let of = self.of;
        let before = old.map(of).unwrap_or_default();
        let after = new.map(of).unwrap_or_default();
        if before == after {
            return;
        }
        for word in &before {
            if let Some(names) = self.names.get_mut(word) {
                names.remove(name);
                if names.is_empty() {
                    self.names.remove(word);
                }
            }
        }
        for word in after {
            self.names.entry(word).or_default().insert(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn map(name: &str, color: &str) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.namespace = Some("a".into());
        map.metadata.name = Some(name.into());
        map.data = Some([("color".to_owned(), color.to_owned())].into());
        map
    }

    fn color(map: &ConfigMap) -> Vec<String> {
        map.data.iter().flat_map(|data| data.get("color").cloned()).collect()
    }

    fn names(found: &[Arc<ConfigMap>]) -> Vec<String> {
        found.iter().map(|map| NamespacedName::of(&**map).name).collect()
    }

    #[test]
    fn an_index_follows_its_objects() {
        let store = Store::of([map("x", "red"), map("y", "red")], [("color", color as IndexOf<_>)]);
        assert!(store.served());
        assert_eq!(names(&store.by("color", "red")), ["x", "y"]);
        store.put(Arc::new(map("x", "blue")));
        assert_eq!(names(&store.by("color", "red")), ["y"]);
        assert_eq!(names(&store.by("color", "blue")), ["x"]);
        store.take(&NamespacedName::new("a", "y"));
        assert!(store.by("color", "red").is_empty());
        assert!(store.by("size", "red").is_empty());
        assert_eq!(store.len(), 1);
    }
}
