//! Waiting for an object, with a failure that says what was seen of it.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Test, report};

/// How long a test waits where it does not say; much more than anything takes on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(100);

impl Test {
    /// Waits until the object meets the condition, and returns it. `what` completes the sentence "one …",
    /// such as "is ready".
    pub async fn wait<K>(
        &self,
        api: &Api<K>,
        name: &str,
        what: &str,
        condition: impl Fn(&K) -> bool,
    ) -> Result<K>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        self.wait_within(PATIENCE, api, name, what, condition).await
    }

    /// Waits as [`wait`](Self::wait) does, but `limit` at most.
    pub async fn wait_within<K>(
        &self,
        limit: Duration,
        api: &Api<K>,
        name: &str,
        what: &str,
        condition: impl Fn(&K) -> bool,
    ) -> Result<K>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        let condition = |seen: Option<K>| seen.filter(|object| condition(object));
        self.poll(limit, api, name, what, condition).await
    }

    /// Waits until there is no such object.
    pub async fn wait_until_gone<K>(&self, api: &Api<K>, name: &str) -> Result<()>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        self.wait_until_gone_within(PATIENCE, api, name).await
    }

    /// Waits as [`wait_until_gone`](Self::wait_until_gone) does, but `limit` at most.
    pub async fn wait_until_gone_within<K>(&self, limit: Duration, api: &Api<K>, name: &str) -> Result<()>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        let condition = |seen: Option<K>| seen.is_none().then_some(());
        self.poll(limit, api, name, "is gone", condition).await
    }

    /// Looks at the object until `condition` makes something of it.
    async fn poll<K, T>(
        &self,
        limit: Duration,
        api: &Api<K>,
        name: &str,
        what: &str,
        condition: impl Fn(Option<K>) -> Option<T>,
    ) -> Result<T>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        let begin = Instant::now();
        loop {
            // The API server itself may be what a test restarts.
            let seen = api.get_opt(name).await;
            if let Ok(object) = &seen
                && let Some(met) = condition(object.clone())
            {
                return Ok(met);
            }
            if begin.elapsed() > limit {
                let seen = seen.map(|object| object.and_then(|object| serde_json::to_value(object).ok()));
                let report = report::of_object(self.client(), name, api.namespace(), &seen).await;
                bail!("waited {} s until {name} {what}, in vain.\n{report}", limit.as_secs());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
