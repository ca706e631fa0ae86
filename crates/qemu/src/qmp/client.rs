//! The client of a monitor.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::{Mutex, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::error::{Loss, QmpError};
use super::events::Events;
use super::link::{Link, read_all};
use super::send::{Letter, write_all};
use super::wire::{Hello, Request, Version, excerpt};
use crate::lines::Lines;

/// How patient we are, and how much we are ready to hold.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long QEMU may take for a reply before it counts as hung.
    pub reply: Duration,
    /// The longest line that we read, in bytes.
    pub line: usize,
    /// How many events a listener may fall behind.
    pub backlog: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { reply: Duration::from_secs(20), line: 64 << 20, backlog: 256 }
    }
}

/// For commands without arguments.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct NoArguments {}

/// A connection to a monitor, to be cloned freely. It ends with its last clone.
#[derive(Debug, Clone)]
pub struct Qmp {
    shared: Arc<Shared>,
    patience: Duration,
}

#[derive(Debug)]
struct Shared {
    link: Arc<Link>,
    letters: mpsc::Sender<Letter>,
    fd_turn: Arc<Mutex<()>>,
    reader: AbortHandle,
    version: Version,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.reader.abort();
        self.link.close(Loss::Closed);
    }
}

/// How a command travels.
enum Way {
    Normal,
    Urgent,
    WithFd(OwnedFd),
}

impl Qmp {
    /// Connects to a monitor that listens on a unix socket.
    pub async fn connect(path: impl AsRef<Path>, limits: Limits) -> Result<Self, QmpError> {
        let stream = UnixStream::connect(path).await.map_err(QmpError::Connect)?;
        Self::over(stream, limits).await
    }

    /// Greets the monitor at the other end of a connected socket.
    pub async fn over(stream: UnixStream, limits: Limits) -> Result<Self, QmpError> {
        let (from, to) = stream.into_split();
        let mut lines = Lines::new(from, limits.line);
        let hello = timeout_at(Instant::now() + limits.reply, lines.next()).await;
        let hello = hello.map_err(|_| hung("greeting", limits.reply))?;
        let hello = hello.map_err(|end| QmpError::Gone(end.into()))?;
        let Ok(Hello { greeting }) = serde_json::from_slice(&hello) else {
            return Err(QmpError::NotQmp { said: excerpt(&hello) });
        };

        let link = Arc::new(Link::new(limits.backlog));
        let (letters, queue) = mpsc::channel(16);
        tokio::spawn(write_all(to, queue));
        let reader = tokio::spawn(read_all(link.clone(), lines)).abort_handle();
        let shared = Shared { link, letters, fd_turn: Arc::default(), reader, version: greeting.version };
        let qmp = Self { shared: Arc::new(shared), patience: limits.reply };

        let urgent = greeting.capabilities.iter().any(|can| can == "oob");
        let enable: &[&str] = if urgent { &["oob"] } else { &[] };
        qmp.run("qmp_capabilities", serde_json::json!({ "enable": enable })).await?;
        Ok(qmp)
    }

    /// The same connection with another deadline for replies.
    pub fn patient(&self, patience: Duration) -> Self {
        Self { shared: self.shared.clone(), patience }
    }

    /// Which QEMU it is, from its greeting.
    pub fn version(&self) -> &Version {
        &self.shared.version
    }

    /// Listens to all events from now on.
    pub fn events(&self) -> Events {
        self.shared.link.listen()
    }

    /// Waits for the end of the connection.
    pub async fn gone(&self) -> Loss {
        self.shared.link.wait_lost().await
    }

    /// Sends a command and reads of its reply what the caller's type asks for.
    pub async fn call<R: DeserializeOwned>(
        &self,
        command: &str,
        arguments: impl Serialize,
    ) -> Result<R, QmpError> {
        self.travel(command, arguments, Way::Normal).await
    }

    /// Sends a command whose reply says no more than that it is done.
    pub async fn run(&self, command: &str, arguments: impl Serialize) -> Result<(), QmpError> {
        self.call::<IgnoredAny>(command, arguments).await.map(drop)
    }

    /// Sends a command that overtakes those that wait for QEMU's main loop; few commands may.
    pub async fn run_urgent(&self, command: &str, arguments: impl Serialize) -> Result<(), QmpError> {
        self.travel::<IgnoredAny>(command, arguments, Way::Urgent).await.map(drop)
    }

    /// Sends a command together with an open file.
    pub async fn call_with_fd<R: DeserializeOwned>(
        &self,
        command: &str,
        arguments: impl Serialize,
        fd: OwnedFd,
    ) -> Result<R, QmpError> {
        self.travel(command, arguments, Way::WithFd(fd)).await
    }

    async fn travel<R: DeserializeOwned>(
        &self,
        command: &str,
        arguments: impl Serialize,
        way: Way,
    ) -> Result<R, QmpError> {
        let answer = timeout_at(Instant::now() + self.patience, self.exchange(command, arguments, way)).await;
        let value = answer.map_err(|_| hung(command, self.patience))??;
        serde_json::from_value(value)
            .map_err(|source| QmpError::Unusable { command: command.to_owned(), source })
    }

    async fn exchange(&self, command: &str, arguments: impl Serialize, way: Way) -> Result<Value, QmpError> {
        let unsendable = |error: serde_json::Error| QmpError::Unsendable {
            command: command.to_owned(),
            reason: error.to_string(),
        };
        let arguments = serde_json::to_value(arguments).map_err(unsendable)?;
        let (execute, urgent) = match &way {
            Way::Urgent => (None, Some(command)),
            _ => (Some(command), None),
        };
        // QEMU keeps only the latest file it was given, so each waits until its forerunner has been taken.
        let (fd, turn) = match way {
            Way::WithFd(fd) => (Some(fd), Some(self.shared.fd_turn.clone().lock_owned().await)),
            _ => (None, None),
        };
        // From here to the sending nothing waits: who gives up earlier leaves no trace.
        let Ok(place) = self.shared.letters.reserve().await else {
            return Err(QmpError::Gone(self.shared.link.wait_lost().await));
        };
        let (id, answer) = self.shared.link.enter(turn).map_err(QmpError::Gone)?;
        let mut line = serde_json::to_vec(&Request { execute, urgent, arguments, id }).map_err(unsendable)?;
        line.extend_from_slice(b"\r\n");
        place.send(Letter { line, fd });
        match answer.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(no)) => {
                Err(QmpError::Refused { command: command.to_owned(), class: no.class, desc: no.desc })
            }
            Err(_) => Err(QmpError::Gone(self.shared.link.lost())),
        }
    }
}

fn hung(command: &str, after: Duration) -> QmpError {
    QmpError::Hung { command: command.to_owned(), after }
}
