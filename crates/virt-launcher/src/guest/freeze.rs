//! Holding the guest's file systems still, so that a copy of its disks is whole.

use std::sync::Arc;
use std::time::Duration;

use kubevirt_qemu::Agent;
use kubevirt_qemu::agent::{AgentError, FreezeStatus};
use tokio::time::sleep;

use super::seconds;
use crate::agent::freeze_word;
use crate::error::CommandError;
use crate::launcher::Launcher;

/// How often thawing is tried, and the pause in between. A guest that stays frozen is as good as dead.
const ATTEMPTS: (u32, Duration) = (10, Duration::from_secs(6));

impl Launcher {
    /// Holds file systems still until [`unfreeze`](Self::unfreeze), or for so many seconds; 0 is for as long as it
    /// takes. Those that are still already stay so.
    pub async fn freeze(self: &Arc<Self>, unfreeze_timeout_seconds: i32) -> Result<(), CommandError> {
        if self.intent().migrating {
            return Err(CommandError::Refused("file systems cannot be frozen during a migration".into()));
        }
        let agent = self.connected_agent()?;
        let _one = self.guest.freezing.lock().await;
        if agent.freeze_status().await? == FreezeStatus::Frozen {
            self.note_freeze(FreezeStatus::Frozen);
            return Ok(());
        }
        self.guest.thaw.end();
        if let Err(error) = agent.freeze().await {
            if matches!(error, AgentError::Silent { .. }) {
                // It may have worked, or may still.
                self.thaw_after(Duration::ZERO);
            }
            return Err(error.into());
        }
        self.note_freeze(FreezeStatus::Frozen);
        let limit = seconds(unfreeze_timeout_seconds, Duration::ZERO);
        if !limit.is_zero() {
            self.thaw_after(limit);
        }
        Ok(())
    }

    /// Lets file systems go on. Those that do already are fine.
    pub async fn unfreeze(&self) -> Result<(), CommandError> {
        self.guest.thaw.end();
        self.thaw().await
    }

    async fn thaw(&self) -> Result<(), CommandError> {
        let agent = self.connected_agent()?;
        let _one = self.guest.freezing.lock().await;
        thaw(&agent).await?;
        self.note_freeze(FreezeStatus::Thawed);
        Ok(())
    }

    /// Thaws later, whatever becomes of those who asked for the freeze.
    fn thaw_after(self: &Arc<Self>, limit: Duration) {
        let launcher = self.clone();
        let task = tokio::spawn(async move {
            sleep(limit).await;
            tracing::warn!(?limit, "nobody thawed the guest's file systems in time");
            for _ in 0..ATTEMPTS.0 {
                match launcher.thaw().await {
                    Ok(()) => return,
                    Err(error) => tracing::error!(%error, "the guest's file systems stay frozen"),
                }
                sleep(ATTEMPTS.1).await;
            }
        });
        self.guest.thaw.begin(task.abort_handle());
    }

    fn note_freeze(&self, freeze: FreezeStatus) {
        self.board.change_status(|status| status.freeze = freeze_word(freeze).to_owned());
    }
}

/// Scripts in the guest run at each thaw, so only what is frozen is thawed.
async fn thaw(agent: &Agent) -> Result<(), AgentError> {
    if let Ok(FreezeStatus::Thawed) = agent.freeze_status().await {
        return Ok(());
    }
    agent.thaw().await.map(drop)
}
