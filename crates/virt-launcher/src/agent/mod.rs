//! The guest agent: whether it is there, and what it tells.

mod credentials;
mod follow;
mod told;

use std::sync::Arc;

use kubevirt_qemu::Agent;
use kubevirt_qemu::qmp::{NoArguments, QmpError};
use serde::Deserialize;

pub(crate) use self::told::freeze_word;
use crate::error::CommandError;
use crate::launcher::Launcher;
use crate::running::Running;

impl Launcher {
    /// The agent, if it is connected.
    pub(crate) fn agent(&self, running: &Running) -> Option<Agent> {
        let connected = self.board.report().status.agent_connected;
        running.agent.as_ref().filter(|_| connected).map(|(_, agent)| agent.clone())
    }

    /// The agent of the machine that runs.
    pub(crate) fn connected_agent(&self) -> Result<Agent, CommandError> {
        self.agent(&*self.running()?).ok_or(CommandError::NoAgent)
    }

    /// The agent opened or closed its end of the channel.
    pub(crate) fn agent_came_or_went(self: &Arc<Self>, running: &Arc<Running>, open: bool) {
        tracing::info!(connected = open, "the guest agent");
        self.board.change_status(|status| status.agent_connected = open);
        match self.agent(running) {
            Some(agent) => {
                let following = tokio::spawn(self.clone().follow_agent(running.clone(), agent));
                self.guest.follower.begin(following.abort_handle());
            }
            None => self.guest.follower.end(),
        }
    }

    /// The guest has more or less memory.
    pub(crate) fn memory_changed(self: &Arc<Self>, running: &Arc<Running>) {
        let (launcher, running) = (self.clone(), running.clone());
        tokio::spawn(async move {
            if let Ok(size) = running.machine.memory_size().await {
                let bytes = size.base + size.plugged;
                launcher.board.change_status(|status| status.memory = Some(bytes));
            }
        });
    }
}

/// Whether the guest agent holds its end of the channel open, for whoever was not there when an event told.
pub(crate) async fn is_open(running: &Running) -> Result<bool, QmpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Chardev {
        label: String,
        frontend_open: bool,
    }
    let Some((channel, _)) = &running.agent else { return Ok(false) };
    let all: Vec<Chardev> = running.machine.qmp().call("query-chardev", NoArguments {}).await?;
    let label = format!("char{channel}");
    Ok(all.iter().any(|one| one.label == label && one.frontend_open))
}
