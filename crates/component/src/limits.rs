//! How many requests a daemon sends to the API server: a token bucket whose rate can change while it runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::{Request, Response};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::metrics::RequestMetrics;

/// A steady rate, and how many requests may be sent at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests per second.
    pub per_second: f64,
    /// Requests at once.
    pub burst: u32,
}

/// A limit that all clones share.
#[derive(Clone)]
pub struct Limits {
    rate: Arc<watch::Sender<Option<Rate>>>,
    /// Whoever waits for a token holds the bucket: the others queue up behind in the order in which they came.
    bucket: Arc<Mutex<Bucket>>,
}

impl Limits {
    /// At most this rate.
    pub fn new(rate: Rate) -> Self {
        Self::with(Some(rate))
    }

    /// No limit at all.
    pub fn none() -> Self {
        Self::with(None)
    }

    fn with(rate: Option<Rate>) -> Self {
        let tokens = rate.map_or(0.0, |rate| f64::from(rate.burst));
        let bucket = Bucket { tokens, filled: Instant::now() };
        Self { rate: Arc::new(watch::Sender::new(rate)), bucket: Arc::new(Mutex::new(bucket)) }
    }

    /// Another rate from now on, also for those who wait already.
    pub fn set(&self, rate: Rate) {
        self.rate.send_if_modified(|current| current.replace(rate) != Some(rate));
    }

    /// Waits for the permission to send one request.
    pub async fn take(&self) {
        let mut rate = self.rate.subscribe();
        let mut bucket = self.bucket.lock().await;
        loop {
            let Some(current) = *rate.borrow_and_update() else { return };
            let Some(wait) = bucket.take(current, Instant::now()) else { return };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // The sender is in `self`: it cannot be gone.
                _ = rate.changed() => {}
            }
        }
    }

    pub(crate) fn layer(&self, metrics: RequestMetrics) -> LimitLayer {
        LimitLayer { limits: self.clone(), metrics }
    }
}

/// What may be sent right now.
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    /// Takes a token, or says how long it takes until there is one.
    fn take(&mut self, rate: Rate, now: Instant) -> Option<Duration> {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + passed * rate.per_second).min(f64::from(rate.burst));
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return None;
        }
        let missing = (1.0 - self.tokens) / rate.per_second;
        // A timer is never early, but sums of small numbers may be: so a little more than nothing each time.
        Some(Duration::try_from_secs_f64(missing).unwrap_or(Duration::MAX).max(Duration::from_micros(100)))
    }
}

/// Puts the limit in front of a client. A watch counts as one request: what comes of it later is free.
pub(crate) struct LimitLayer {
    limits: Limits,
    metrics: RequestMetrics,
}

impl<S> Layer<S> for LimitLayer {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited { inner, limits: self.limits.clone(), metrics: self.metrics.clone(), turn: Turn::None }
    }
}

/// A client behind a limit.
pub(crate) struct Limited<S> {
    inner: S,
    limits: Limits,
    metrics: RequestMetrics,
    turn: Turn,
}

/// How far the next request has come.
enum Turn {
    None,
    Waits(Instant, Pin<Box<dyn Future<Output = ()> + Send>>),
    Has(Duration),
}

impl<S, B, R> Service<Request<B>> for Limited<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        loop {
            match &mut self.turn {
                Turn::None => {
                    let limits = self.limits.clone();
                    self.turn = Turn::Waits(Instant::now(), Box::pin(async move { limits.take().await }));
                }
                Turn::Waits(since, token) => {
                    ready!(token.as_mut().poll(cx));
                    self.turn = Turn::Has(since.elapsed());
                }
                Turn::Has(_) => return self.inner.poll_ready(cx),
            }
        }
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let waited = match std::mem::replace(&mut self.turn, Turn::None) {
            Turn::Has(waited) => waited,
            _ => Duration::ZERO,
        };
        let seen = self.metrics.sent(request.method(), request.uri(), waited);
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await;
            seen.answered(response.as_ref().ok().map(Response::status));
            response
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 10.0, burst: 3 };

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_through_and_the_rest_waits() {
        let limits = Limits::new(RATE);
        let begin = Instant::now();
        let mut times = Vec::new();
        for _ in 0..5 {
            limits.take().await;
            times.push(begin.elapsed().as_millis() / 10);
        }
        assert_eq!(times, [0, 0, 0, 10, 20]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_fills_the_bucket_but_not_more_than_that() {
        let limits = Limits::new(RATE);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let begin = Instant::now();
        for _ in 0..4 {
            limits.take().await;
        }
        assert_eq!(begin.elapsed().as_millis() / 10, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_rate_holds_for_those_who_wait_already() {
        let limits = Limits::new(Rate { per_second: 0.001, burst: 1 });
        limits.take().await;
        let begin = Instant::now();
        let waiting = limits.clone();
        let waiter = tokio::spawn(async move {
            for _ in 0..10 {
                waiting.take().await;
            }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        limits.set(Rate { per_second: 1000.0, burst: 10 });
        waiter.await.unwrap();
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_nothing_waits() {
        let limits = Limits::none();
        let begin = Instant::now();
        for _ in 0..10_000 {
            limits.take().await;
        }
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}
