//! What can go wrong between us and a monitor.

use std::fmt;
use std::io;
use std::time::Duration;

use serde::Deserialize;

/// A failed request. Each variant calls for something else.
#[derive(Debug, thiserror::Error)]
pub enum QmpError {
    /// QEMU understood, and said no.
    #[error("QEMU refused {command}: {desc}")]
    Refused {
        /// The command.
        command: String,
        /// QEMU's class of error.
        class: ErrorClass,
        /// QEMU's own words.
        desc: String,
    },
    /// No answer in time: QEMU is stopped, stuck in a system call, or overloaded.
    #[error("QEMU hangs: no answer to {command} within {after:?}")]
    Hung {
        /// The command.
        command: String,
        /// How long we waited.
        after: Duration,
    },
    /// The connection is over. For a process that we started, its exit says why.
    #[error("QEMU is gone: {0}")]
    Gone(Loss),
    /// The answer has not the fields we need.
    #[error("QEMU's answer to {command} cannot be used: {source}")]
    Unusable {
        /// The command.
        command: String,
        /// What is missing or of the wrong type.
        source: serde_json::Error,
    },
    /// The arguments cannot be sent.
    #[error("the arguments of {command} cannot be sent: {reason}")]
    Unsendable {
        /// The command.
        command: String,
        /// Why.
        reason: String,
    },
    /// Whatever answers on the socket, it does not speak QMP.
    #[error("the peer does not speak QMP, it said: {said}")]
    NotQmp {
        /// The start of what it said.
        said: String,
    },
    /// No connection to the monitor's socket.
    #[error("cannot connect to the monitor: {0}")]
    Connect(#[source] io::Error),
}

impl QmpError {
    /// QEMU refused because there is no such thing: already gone, or never there.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Refused { class: ErrorClass::DeviceNotFound, .. } => true,
            Self::Refused { desc, .. } => ["not found", "Cannot find", "Failed to find", "does not exist"]
                .iter()
                .any(|words| desc.contains(words)),
            _ => false,
        }
    }

    /// QEMU does not know the command: it is older, or was built without it.
    pub fn is_unknown_command(&self) -> bool {
        matches!(self, Self::Refused { class: ErrorClass::CommandNotFound, .. })
    }

    /// QEMU has ended, or at least its monitor.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone(_))
    }
}

/// QEMU's class of error. Most are generic.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum ErrorClass {
    /// Read the description.
    Generic,
    /// No such command.
    CommandNotFound,
    /// The device is there, but not active.
    DeviceNotActive,
    /// No such device.
    DeviceNotFound,
    /// This kernel's KVM cannot do it.
    KvmMissingCap,
    /// A class that we do not know.
    Other(String),
}

impl From<String> for ErrorClass {
    fn from(name: String) -> Self {
        match name.as_str() {
            "GenericError" => Self::Generic,
            "CommandNotFound" => Self::CommandNotFound,
            "DeviceNotActive" => Self::DeviceNotActive,
            "DeviceNotFound" => Self::DeviceNotFound,
            "KVMMissingCap" => Self::KvmMissingCap,
            _ => Self::Other(name),
        }
    }
}

/// How a connection was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// QEMU closed it, which is also what the end of the process looks like.
    Closed,
    /// The socket failed.
    Socket(io::ErrorKind),
    /// A line longer than we are ready to hold.
    LineTooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the monitor was closed"),
            Self::Socket(kind) => write!(f, "the monitor's socket failed: {kind}"),
            Self::LineTooLong { limit } => write!(f, "a line of the monitor is longer than {limit} bytes"),
        }
    }
}
