//! The client of a guest's agent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::error::AgentError;
use super::wire::{Broken, Reply, Wire};

/// How long the agent may take for an answer, unless told otherwise.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(5);

/// How long the agent has to refuse what it does not confirm.
const REFUSAL: Duration = Duration::from_millis(500);

/// A guest's agent, to be cloned freely: requests take turns. Nothing is sent unless asked for.
#[derive(Debug, Clone)]
pub struct Agent {
    shared: Arc<Shared>,
    patience: Duration,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    wire: Mutex<Option<Wire>>,
}

impl Agent {
    /// The agent behind a socket, to which we connect when there is something to ask, and again after a loss.
    ///
    /// QEMU's end of it is there whether or not an agent runs in the guest;
    /// [`crate::qmp::Event::SerialPortChange`] tells when one comes and goes.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let shared = Shared { path: path.into(), wire: Mutex::new(None) };
        Self { shared: Arc::new(shared), patience: DEFAULT_PATIENCE }
    }

    /// The same agent with another deadline for answers.
    pub fn patient(&self, patience: Duration) -> Self {
        Self { shared: self.shared.clone(), patience }
    }

    /// Sends a command and reads of its answer what the caller's type asks for.
    pub async fn call<R: DeserializeOwned>(
        &self,
        command: &str,
        arguments: impl Serialize,
    ) -> Result<R, AgentError> {
        let arguments = to_value(command, arguments)?;
        let mut wire = self.shared.wire.lock().await;
        let exchange = async {
            let wire = connect(&mut wire, &self.shared.path).await?;
            wire.say(command, arguments).await.map_err(|Broken| AgentError::Gone)?;
            wire.hear().await.map_err(|Broken| AgentError::Gone)
        };
        let heard = timeout(self.patience, exchange).await;
        let heard = heard.unwrap_or_else(|_| {
            Err(AgentError::Silent { command: command.to_owned(), after: self.patience })
        });
        if matches!(heard, Err(AgentError::Gone)) {
            *wire = None;
        }
        drop(wire);
        let unusable = |reason: String| AgentError::Unusable { command: command.to_owned(), reason };
        match heard? {
            Some(Reply { error: Some(no), .. }) => Err(AgentError::refused(command, &no.class, no.desc)),
            Some(Reply { returned, .. }) => {
                serde_json::from_value(returned).map_err(|error| unusable(error.to_string()))
            }
            None => Err(unusable("it is no JSON".to_owned())),
        }
    }

    /// Sends a command whose answer says no more than that it is done.
    pub async fn run(&self, command: &str, arguments: impl Serialize) -> Result<(), AgentError> {
        self.call::<IgnoredAny>(command, arguments).await.map(drop)
    }

    /// Sends a command that is answered only if it fails, like a shutdown.
    pub(super) async fn run_unanswered(
        &self,
        command: &str,
        arguments: impl Serialize,
    ) -> Result<(), AgentError> {
        // First make sure that anybody listens.
        self.ping().await?;
        match self.patient(REFUSAL.min(self.patience)).run(command, arguments).await {
            Err(AgentError::Silent { .. } | AgentError::Gone) => Ok(()),
            answered => answered,
        }
    }
}

async fn connect<'a>(wire: &'a mut Option<Wire>, path: &PathBuf) -> Result<&'a mut Wire, AgentError> {
    match wire {
        Some(wire) => Ok(wire),
        None => {
            let stream = UnixStream::connect(path).await.map_err(AgentError::Unreachable)?;
            Ok(wire.insert(Wire::new(stream)))
        }
    }
}

fn to_value(command: &str, arguments: impl Serialize) -> Result<Value, AgentError> {
    serde_json::to_value(arguments)
        .map_err(|error| AgentError::Unusable { command: command.to_owned(), reason: error.to_string() })
}
