//! Work that is not touched any more once its time is over.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::watch;
use tokio::time::Instant;

/// Until when the work may go on; clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Deadline(Arc<watch::Sender<Instant>>);

/// The time is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lapsed;

impl Deadline {
    pub(super) fn new(at: Instant) -> Self {
        Self(Arc::new(watch::Sender::new(at)))
    }

    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= *self.0.borrow()
    }

    pub(super) fn set(&self, at: Instant) {
        self.0.send_replace(at);
    }
}

/// Does the work as long as the deadline is ahead. It is looked at before each step of the work: a process that was
/// frozen may be woken by the work first, and by its timer later.
pub(super) async fn until<T>(deadline: &Deadline, work: impl Future<Output = T>) -> Result<T, Lapsed> {
    let mut lapse = pin!(lapse(deadline));
    let mut work = pin!(work);
    std::future::poll_fn(|cx| {
        if deadline.is_over() || lapse.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Lapsed));
        }
        work.as_mut().poll(cx).map(Ok)
    })
    .await
}

/// Waits until the deadline is over, however often it is moved.
async fn lapse(deadline: &Deadline) {
    let mut moved = deadline.0.subscribe();
    loop {
        let at = *moved.borrow_and_update();
        tokio::select! {
            () = tokio::time::sleep_until(at) => return,
            _ = moved.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_deadline_moves() {
        let deadline = Deadline::new(Instant::now() + 2 * SECOND);
        let begin = Instant::now();
        let work = async {
            tokio::time::sleep(SECOND).await;
            deadline.set(Instant::now() + 5 * SECOND);
            std::future::pending::<()>().await;
        };
        assert_eq!(until(&deadline, work).await, Err(Lapsed));
        assert_eq!(begin.elapsed().as_secs(), 6);
        deadline.set(Instant::now() + SECOND);
        assert_eq!(until(&deadline, async { 7 }).await, Ok(7));
    }

    #[test]
    fn work_that_wakes_from_a_freeze_does_not_go_on() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let steps = AtomicU32::new(0);
        let result = runtime.block_on(async {
            let deadline = Deadline::new(Instant::now() + SECOND / 10);
            let work = async {
                steps.fetch_add(1, Ordering::Relaxed);
                // The whole process stands still, and the work is woken as soon as it does not any more.
                std::thread::sleep(SECOND / 2);
                tokio::task::yield_now().await;
                steps.fetch_add(1, Ordering::Relaxed);
            };
            until(&deadline, work).await
        });
        assert_eq!((result, steps.into_inner()), (Err(Lapsed), 1));
    }
}
