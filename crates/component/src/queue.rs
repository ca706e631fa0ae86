//! The work that waits to be done, each key once, with retries.

mod waiting;

use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::key::NamespacedName;
use crate::metrics::{Metrics, QueueMetrics};
use waiting::Waiting;

/// What follows when a key was worked on without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until something changes.
    Wait,
    /// Another look after this time.
    After(Duration),
}

/// Keys that wait to be worked on. A key that is added many times is worked on once; one that is added while it is
/// worked on is worked on again, afterwards. Clones share the queue.
#[derive(Clone)]
pub struct Queue(Arc<Inner>);

struct Inner {
    name: &'static str,
    waiting: Mutex<Waiting>,
    changed: Notify,
    metrics: OnceLock<QueueMetrics>,
}

impl Queue {
    /// An empty queue; its name is for logs and metrics.
    pub fn new(name: &'static str) -> Self {
        Self(Arc::new(Inner {
            name,
            waiting: Mutex::default(),
            changed: Notify::new(),
            metrics: OnceLock::new(),
        }))
    }

    /// Lets Prometheus see how much waits and how long it takes.
    pub fn measure(&self, metrics: &Metrics) {
        let _ = self.0.metrics.set(QueueMetrics::new(metrics, self.0.name));
    }

    /// What the queue is called.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Has the key worked on as soon as somebody is free.
    pub fn add(&self, key: NamespacedName) {
        self.waiting().add(key, Instant::now());
        self.measured(QueueMetrics::added);
        self.0.changed.notify_one();
    }

    /// Has the key worked on after a while, unless something else brings it up earlier.
    pub fn add_after(&self, key: NamespacedName, pause: Duration) {
        self.waiting().add_at(key, Instant::now() + pause);
        self.0.changed.notify_one();
    }

    /// Has the key worked on now if its work failed the last time; otherwise nothing waits for what has come.
    pub fn retry(&self, key: NamespacedName) {
        if self.waiting().retry(key, Instant::now()) {
            self.measured(QueueMetrics::added);
            self.0.changed.notify_one();
        }
    }

    /// The same for all keys whose work failed.
    pub fn retry_all(&self) {
        let failed = self.waiting().failed_keys();
        for key in failed {
            self.retry(key);
        }
    }

    /// How many keys could be worked on right now, if somebody were free.
    pub fn depth(&self) -> usize {
        self.waiting().depth()
    }

    /// Works on the keys until told to stop, on several at a time but never twice on the same. What fails is tried
    /// again, after longer and longer pauses. Work that has begun when the stop comes is dropped at its next pause.
    pub async fn work<F, W, E>(&self, workers: usize, stop: &CancellationToken, work: F)
    where
        F: Fn(NamespacedName) -> W,
        W: Future<Output = Result<Next, E>>,
        E: Display,
    {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.work_forever(workers, work) => {}
        }
    }

    async fn work_forever<F, W, E>(&self, workers: usize, work: F)
    where
        F: Fn(NamespacedName) -> W,
        W: Future<Output = Result<Next, E>>,
        E: Display,
    {
        let mut busy = FuturesUnordered::new();
        loop {
            let next_due = loop {
                if busy.len() >= workers {
                    break None;
                }
                let now = Instant::now();
                let (taken, next_due) = self.waiting().take(now);
                let Some((key, since)) = taken else { break next_due };
                self.measured(|metrics| metrics.taken(now - since));
                let attempt = work(key.clone());
                busy.push(async move { (key, now, attempt.await) });
            };
            self.measured(|metrics| metrics.depth(self.depth()));
            tokio::select! {
                Some((key, began, outcome)) = busy.next() => self.finish(key, began, outcome),
                () = self.0.changed.notified() => {}
                () = until(next_due) => {}
            }
        }
    }

    fn finish<E: Display>(&self, key: NamespacedName, began: Instant, outcome: Result<Next, E>) {
        let now = Instant::now();
        self.measured(|metrics| metrics.done(now - began));
        let mut waiting = self.waiting();
        match outcome {
            Ok(next) => {
                waiting.done(&key);
                if let Next::After(pause) = next {
                    waiting.add_at(key, now + pause);
                }
            }
            Err(error) => {
                let pause = waiting.failed(&key, fastrand::f64());
                self.measured(QueueMetrics::retried);
                tracing::info!(queue = self.0.name, %key, %error, ?pause, "will be tried again");
                waiting.add_at(key, now + pause);
            }
        }
    }

    fn measured(&self, note: impl FnOnce(&QueueMetrics)) {
        if let Some(metrics) = self.0.metrics.get() {
            note(metrics);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn key(number: usize) -> NamespacedName {
        NamespacedName::new("a", number.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn never_two_workers_for_one_key() {
        let (queue, stop) = (Queue::new("test"), CancellationToken::new());
        let (busy, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = queue.work(10, &stop, |_| {
            let (busy, done) = (busy.clone(), done.clone());
            async move {
                assert_eq!(busy.fetch_add(1, Ordering::SeqCst), 0);
                tokio::time::sleep(Duration::from_millis(10)).await;
                busy.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
                Ok::<_, String>(Next::Wait)
            }
        });
        let feed = async {
            for _ in 0..50 {
                queue.add(key(1));
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            stop.cancel();
        };
        tokio::join!(work, feed);
        let done = done.load(Ordering::SeqCst);
        assert!((10..=20).contains(&done), "{done}");
    }

    #[tokio::test(start_paused = true)]
    async fn several_keys_at_a_time_and_failures_again() {
        let (queue, stop) = (Queue::new("test"), CancellationToken::new());
        let attempts = Arc::new(AtomicUsize::new(0));
        for number in 0..8 {
            queue.add(key(number));
        }
        let began = Instant::now();
        let work = queue.work(8, &stop, |key| {
            let (attempts, stop) = (attempts.clone(), stop.clone());
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let attempt = attempts.fetch_add(1, Ordering::SeqCst);
                if attempt >= 10 {
                    stop.cancel();
                }
                if key.name == "3" { Err("no") } else { Ok(Next::Wait) }
            }
        });
        work.await;
        assert_eq!(attempts.load(Ordering::SeqCst), 11);
        // Eight at once, then three more attempts at the one that fails.
        assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    }
}
