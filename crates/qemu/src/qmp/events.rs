//! Listening to events: each listener at its own pace, none holds up QEMU or the others.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::broadcast::{self, error::RecvError};

use super::event::Event;

/// An event and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Happened {
    /// When, by QEMU's clock.
    pub at: SystemTime,
    /// What.
    pub event: Event,
}

/// The events from the moment of subscription on.
#[derive(Debug)]
pub struct Events {
    from: broadcast::Receiver<Arc<Happened>>,
}

impl Events {
    pub(crate) fn new(from: broadcast::Receiver<Arc<Happened>>) -> Self {
        Self { from }
    }

    /// The next event, or none once the connection is over.
    ///
    /// A listener that falls behind gets [`Event::Missed`] and goes on with the oldest event still held.
    /// Waiting may be given up at any point without losing an event.
    pub async fn next(&mut self) -> Option<Arc<Happened>> {
        match self.from.recv().await {
            Ok(happened) => Some(happened),
            Err(RecvError::Lagged(count)) => {
                Some(Arc::new(Happened { at: SystemTime::now(), event: Event::Missed { count } }))
            }
            Err(RecvError::Closed) => None,
        }
    }
}
