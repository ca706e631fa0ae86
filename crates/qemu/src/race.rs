//! Waiting for whichever of two comes first.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// What came first.
pub(crate) enum First<A, B> {
    A(A),
    B(B),
}

/// Runs both until one is done. If both are, the first counts.
pub(crate) async fn race<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> First<A, B> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|context| {
        if let Poll::Ready(done) = a.as_mut().poll(context) {
            return Poll::Ready(First::A(done));
        }
        b.as_mut().poll(context).map(First::B)
    })
    .await
}
