//! Asking a connected agent again from time to time.

use std::sync::Arc;
use std::time::Duration;

use kubevirt_launcher_rpc::report::State;
use kubevirt_qemu::Agent;
use kubevirt_qemu::agent::AgentError;
use tokio::time::sleep;

use super::told::Told;
use crate::launcher::Launcher;
use crate::running::Running;

/// Pauses after the first rounds: a guest often has its addresses only a moment after its agent.
const EARLY: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(7), Duration::from_secs(20)];

/// The shortest pause between two rounds, whatever the arguments say.
const SHORTEST: Duration = Duration::from_secs(1);

/// What the agent is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topic {
    Agent,
    Freeze,
    Interfaces,
    System,
}

const TOPICS: [Topic; 4] = [Topic::Agent, Topic::Freeze, Topic::Interfaces, Topic::System];

/// How long to wait after a round, counted from 0.
fn pause(round: usize, regular: Duration) -> Duration {
    let regular = regular.max(SHORTEST);
    EARLY.get(round).map_or(regular, |early| regular.min(*early))
}

/// What to ask for in a round: at first only what changes soon, and what was not answered yet.
fn topics(round: usize, unanswered: &[Topic]) -> Vec<Topic> {
    let early = (1..=EARLY.len()).contains(&round);
    let due = |topic: &&Topic| !early || **topic == Topic::Interfaces || unanswered.contains(topic);
    TOPICS.iter().filter(due).copied().collect()
}

impl Launcher {
    /// Follows an agent until it goes, or its machine does.
    pub(super) async fn follow_agent(self: Arc<Self>, running: Arc<Running>, agent: Agent) {
        let work = async { tokio::join!(self.keep_fresh(&agent), self.keep_credentials(&agent)) };
        tokio::select! {
            _ = running.process.exited() => {}
            _ = work => {}
        }
    }

    async fn keep_fresh(&self, agent: &Agent) {
        let regular = self.arguments.qemu_agent_sys_interval;
        let mut states = self.board.follow();
        let mut unanswered = TOPICS.to_vec();
        for round in 0.. {
            // A guest that stands still answers nobody.
            if states.wait_for(|report| report.status.status == State::Running).await.is_err() {
                return;
            }
            let mut told = Told::default();
            for topic in topics(round, &unanswered) {
                match ask(agent, topic, &mut told).await {
                    Err(error) if is_silence(&error) => {
                        tracing::debug!(%error, "the guest agent is asked again later");
                        break;
                    }
                    Err(error) => tracing::debug!(%error, ?topic, "the guest agent does not tell"),
                    Ok(()) => {}
                }
                unanswered.retain(|one| *one != topic);
            }
            self.board.change_status(|status| told.write(status));
            sleep(pause(round, regular)).await;
        }
    }
}

/// Whether asking for anything else would be in vain too.
pub(super) fn is_silence(error: &AgentError) -> bool {
    matches!(error, AgentError::Silent { .. } | AgentError::Gone | AgentError::Unreachable(_))
}

async fn ask(agent: &Agent, topic: Topic, told: &mut Told) -> Result<(), AgentError> {
    match topic {
        Topic::Agent => told.info = Some(agent.info().await?),
        Topic::Freeze => told.freeze = Some(agent.freeze_status().await?),
        Topic::Interfaces => told.interfaces = Some(agent.interfaces().await?),
        Topic::System => told.os = Some(agent.os_info().await?),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_close_at_first_and_then_regular() {
        let regular = Duration::from_secs(120);
        let seconds: Vec<u64> = (0..6).map(|round| pause(round, regular).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 7, 20, 120, 120]);
        assert_eq!(pause(3, Duration::from_secs(10)).as_secs(), 10);
        assert_eq!(pause(9, Duration::ZERO), SHORTEST);
    }

    #[test]
    fn early_rounds_ask_for_little() {
        assert_eq!(topics(0, &TOPICS), TOPICS);
        assert_eq!(topics(1, &[]), [Topic::Interfaces]);
        assert_eq!(topics(4, &[Topic::System]), [Topic::Interfaces, Topic::System]);
        assert_eq!(topics(5, &[]), TOPICS);
    }
}
