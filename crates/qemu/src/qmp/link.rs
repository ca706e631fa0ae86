//! One live connection: who waits for which reply, who listens, and how it ended.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde_json::Value;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{OwnedMutexGuard, broadcast, oneshot, watch};

use super::error::Loss;
use super::event::Event;
use super::events::{Events, Happened};
use super::wire::{Refusal, Said, excerpt, read};
use crate::lines::{Lines, NoLine};

pub(crate) type Answer = Result<Value, Refusal>;

/// Someone who waits for a reply. Holds the turn for passing descriptors until QEMU has taken its own.
#[derive(Debug)]
struct Waiting {
    reply: oneshot::Sender<Answer>,
    _turn: Option<OwnedMutexGuard<()>>,
}

#[derive(Debug, Default)]
struct Desk {
    next: u64,
    waiting: HashMap<u64, Waiting>,
    closed: bool,
}

/// What callers and the reader share.
#[derive(Debug)]
pub(crate) struct Link {
    desk: Mutex<Desk>,
    loss: watch::Sender<Option<Loss>>,
    listeners: Mutex<Option<broadcast::Sender<Arc<Happened>>>>,
}

impl Link {
    pub(crate) fn new(backlog: usize) -> Self {
        Self {
            desk: Mutex::default(),
            loss: watch::Sender::new(None),
            listeners: Mutex::new(Some(broadcast::Sender::new(backlog.max(1)))),
        }
    }

    /// Takes a number and waits in line for its reply.
    pub(crate) fn enter(
        &self,
        turn: Option<OwnedMutexGuard<()>>,
    ) -> Result<(u64, oneshot::Receiver<Answer>), Loss> {
        let mut desk = lock(&self.desk);
        if desk.closed {
            return Err(self.lost());
        }
        desk.next += 1;
        let id = desk.next;
        let (reply, answer) = oneshot::channel();
        desk.waiting.insert(id, Waiting { reply, _turn: turn });
        Ok((id, answer))
    }

    /// Why the connection ended.
    pub(crate) fn lost(&self) -> Loss {
        self.loss.borrow().clone().unwrap_or(Loss::Closed)
    }

    /// Waits for the end of the connection.
    pub(crate) async fn wait_lost(&self) -> Loss {
        let mut loss = self.loss.subscribe();
        match loss.wait_for(Option::is_some).await {
            Ok(loss) => loss.clone().unwrap_or(Loss::Closed),
            Err(_) => Loss::Closed,
        }
    }

    pub(crate) fn listen(&self) -> Events {
        let listeners = lock(&self.listeners);
        Events::new(match listeners.as_ref() {
            Some(listeners) => listeners.subscribe(),
            None => broadcast::Sender::new(1).subscribe(),
        })
    }

    /// Ends every wait and every stream of events.
    pub(crate) fn close(&self, loss: Loss) {
        self.loss.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(loss);
            first
        });
        let mut desk = lock(&self.desk);
        desk.closed = true;
        desk.waiting.clear();
        lock(&self.listeners).take();
    }

    fn tell(&self, at: SystemTime, event: Event) {
        if let Some(listeners) = lock(&self.listeners).as_ref() {
            // It fails only if nobody listens.
            let _ = listeners.send(Arc::new(Happened { at, event }));
        }
    }

    fn take(&self, line: &[u8]) {
        match read(line) {
            Said::Reply { id, result } => {
                let waiting = lock(&self.desk).waiting.remove(&id);
                // A caller who lost patience no longer waits.
                let _ = waiting.map(|waiting| waiting.reply.send(result));
            }
            Said::Event { name, data, at } => self.tell(at, Event::read(name, data)),
            Said::Unreadable => self.tell(SystemTime::now(), Event::Unreadable { line: excerpt(line) }),
        }
    }
}

/// Reads until the connection ends.
pub(crate) async fn read_all(link: Arc<Link>, mut lines: Lines<OwnedReadHalf>) {
    let loss = loop {
        match lines.next().await {
            Ok(line) if line.iter().all(u8::is_ascii_whitespace) => {}
            Ok(line) => link.take(&line),
            Err(end) => break Loss::from(end),
        }
    };
    link.close(loss);
}

impl From<NoLine> for Loss {
    fn from(end: NoLine) -> Self {
        match end {
            NoLine::End => Self::Closed,
            NoLine::TooLong { limit } => Self::LineTooLong { limit },
            // A process that dies with our words unread leaves a reset connection.
            NoLine::Io(error) if error.kind() == ErrorKind::ConnectionReset => Self::Closed,
            NoLine::Io(error) => Self::Socket(error.kind()),
        }
    }
}

/// No holder of these locks can leave half a change behind, so a panic elsewhere does not matter.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
