use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::queue::Next;

/// What the API server has under a number: a version and whether it can be read.
type Objects = BTreeMap<u8, (u32, bool)>;

/// A follower that is told by hand, and what it told others.
struct Told {
    follower: Follower<ConfigMap>,
    changes: Arc<Mutex<Vec<NamespacedName>>>,
}

impl Told {
    fn new() -> Self {
        let (store, state) = Store::new(vec![("version", version as IndexOf<_>)]);
        let changes: Arc<Mutex<Vec<_>>> = Arc::default();
        let heard = changes.clone();
        let listener: Listener<ConfigMap> = Box::new(move |change| {
            heard.lock().unwrap().extend(change.latest().map(|map| NamespacedName::of(&**map)));
        });
        let follower = Follower {
            store,
            state,
            optional: true,
            trim: None,
            listeners: vec![listener],
            dependents: vec![],
            interrupted: false,
            listed: Listed::default(),
        };
        Self { follower, changes }
    }

    fn list(&mut self, objects: &Objects) {
        self.follower.take_in(watcher::Event::Init);
        for (number, object) in objects {
            self.follower.take_in(watcher::Event::InitApply(readable(*number, *object)));
        }
        self.follower.take_in(watcher::Event::InitDone);
    }

    /// Who was told of since the last time.
    fn changes(&self) -> Vec<NamespacedName> {
        std::mem::take(&mut self.changes.lock().unwrap())
    }
}

fn version(map: &ConfigMap) -> Vec<String> {
    map.metadata.resource_version.iter().cloned().collect()
}

fn name(number: u8) -> NamespacedName {
    NamespacedName::new("a", number.to_string())
}

fn readable(number: u8, (version, readable): (u32, bool)) -> Watched<ConfigMap> {
    let data = if readable { json!({"key": "value"}) } else { Value::from(7) };
    let meta = json!({"namespace": "a", "name": number.to_string(), "resourceVersion": version.to_string()});
    serde_json::from_str(&json!({"metadata": meta, "data": data}).to_string()).unwrap()
}

#[test]
fn what_cannot_be_read_any_more_is_neither_there_nor_gone() {
    let mut told = Told::new();
    let apply = |told: &mut Told, version, is_readable| {
        told.follower.take_in(watcher::Event::Apply(readable(1, (version, is_readable))));
        let store = &told.follower.store;
        (store.get(&name(1)).is_some(), store.is_unreadable(&name(1)), told.changes().len())
    };
    assert_eq!(apply(&mut told, 1, true), (true, false, 1));
    assert_eq!(apply(&mut told, 2, false), (false, true, 1));
    // Nobody knew it any more.
    assert_eq!(apply(&mut told, 3, false), (false, true, 0));
    assert_eq!(apply(&mut told, 4, true), (true, false, 1));
    assert_eq!(apply(&mut told, 5, false), (false, true, 1));
    told.follower.take_in(watcher::Event::Delete(readable(1, (6, false))));
    assert!(!told.follower.store.is_unreadable(&name(1)));
    assert!(told.changes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_tried_again_once_the_kind_can_be_followed() {
    let (mut told, queue, stop) = (Told::new(), Queue::new("test"), CancellationToken::new());
    told.follower.dependents.push(queue.clone());
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = attempts.clone();
    let (working, until) = (queue.clone(), stop.clone());
    tokio::spawn(async move {
        let fail = |_| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Err::<Next, _>("something is missing") }
        };
        working.work(1, &until, fail).await;
    });
    queue.add(name(1));
    // The pauses have become long by now.
    sleep(Duration::from_secs(1000)).await;
    let attempts = async || {
        sleep(Duration::from_millis(1)).await;
        attempts.swap(0, Ordering::Relaxed)
    };
    assert!(attempts().await > 10);
    let objects = Objects::from([(2, (1, true))]);
    told.list(&objects);
    assert_eq!(attempts().await, 0, "nothing was amiss");
    told.follower.do_without();
    assert_eq!(attempts().await, 0, "it is still missing");
    told.list(&objects);
    assert_eq!(attempts().await, 1, "it has come");
    told.follower.interrupted = true;
    told.list(&objects);
    assert_eq!(attempts().await, 1, "nothing is new, but the work may have failed for the interruption");
    told.follower.take_in(watcher::Event::Apply(readable(2, (2, true))));
    assert_eq!(attempts().await, 0);
    stop.cancel();
}

proptest! {
    /// However lists and changes mix, the store has what can be read, knows what cannot, and nothing else.
    #[test]
    fn the_store_is_what_the_api_server_has(
        steps in prop::collection::vec((0u8..4, 0u8..4, any::<bool>()), 1..60),
    ) {
        let (mut told, mut objects) = (Told::new(), Objects::new());
        for (version, (number, what, is_readable)) in (1u32..).zip(steps) {
            let object = (version, is_readable);
            match what {
                // Seen by a watch.
                0 => {
                    objects.insert(number, object);
                    told.follower.take_in(watcher::Event::Apply(readable(number, object)));
                }
                1 => if let Some(object) = objects.remove(&number) {
                    told.follower.take_in(watcher::Event::Delete(readable(number, object)));
                },
                // Missed, and found by a list.
                2 => { objects.insert(number, object); }
                _ => { objects.remove(&number); }
            }
            if what >= 2 {
                told.list(&objects);
            }
            let store = &told.follower.store;
            let readable = objects.values().filter(|(_, readable)| *readable).count();
            prop_assert_eq!(store.len(), readable);
            for number in 0..4 {
                let (seen, has) = (store.get(&name(number)), objects.get(&number));
                let version = seen.and_then(|seen| seen.metadata.resource_version.clone());
                let readable = has.filter(|(_, readable)| *readable);
                prop_assert_eq!(version, readable.map(|(version, _)| version.to_string()));
                prop_assert_eq!(store.is_unreadable(&name(number)), has.is_some_and(|(_, readable)| !readable));
            }
            for (version, _) in objects.values().filter(|(_, readable)| *readable) {
                prop_assert_eq!(store.by("version", &version.to_string()).len(), 1);
            }
        }
        told.follower.do_without();
        prop_assert!(told.follower.store.names().is_empty());
    }
}
