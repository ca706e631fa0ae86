//! When objects reach a phase, as a watch tells.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures_util::StreamExt;
use kube::api::{WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

/// For forty machines on two busy cores.
pub const PATIENCE: Duration = Duration::from_secs(900);

/// What was seen of an object until it ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// How often it was written after it was made.
    pub writes: u32,
    /// When it ran.
    pub ran: Option<Instant>,
}

/// Watches objects of a namespace from now on, until so many run.
pub async fn until_running<K>(api: Api<K>, count: usize) -> Result<JoinHandle<Result<BTreeMap<String, Seen>>>>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    let version = api.list_metadata(&Default::default()).await?.metadata.resource_version.unwrap_or_default();
    Ok(tokio::spawn(async move { tokio::time::timeout(PATIENCE, follow(api, count, version)).await? }))
}

async fn follow<K>(api: Api<K>, count: usize, version: String) -> Result<BTreeMap<String, Seen>>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let parameters = WatchParams::default().timeout(290);
    let mut all: BTreeMap<String, Seen> = BTreeMap::new();
    let mut version = version;
    loop {
        let mut events = pin!(api.watch(&parameters, &version).await?);
        while let Some(event) = events.next().await {
            let object = match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => object,
                WatchEvent::Error(error) => bail!("the watch broke: {error:?}"),
                _ => continue,
            };
            version = object.resource_version().unwrap_or_default();
            let new = !all.contains_key(&object.name_any());
            let seen = all.entry(object.name_any()).or_default();
            if seen.ran.is_some() {
                continue;
            }
            seen.writes += u32::from(!new);
            let phase = serde_json::to_value(&object)?["status"]["phase"].clone();
            seen.ran = (phase == "Running").then(Instant::now);
            if all.values().filter(|seen| seen.ran.is_some()).count() == count {
                return Ok(all);
            }
        }
    }
}
