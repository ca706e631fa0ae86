//! Keeps whoever does not lead any more from changing anything.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::http::{Method, Request};
use tower::{BoxError, Layer, Service};

use super::guard::Deadline;

/// A request to change something was not sent, or its answer is not waited for.
#[derive(Debug, thiserror::Error)]
#[error("this is not the leader any more")]
pub(crate) struct NotLeading;

/// Stands right before the connection, so that nothing that a request waits for comes after it: limits, tokens, a second
/// attempt. What the connection has taken over is out of reach.
#[derive(Clone)]
pub(crate) struct Gate(pub(super) Deadline);

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { inner, deadline: self.0.clone() }
    }
}

/// A client behind a gate.
#[derive(Clone)]
pub(crate) struct Gated<S> {
    inner: S,
    deadline: Deadline,
}

impl<S, B, R> Service<Request<B>> for Gated<S>
where
    S: Service<Request<B>, Response = R, Error = BoxError>,
{
    type Response = R;
    type Error = BoxError;
    type Future = Passing<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // To look does no harm.
        let harmless = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let deadline = (!harmless).then(|| self.deadline.clone());
        Passing { answer: Box::pin(self.inner.call(request)), deadline }
    }
}

/// A request on its way. The deadline is looked at before each step, for it may have to wait for a connection first.
pub(crate) struct Passing<F> {
    answer: Pin<Box<F>>,
    deadline: Option<Deadline>,
}

impl<F, R> Future for Passing<F>
where
    F: Future<Output = Result<R, BoxError>>,
{
    type Output = Result<R, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.deadline.as_ref().is_some_and(Deadline::is_over) {
            return Poll::Ready(Err(NotLeading.into()));
        }
        self.answer.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::time::Instant;
    use tower::{ServiceExt, service_fn};

    use super::*;

    const SOON: Duration = Duration::from_millis(100);

    /// Sends a request to a server that takes a step to be reached, at which the whole process may be frozen. Whether it
    /// got there.
    async fn send(method: Method, deadline: &Deadline, frozen: Duration) -> bool {
        let arrived = Arc::new(AtomicU32::new(0));
        let server = service_fn(|_: Request<()>| async {
            std::thread::sleep(frozen);
            tokio::task::yield_now().await;
            arrived.fetch_add(1, Ordering::Relaxed);
            Ok::<_, BoxError>(())
        });
        let request = Request::builder().method(method).body(()).unwrap();
        let answer = Gate(deadline.clone()).layer(server).oneshot(request).await;
        assert!(answer.is_ok() || answer.is_err_and(|error| error.is::<NotLeading>()));
        arrived.load(Ordering::Relaxed) == 1
    }

    #[tokio::test]
    async fn only_a_leader_changes_anything() {
        let deadline = Deadline::new(Instant::now() + Duration::from_secs(60));
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            deadline.set(Instant::now() + Duration::from_secs(60));
            assert!(send(method.clone(), &deadline, Duration::ZERO).await, "{method}");
            deadline.set(Instant::now());
            assert_eq!(
                send(method.clone(), &deadline, Duration::ZERO).await,
                method == Method::GET,
                "{method}"
            );
        }
    }

    #[tokio::test]
    async fn a_request_that_wakes_from_a_freeze_is_not_sent() {
        let deadline = Deadline::new(Instant::now() + SOON);
        assert!(!send(Method::POST, &deadline, 2 * SOON).await);
        assert!(send(Method::GET, &deadline, Duration::ZERO).await);
    }
}
