//! SSH keys and passwords of Secrets, brought into the guest and kept up to date there.

mod changes;
mod keys;
mod wanted;

use std::path::{Path, PathBuf};
use std::time::Duration;

use kubevirt_api::names::events;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_launcher_rpc::report::Outcome;
use kubevirt_qemu::Agent;
use tokio::time::{sleep, timeout};

use self::changes::Changes;
use self::wanted::{Wanted, secrets};
use crate::board::Notice;
use crate::launcher::Launcher;

/// Pause before another attempt after a failure.
const AGAIN: Duration = Duration::from_secs(15);

/// Changes that come shortly after each other are taken together.
const SETTLE: Duration = Duration::from_millis(500);

impl Launcher {
    /// Tells of a new machine that its credentials wait for the agent.
    pub(crate) fn expect_credentials(&self, vmi: &VirtualMachineInstance) {
        if secrets(vmi).is_empty() {
            return;
        }
        self.board.change_status(|status| {
            let message = "the guest agent is not connected yet".to_owned();
            status.access_credential.get_or_insert(Outcome { succeeded: false, message });
        });
    }

    /// Brings the credentials of the VMI into the guest, now and whenever they change.
    pub(super) async fn keep_credentials(&self, agent: &Agent) {
        let Some(vmi) = self.vmi().filter(|vmi| !secrets(vmi).is_empty()) else { return };
        let folders: Vec<PathBuf> = secrets(&vmi).into_iter().map(|name| self.secret(name)).collect();
        loop {
            // Watched before they are read, so that no change falls in between.
            let changes = Changes::of(&folders);
            let failures = self.bring_credentials(&vmi, agent).await;
            let done = failures.is_empty();
            self.tell_credentials(failures.join("; "));
            match changes {
                Ok(mut changes) if done => changes.next().await,
                Ok(mut changes) => drop(timeout(AGAIN, changes.next()).await),
                Err(error) => {
                    tracing::warn!(%error, "credentials cannot be watched");
                    sleep(AGAIN).await;
                }
            }
            sleep(SETTLE).await;
        }
    }

    /// Where a Secret with credentials is mounted.
    fn secret(&self, name: &str) -> PathBuf {
        Path::new(&self.layout.private).join("secret").join(format!("{name}-access-cred"))
    }

    /// Brings everything into the guest that can be, and tells what could not.
    async fn bring_credentials(&self, vmi: &VirtualMachineInstance, agent: &Agent) -> Vec<String> {
        let (wanted, mut failures) = Wanted::read(vmi, |name| wanted::read_folder(&self.secret(name)));
        for (user, keys) in &wanted.keys {
            if let Err(error) = keys::set(agent, user, keys).await {
                failures.push(format!("the SSH keys of user {user}: {error}"));
            }
        }
        for (user, password) in &wanted.passwords {
            if let Err(error) = agent.set_password(user, password, false).await {
                failures.push(format!("the password of user {user}: {error}"));
            }
        }
        failures
    }

    /// Tells what came of it, to users only if it is something else than before.
    fn tell_credentials(&self, message: String) {
        let outcome = Outcome { succeeded: message.is_empty(), message };
        if self.board.report().status.access_credential.as_ref() == Some(&outcome) {
            return;
        }
        let notice = if outcome.succeeded {
            let message = "The guest has its access credentials".to_owned();
            Notice { kind: "Normal", reason: events::vmi::ACCESS_CREDENTIALS_SYNC_SUCCESS, message }
        } else {
            let message = format!("The guest lacks access credentials: {}", outcome.message);
            Notice { kind: "Warning", reason: events::vmi::ACCESS_CREDENTIALS_SYNC_FAILED, message }
        };
        self.board.notice(notice);
        self.board.change_status(|status| status.access_credential = Some(outcome));
    }
}
