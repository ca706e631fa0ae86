//! Waiting for something in the cluster.

use std::future::Future;
use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

/// How often the cluster is asked.
pub const INTERVAL: Duration = Duration::from_secs(2);

/// Asks until there is an answer. Nothing, if there is none in time.
pub async fn until<T, F>(limit: Duration, mut ask: impl FnMut() -> F) -> Result<Option<T>>
where
    F: Future<Output = Result<Option<T>>>,
{
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await? {
            return Ok(Some(answer));
        }
        if start.elapsed() + INTERVAL > limit {
            return Ok(None);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
