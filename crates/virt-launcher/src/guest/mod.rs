//! What the guest agent is asked.

use kubevirt_launcher_rpc::cmd::ExecRequest;

use crate::error::CommandError;
use crate::launcher::Launcher;

impl Launcher {
    /// Holds file systems still.
    pub async fn freeze(&self, _: i32) -> Result<(), CommandError> {
        missing("freezing")
    }

    /// Lets file systems go on.
    pub async fn unfreeze(&self) -> Result<(), CommandError> {
        missing("freezing")
    }

    /// Who the guest is.
    pub async fn guest_info(&self) -> Result<serde_json::Value, CommandError> {
        missing("guest info")
    }

    /// Users.
    pub async fn guest_users(&self) -> Result<serde_json::Value, CommandError> {
        missing("users")
    }

    /// File systems.
    pub async fn guest_filesystems(&self) -> Result<serde_json::Value, CommandError> {
        missing("file systems")
    }

    /// Runs a program in the guest.
    pub async fn exec(&self, _: ExecRequest) -> Result<(i32, String), CommandError> {
        missing("exec")
    }

    /// Whether the agent answers.
    pub async fn guest_ping(&self, _: i32) -> Result<(), CommandError> {
        missing("ping")
    }
}

fn missing<T>(what: &str) -> Result<T, CommandError> {
    Err(CommandError::Unsupported(format!("{what} is not part of this version yet")))
}
