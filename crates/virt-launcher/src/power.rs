//! Pausing, resetting, shutting down and ending the machine.

use std::time::Duration;

use kubevirt_launcher_rpc::report::{Reason, State};
use kubevirt_qemu::machine::RunState;

use crate::error::CommandError;
use crate::launcher::{Launcher, Stage};
use crate::running::Running;

/// How long QEMU may take to leave by itself, which flushes its disks, before it is killed.
const LEAVE: Duration = Duration::from_secs(5);

/// How a guest is asked to shut down or reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Button,
    Agent,
}

/// A guest without ACPI has no power button; only its agent can hear us.
fn ask(acpi: bool, agent: bool) -> Result<Ask, CommandError> {
    match (acpi, agent) {
        (true, _) => Ok(Ask::Button),
        (false, true) => Ok(Ask::Agent),
        (false, false) => Err(CommandError::NoAgent),
    }
}

impl Launcher {
    /// Stops the guest's CPUs. A machine that stands still already stays as it is.
    pub async fn pause(&self) -> Result<(), CommandError> {
        let running = self.running()?;
        if self.state().0 == State::Running {
            self.intend(|intent| intent.stop = Some(Reason::User));
            running.machine.pause().await?;
            self.board.change_status(|status| {
                (status.status, status.reason) = (State::Paused, Reason::User);
            });
        }
        Ok(())
    }

    /// Lets the guest's CPUs run again.
    pub async fn unpause(&self) -> Result<(), CommandError> {
        let running = self.running()?;
        match self.state() {
            // Parts of its memory are on either side: it would not be the same guest.
            (State::Paused, Reason::PostcopyFailed) => Err(CommandError::CannotMigrate(
                "the guest's memory can no longer follow it; restart the virtual machine".into(),
            )),
            (State::Paused, _) => self.resume(&running).await,
            _ => Ok(()),
        }
    }

    /// Lets the guest run, and says so.
    pub(crate) async fn resume(&self, running: &Running) -> Result<(), CommandError> {
        running.machine.resume().await?;
        self.intend(|intent| intent.stop = None);
        self.board.change_status(|status| {
            (status.status, status.reason) = (State::Running, Reason::Unknown);
        });
        Ok(())
    }

    /// Presses the reset button.
    pub async fn reset(&self) -> Result<(), CommandError> {
        Ok(self.running()?.machine.reset().await?)
    }

    /// Asks the guest to reboot.
    ///
    /// Without an agent the guest can only be asked to shut down; the machine is then started anew when it has.
    pub async fn soft_reboot(&self) -> Result<(), CommandError> {
        let running = self.running()?;
        if let Some(agent) = self.agent(&running)
            && agent.reboot().await.is_ok()
        {
            return Ok(());
        }
        ask(running.domain().machine.acpi, false)?;
        self.intend(|intent| intent.reboot = true);
        Ok(running.machine.powerdown().await?)
    }

    /// Asks the guest to shut down. It may take its time; whoever asks decides when to [`kill`](Self::kill).
    pub async fn shut_down(&self) -> Result<(), CommandError> {
        let running = self.running()?;
        self.note_grace(i64::from(self.arguments.grace_period_seconds));
        self.intend(|intent| intent.reboot = false);
        let agent = self.agent(&running);
        match ask(running.domain().machine.acpi, agent.is_some())? {
            Ask::Button => running.machine.powerdown().await?,
            Ask::Agent => agent.ok_or(CommandError::NoAgent)?.power_off().await?,
        }
        Ok(())
    }

    /// Ends the machine now. One that has ended already is fine.
    pub async fn kill(&self) -> Result<(), CommandError> {
        let Ok(running) = self.running() else { return Ok(()) };
        self.intend(|intent| intent.killed = true);
        running.process.quit(&running.machine, LEAVE).await;
        Ok(())
    }

    /// Forgets the machine: one that runs is ended, and without one there is nothing to wait for any more.
    pub async fn delete(&self) -> Result<(), CommandError> {
        if self.running().is_err() {
            self.dismiss().await;
        }
        self.kill().await
    }

    /// Ends the launcher if it never had a machine.
    async fn dismiss(&self) {
        // A machine that is being started comes first, and is then there to be ended.
        let _work = self.work.lock().await;
        // What is on its way here belongs to its source, which may still need the target.
        if self.stage() == Stage::Waiting && !self.is_target().await {
            tracing::info!("no machine is wanted any more");
            self.set_stage(Stage::Dismissed);
        }
    }

    /// Asks the guest to shut down and ends the machine if it has not within its grace period.
    pub async fn shut_down_gracefully(&self) {
        let Ok(running) = self.running() else { return };
        if self.intent().arriving {
            // There is no guest yet that could be asked.
            let _ = self.kill().await;
            return;
        }
        if let Err(error) = self.shut_down().await {
            tracing::warn!(%error, "the guest cannot be asked to shut down");
        }
        let grace = Duration::from_secs(u64::from(self.arguments.grace_period_seconds));
        if tokio::time::timeout(grace, running.process.exited()).await.is_err() {
            tracing::warn!(?grace, "the guest has not shut down in time, the machine is ended");
            // Nothing to be done about an error: ending is the last resort already.
            let _ = self.kill().await;
        }
    }

    /// Whether QEMU answers; a machine that does not exist is no problem.
    pub async fn check(&self) -> Result<(), CommandError> {
        let Ok(running) = self.running() else { return Ok(()) };
        let status = running.machine.status().await;
        self.board.change_status(|told| {
            told.message = status.as_ref().map_or_else(ToString::to_string, |_| String::new());
        });
        match status? {
            RunState::InternalError => Err(CommandError::Unsupported("QEMU met an internal error".into())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_acpi_only_the_agent_can_be_asked() {
        assert_eq!(ask(true, true).ok(), Some(Ask::Button));
        assert_eq!(ask(true, false).ok(), Some(Ask::Button));
        assert_eq!(ask(false, true).ok(), Some(Ask::Agent));
        assert!(matches!(ask(false, false), Err(CommandError::NoAgent)));
    }
}
