//! What can go wrong between us and a guest's agent.

use std::io;
use std::time::Duration;

/// A failed request. Each variant calls for something else.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// There is no socket to speak to.
    #[error("cannot reach the guest agent's socket: {0}")]
    Unreachable(#[source] io::Error),
    /// The socket was closed: QEMU ended, or somebody else speaks to the agent.
    #[error("the connection to the guest agent is gone")]
    Gone,
    /// No answer in time: no agent runs in the guest, or the guest is busy, or paused.
    #[error("the guest agent does not answer {command} within {after:?}")]
    Silent {
        /// The command.
        command: String,
        /// How long we waited.
        after: Duration,
    },
    /// This agent does not know the command.
    #[error("the guest agent does not know {command}")]
    Unsupported {
        /// The command.
        command: String,
    },
    /// The agent knows the command, but not now: the guest's owner forbids it, or its file systems are frozen.
    #[error("the guest agent may not do {command}: {reason}")]
    Disabled {
        /// The command.
        command: String,
        /// The agent's own words.
        reason: String,
    },
    /// The agent tried, and failed.
    #[error("the guest agent refused {command}: {reason}")]
    Refused {
        /// The command.
        command: String,
        /// The agent's own words.
        reason: String,
    },
    /// The answer has not the fields we need.
    #[error("the guest agent's answer to {command} cannot be used: {reason}")]
    Unusable {
        /// The command.
        command: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A program in the guest has not ended in time. It still runs.
    #[error("the program with pid {pid} still runs in the guest after {after:?}")]
    StillRunning {
        /// Its process id in the guest.
        pid: i64,
        /// How long we waited.
        after: Duration,
    },
}

impl AgentError {
    pub(crate) fn refused(command: &str, class: &str, reason: String) -> Self {
        let command = command.to_owned();
        match class {
            _ if reason.contains("disabled") => Self::Disabled { command, reason },
            "CommandNotFound" => Self::Unsupported { command },
            _ => Self::Refused { command, reason },
        }
    }
}
