//! What the guest agent is asked and told by commands.

mod answers;
mod exec;
mod freeze;
mod ping;
mod under_way;

use std::time::Duration;

use kubevirt_api::vmi::guest_agent::{GuestAgentInfo, GuestFilesystemList, GuestUserList};
use kubevirt_qemu::agent::AgentError;

pub(crate) use self::under_way::Guest;
use crate::error::CommandError;
use crate::launcher::Launcher;

/// How many users and file systems are told with everything else.
const FIRST: usize = 10;

/// How long a question may take in all, also while the agent is busy with another.
pub(crate) const ANSWER: Duration = Duration::from_secs(15);

impl Launcher {
    /// The guest agent, its system, its users and its file systems.
    ///
    /// An agent does not answer all questions while file systems are frozen, and old ones do not know all of them;
    /// what is known from before, or nothing, is told then.
    pub async fn guest_info(&self) -> Result<GuestAgentInfo, CommandError> {
        let agent = self.connected_agent()?;
        let info = within(ANSWER, "guest-info", agent.info()).await?;
        let rest = async {
            (
                agent.host_name().await.ok(),
                agent.os_info().await.ok(),
                agent.time_zone().await.ok(),
                agent.users().await.unwrap_or_default(),
                agent.filesystems().await.unwrap_or_default(),
                agent.freeze_status().await.ok(),
            )
        };
        let (host_name, os, zone, users, filesystems, freeze) =
            within(ANSWER, "guest-get-osinfo", async { Ok(rest.await) }).await?;
        let status = self.board.report().status;
        Ok(GuestAgentInfo {
            guest_agent_version: info.version,
            supported_commands: answers::commands(info.supported_commands),
            hostname: host_name.unwrap_or_default(),
            os: os.map(answers::os).or_else(|| status.os_info.map(answers::known_os)).unwrap_or_default(),
            timezone: zone.map(|zone| answers::time_zone(&zone)).unwrap_or_default(),
            user_list: answers::users(users).take(FIRST).collect(),
            fs_info: answers::filesystems_of_info(filesystems, FIRST),
            fs_freeze_status: freeze.map_or(status.freeze, |freeze| answers::freeze(freeze).to_owned()),
        })
    }

    /// Who is logged in.
    pub async fn guest_users(&self) -> Result<GuestUserList, CommandError> {
        let agent = self.connected_agent()?;
        let users = within(ANSWER, "guest-get-users", agent.users()).await?;
        Ok(GuestUserList { items: answers::users(users).collect(), ..GuestUserList::default() })
    }

    /// What is mounted.
    pub async fn guest_filesystems(&self) -> Result<GuestFilesystemList, CommandError> {
        let agent = self.connected_agent()?;
        let told = within(ANSWER, "guest-get-fsinfo", agent.filesystems()).await?;
        let items = told.into_iter().map(answers::filesystem).collect();
        Ok(GuestFilesystemList { items, ..GuestFilesystemList::default() })
    }
}

/// Waits no longer than this. An agent has a deadline for each answer of its own, but others may be in front of us.
pub(crate) async fn within<T>(
    limit: Duration,
    command: &str,
    asked: impl Future<Output = Result<T, AgentError>>,
) -> Result<T, AgentError> {
    let silent = || AgentError::Silent { command: command.to_owned(), after: limit };
    tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| Err(silent()))
}

/// A time limit of a request; zero and less mean that it has none of its own.
fn seconds(asked: i32, otherwise: Duration) -> Duration {
    u64::try_from(asked).ok().filter(|asked| *asked > 0).map_or(otherwise, Duration::from_secs)
}
