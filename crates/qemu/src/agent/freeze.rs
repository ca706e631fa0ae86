//! Freezing file systems, so that a snapshot of them is whole.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::client::Agent;
use super::error::AgentError;

/// Freezing waits for the guest's disks and for scripts in the guest.
const LONG: Duration = Duration::from_secs(60);

/// Whether file systems are frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FreezeStatus {
    /// They take writes.
    Thawed,
    /// All writes wait. The agent does little else now.
    Frozen,
}

impl Agent {
    /// Freezes all file systems and tells how many. Thaw them soon: the guest stands still without knowing it.
    pub async fn freeze(&self) -> Result<u64, AgentError> {
        self.patient(LONG).call("guest-fsfreeze-freeze", json!(null)).await
    }

    /// Thaws all file systems and tells how many were frozen.
    pub async fn thaw(&self) -> Result<u64, AgentError> {
        self.patient(LONG).call("guest-fsfreeze-thaw", json!(null)).await
    }

    /// Whether file systems are frozen.
    pub async fn freeze_status(&self) -> Result<FreezeStatus, AgentError> {
        self.call("guest-fsfreeze-status", json!(null)).await
    }
}
