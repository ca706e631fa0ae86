//! The machine comes: a target that is prepared, and one that nothing comes to.

use std::sync::Arc;

use kubevirt_api::names::annotations::TEST_BLOCK_TARGET_PREPARATION;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Domain;
use kubevirt_launcher_rpc::cmd::VirtualMachineOptions;
use kubevirt_launcher_rpc::migration::{SOCKETS, Stream};
use tokio::sync::watch;

use super::{service, socket_key, state};
use crate::error::CommandError;
use crate::launcher::{Launcher, Stage};
use crate::running::Running;
use crate::volumes::Purpose;

/// What comes here.
#[derive(Default)]
pub(super) enum Arrival {
    /// Nobody spoke of it.
    #[default]
    Nothing,
    /// All is ready for a machine that shall come.
    Expected {
        /// What the VMI comes to on this host.
        own: Box<Domain>,
        /// What names the sockets.
        key: String,
    },
    /// There is a QEMU that it comes to.
    Coming(Coming),
    /// It is here and ours.
    TakenOver {
        /// UID of the migration.
        migration: String,
        /// What names the sockets.
        key: String,
    },
    /// It will not come.
    Failed(String),
}

/// A machine on its way.
pub(super) struct Coming {
    /// UID of the migration.
    pub(super) migration: String,
    /// The QEMU that it comes to.
    pub(super) running: Arc<Running>,
    /// How much of it is here.
    pub(super) news: watch::Receiver<News>,
    /// What names the sockets.
    pub(super) key: String,
    /// Disks are offered to be written.
    pub(super) disks: bool,
}

/// How much of the machine is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Not enough.
    Moving,
    /// Enough to run, while the rest of its memory follows.
    Runnable,
    /// All.
    Whole,
    /// It will not come.
    Failed(String),
}

impl Coming {
    /// Whether it may still arrive.
    fn check(&self) -> Result<(), CommandError> {
        match &*self.news.borrow() {
            News::Failed(why) => Err(CommandError::CannotMigrate(why.clone())),
            _ => Ok(()),
        }
    }
}

impl Launcher {
    /// Gets ready to receive the machine. It is asked for again and again until the machine is here.
    pub async fn prepare_target(
        self: &Arc<Self>,
        vmi: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        let _work = self.work.lock().await;
        let mut arrival = self.migrations.arrival.lock().await;
        match &*arrival {
            Arrival::Coming(coming) => return coming.check(),
            Arrival::TakenOver { .. } => return Ok(()),
            Arrival::Failed(why) => return Err(CommandError::CannotMigrate(why.clone())),
            Arrival::Nothing if self.stage() != Stage::Waiting => {
                return Err(CommandError::CannotMigrate("there is, or was, a virtual machine here".into()));
            }
            Arrival::Nothing | Arrival::Expected { .. } => {}
        }
        self.remember(vmi);
        let own = Box::new(self.prepare(vmi, options, Purpose::MigrationTarget).await?);
        let annotations = vmi.metadata.annotations.as_ref();
        if annotations.is_some_and(|all| all.contains_key(TEST_BLOCK_TARGET_PREPARATION)) {
            return Err(CommandError::CannotMigrate("the annotation of a test asks for this failure".into()));
        }
        let key = socket_key(vmi).to_owned();
        if matches!(*arrival, Arrival::Nothing) {
            let folder = self.arguments.kubevirt_share_dir.join(SOCKETS);
            let listening = std::fs::create_dir_all(&folder).and_then(|()| {
                service::listen(
                    self.clone(),
                    &Stream::Control.socket(&self.arguments.kubevirt_share_dir, &key),
                )
            });
            listening.map_err(CommandError::io(format!("cannot listen in {}", folder.display())))?;
            tracing::info!("ready to receive the machine");
        }
        *arrival = Arrival::Expected { own, key };
        Ok(())
    }

    /// Nothing will arrive: the launcher ends, unless the machine is here already.
    pub async fn dismiss_target(
        &self,
        vmi: &VirtualMachineInstance,
        _: &VirtualMachineOptions,
    ) -> Result<(), CommandError> {
        if !is_target_pod(vmi, &std::env::var("POD_NAME").unwrap_or_default()) {
            return Ok(());
        }
        let mut arrival = self.migrations.arrival.lock().await;
        match &*arrival {
            Arrival::TakenOver { .. } => {}
            Arrival::Coming(_) => {
                self.intend(|intent| intent.killed = true);
                self.drop_arrival(&mut arrival, "the target was dismissed").await;
            }
            _ if self.stage() == Stage::Waiting => self.set_stage(Stage::Dismissed),
            _ => {}
        }
        Ok(())
    }
}

impl Arrival {
    /// Why a call of the source does not fit.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Nothing => "the target is not prepared".to_owned(),
            Self::Expected { .. } => "the target has not been told what to receive".to_owned(),
            Self::Coming(coming) => format!("the target receives migration {}", coming.migration),
            Self::TakenOver { migration, .. } => {
                format!("the target has what came with migration {migration}")
            }
            Self::Failed(why) => why.clone(),
        }
    }
}

/// Whether the VMI names this pod as the one that it migrates to.
fn is_target_pod(vmi: &VirtualMachineInstance, pod: &str) -> bool {
    let target = state(vmi).and_then(|state| state.target_pod.as_deref());
    !pod.is_empty() && target == Some(pod)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_target_is_dismissed() {
        let vmi = |target: Option<&str>| -> VirtualMachineInstance {
            let vmi = json!({
                "metadata": { "name": "a" },
                "spec": { "domain": { "devices": {} } },
                "status": { "migrationState": { "targetPod": target } },
            });
            serde_json::from_value(vmi).unwrap()
        };
        assert!(is_target_pod(&vmi(Some("pod-2")), "pod-2"));
        assert!(!is_target_pod(&vmi(Some("pod-2")), "pod-1"));
        assert!(!is_target_pod(&vmi(Some("")), ""));
        assert!(!is_target_pod(&vmi(None), "pod-1"));
    }
}
