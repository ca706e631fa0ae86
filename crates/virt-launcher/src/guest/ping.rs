//! Whether the guest agent answers, for probes.

use std::time::Duration;

use kubevirt_api::names::{annotations, events};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_launcher_rpc::report::{Reason, State};
use kubevirt_qemu::agent::DEFAULT_PATIENCE;

use super::{seconds, within};
use crate::board::Notice;
use crate::error::CommandError;
use crate::launcher::Launcher;

impl Launcher {
    /// Whether the agent answers. A guest that has a good reason for its silence counts as one that does.
    pub async fn guest_ping(&self, timeout_seconds: i32) -> Result<(), CommandError> {
        if self.vmi().is_some_and(|vmi| probes_are_paused(&vmi)) {
            return Ok(());
        }
        let Err(error) = self.ping_agent(seconds(timeout_seconds, DEFAULT_PATIENCE)).await else {
            return Ok(());
        };
        let (state, reason) = self.state();
        if matches!(error, CommandError::NotRunning)
            || self.intent().migrating
            || may_be_silent(state, reason)
        {
            return Ok(());
        }
        let message = format!("The guest agent of VMI {} does not answer a probe", self.arguments.name);
        self.board.notice(Notice { kind: "Warning", reason: events::vmi::GUEST_AGENT_PING_FAILED, message });
        Err(error)
    }

    async fn ping_agent(&self, limit: Duration) -> Result<(), CommandError> {
        let agent = self.connected_agent()?.patient(limit);
        Ok(within(limit, "guest-ping", agent.ping()).await?)
    }
}

fn probes_are_paused(vmi: &VirtualMachineInstance) -> bool {
    let annotation = vmi.metadata.annotations.as_ref().and_then(|all| {
        let value = all.get(annotations::PAUSE_GUEST_AGENT_PROBES)?;
        Some(value.as_str())
    });
    matches!(annotation, Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
}

/// Whether the guest stands still because somebody wants it to.
fn may_be_silent(state: State, reason: Reason) -> bool {
    use Reason::{Dump, Migration, Postcopy, Shutdown, StartingUp, User};
    state == State::Paused && matches!(reason, User | Migration | Dump | Shutdown | StartingUp | Postcopy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paused_guest_may_be_silent_unless_it_failed() {
        for (state, reason, expected) in [
            (State::Running, Reason::Unknown, false),
            (State::Paused, Reason::User, true),
            (State::Paused, Reason::Migration, true),
            (State::Paused, Reason::Dump, true),
            (State::Paused, Reason::IoError, false),
            (State::Paused, Reason::Watchdog, false),
            (State::Crashed, Reason::Panicked, false),
        ] {
            assert_eq!(may_be_silent(state, reason), expected, "{state:?} {reason:?}");
        }
    }

    #[test]
    fn an_annotation_pauses_probes() {
        let mut vmi = VirtualMachineInstance::default();
        assert!(!probes_are_paused(&vmi));
        for (value, expected) in [("true", true), ("1", true), ("false", false), ("", false)] {
            let name = annotations::PAUSE_GUEST_AGENT_PROBES.to_owned();
            vmi.metadata.annotations = Some([(name, value.to_owned())].into());
            assert_eq!(probes_are_paused(&vmi), expected, "{value:?}");
        }
    }
}
