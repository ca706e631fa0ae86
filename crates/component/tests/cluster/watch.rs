//! A store follows the API server: what is there, what changes, what cannot be read, what is not served yet.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kubevirt_api::data_volume::DataVolume;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_component::{Limits, Metrics, NamespacedName, Next, Queue, Role, Store, Watch, patch};
use serde_json::json;
use test_kit::{API_SERVER, Test};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::flags::common;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_follows_and_feeds_a_queue() -> Result<()> {
    API_SERVER
        .run("component-store", async |test| {
            let maps = test.api::<ConfigMap>();
            maps.create(&PostParams::default(), &map("before")).await?;
            let (queue, stop) = (Queue::new("maps"), CancellationToken::new());
            let store = Watch::<ConfigMap>::within(test.client(), test.namespace())
                .feeds(&queue, |change| {
                    change.latest().map(|it| NamespacedName::of(&**it)).into_iter().collect()
                })
                .start(&stop);
            timeout(PATIENCE, store.ready()).await?;
            let mut worked = work(&queue, &stop);
            next(&mut worked, "before").await?;
            maps.create(&PostParams::default(), &map("after")).await?;
            next(&mut worked, "after").await?;
            assert!(store.get(&name(test, "after")).is_some());
            maps.delete("before", &DeleteParams::default()).await?;
            next(&mut worked, "before").await?;
            assert!(store.get(&name(test, "before")).is_none());
            stop.cancel();
            Ok(())
        })
        .await
}

#[tokio::test]
async fn what_cannot_be_read_stalls_nothing() -> Result<()> {
    API_SERVER
        .run("component-broken", async |test| {
            // An API server with our CRDs would refuse the second; an older one might have kept it.
            let stop = CancellationToken::new();
            let store =
                Watch::<VirtualMachine>::within(test.client(), test.namespace()).optional().start(&stop);
            timeout(PATIENCE, store.ready()).await?;
            let odd = Watch::<Odd>::within(test.client(), test.namespace()).start(&stop);
            let maps = test.api::<ConfigMap>();
            let mut bad = map("bad");
            bad.data = Some([("number".to_owned(), "none".to_owned())].into());
            let mut good = map("good");
            good.data = Some([("number".to_owned(), "5".to_owned())].into());
            maps.create(&PostParams::default(), &bad).await?;
            maps.create(&PostParams::default(), &good).await?;
            eventually(|| odd.get(&name(test, "good")).is_some()).await?;
            assert!(odd.get(&name(test, "bad")).is_none() && odd.is_unreadable(&name(test, "bad")));
            // What can be read no longer is not acted on, until it can be again.
            let becomes = async |number: &str| {
                let patch = Patch::Merge(json!({"data": {"number": number}}));
                maps.patch("good", &PatchParams::default(), &patch).await
            };
            becomes("none").await?;
            eventually(|| odd.get(&name(test, "good")).is_none()).await?;
            assert!(odd.is_unreadable(&name(test, "good")));
            becomes("6").await?;
            eventually(|| odd.get(&name(test, "good")).is_some()).await?;
            assert!(!odd.is_unreadable(&name(test, "good")));
            maps.delete("bad", &DeleteParams::default()).await?;
            eventually(|| !odd.is_unreadable(&name(test, "bad"))).await?;
            stop.cancel();
            Ok(())
        })
        .await
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_an_empty_store() -> Result<()> {
    API_SERVER
        .run("component-optional", async |test| {
            let (metrics, stop) = (Metrics::new(), CancellationToken::new());
            let client = common(test.cluster()).client(Role::Controller, &Limits::none(), &metrics).await?;
            let store: Store<DataVolume> = Watch::within(client, test.namespace()).optional().start(&stop);
            timeout(PATIENCE, store.ready()).await?;
            assert!(!store.served());
            assert!(store.all().is_empty());
            // It is not asked for again and again: with the watcher's own pauses that would be once a second.
            sleep(Duration::from_secs(6)).await;
            let text = metrics.text();
            let asked =
                text.lines().find(|line| line.contains(r#"resource="datavolumes""#)).unwrap_or_default();
            let count: f64 = asked.rsplit(' ').next().unwrap_or_default().parse()?;
            assert!((1.0..=2.0).contains(&count), "{asked}");
            stop.cancel();
            Ok(())
        })
        .await
}

#[tokio::test]
async fn two_writers_lose_nothing() -> Result<()> {
    API_SERVER
        .run("component-writers", async |test| {
            let maps = test.api::<ConfigMap>();
            let seen = maps.create(&PostParams::default(), &map("both")).await?;
            let with = |key: &str| {
                let mut wanted = seen.clone();
                wanted.data.get_or_insert_default().insert(key.to_owned(), "1".to_owned());
                wanted
            };
            assert!(patch::write(&maps, &seen, &seen.clone()).await?.is_none());
            assert!(patch::write(&maps, &seen, &with("mine")).await?.is_some());
            let late = patch::write(&maps, &seen, &with("theirs")).await.unwrap_err();
            assert!(patch::is_conflict(&late), "{late}");
            let now = maps.get("both").await?;
            assert!(now.data.unwrap().contains_key("mine"));
            Ok(())
        })
        .await
}

/// A config map whose number must be one, as a stand-in for a kind that got stricter.
#[derive(Clone, Debug, serde::Deserialize)]
struct Odd {
    metadata: kube::api::ObjectMeta,
    #[serde(rename = "data")]
    _data: Number,
}

#[derive(Clone, Debug, serde::Deserialize)]
struct Number {
    #[serde(rename = "number", deserialize_with = "number")]
    _number: u32,
}

fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let text: String = serde::Deserialize::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

impl kube::Resource for Odd {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        "ConfigMap".into()
    }
    fn group((): &()) -> std::borrow::Cow<'_, str> {
        "".into()
    }
    fn version((): &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        "configmaps".into()
    }
    fn meta(&self) -> &kube::api::ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut kube::api::ObjectMeta {
        &mut self.metadata
    }
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn name(test: &Test, name: &str) -> NamespacedName {
    NamespacedName::new(test.namespace(), name)
}

fn work(queue: &Queue, stop: &CancellationToken) -> mpsc::UnboundedReceiver<NamespacedName> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (queue, stop, sender) = (queue.clone(), stop.clone(), Arc::new(sender));
    tokio::spawn(async move {
        let work = |key| {
            let told = sender.send(key);
            async move { told.map(|()| Next::Wait) }
        };
        queue.work(2, &stop, work).await;
    });
    receiver
}

/// Waits until the key comes by; the namespace has config maps of its own.
async fn next(worked: &mut mpsc::UnboundedReceiver<NamespacedName>, name: &str) -> Result<()> {
    timeout(PATIENCE, async { while worked.recv().await.unwrap().name != name {} }).await?;
    Ok(())
}

async fn eventually(condition: impl Fn() -> bool) -> Result<()> {
    timeout(PATIENCE, async {
        while !condition() {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await?;
    Ok(())
}
