//! The machine comes: a target that waits, receives and at last takes over.

use std::sync::Arc;

use kubevirt_api::names::annotations::TEST_BLOCK_TARGET_PREPARATION;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::qemu::names;
use kubevirt_domain::{Domain, for_migration_target};
use kubevirt_launcher_rpc::cmd::VirtualMachineOptions;
use kubevirt_launcher_rpc::migration::{SOCKETS, Stream};
use kubevirt_launcher_rpc::report::{MigrationReport, Reason, State};
use kubevirt_launcher_rpc::target::{CopiedDisk, ReceiveRequest, TakeOverRequest};
use kubevirt_qemu::Machine;
use kubevirt_qemu::machine::BlockNode;
use kubevirt_qemu::migration::{Channel, Incoming, MigrationStatus};
use tokio::sync::watch;

use super::pace::Mode;
use super::{service, socket_key, state, terms};
use crate::board::now;
use crate::error::CommandError;
use crate::launcher::{Launcher, Stage};
use crate::running::Running;
use crate::start::Way;
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
    },
    /// It will not come.
    Failed(String),
}

/// A machine on its way.
pub(super) struct Coming {
    migration: String,
    running: Arc<Running>,
    news: watch::Receiver<News>,
    /// Disks are offered to be written.
    disks: bool,
}

/// How much of the machine is here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum News {
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

    /// Starts a QEMU that waits for the machine.
    pub(super) async fn receive(self: &Arc<Self>, request: ReceiveRequest) -> Result<(), CommandError> {
        let mut arrival = self.migrations.arrival.lock().await;
        let (own, key) = match &*arrival {
            Arrival::Expected { own, key } => (own.clone(), key.clone()),
            Arrival::Coming(coming) if coming.migration == request.migration => return Ok(()),
            other => return Err(CommandError::CannotMigrate(other.words())),
        };
        let source: Domain = serde_json::from_slice(&request.domain)?;
        let domain = for_migration_target(&source, &own, &self.host.qemu().await?)?;
        self.intend(|intent| intent.arriving = true);
        let running = match self.boot(domain, Way::Incoming).await {
            Ok(running) => running,
            Err(error) => {
                self.intend(|intent| intent.arriving = false);
                return Err(error);
            }
        };
        let report = MigrationReport {
            uid: request.migration.clone(),
            start_timestamp: Some(now()),
            mode: Mode::PreCopy.as_str().to_owned(),
            ..MigrationReport::default()
        };
        self.board.change_status(|status| status.migration = Some(report));
        let incoming = match self.open(&running.machine, &request, &key).await {
            Ok(incoming) => incoming,
            Err(error) => {
                *arrival = Arrival::Failed(error.to_string());
                running.process.end().await;
                return Err(error);
            }
        };
        let (tell, news) = watch::channel(News::Moving);
        tokio::spawn(self.clone().follow(running.clone(), incoming, tell));
        let disks = !request.disks.is_empty();
        *arrival = Arrival::Coming(Coming { migration: request.migration, running, news, disks });
        Ok(())
    }

    /// Opens QEMU for disks and memory.
    async fn open(
        &self,
        machine: &Machine,
        request: &ReceiveRequest,
        key: &str,
    ) -> Result<Incoming, CommandError> {
        let share = &self.arguments.kubevirt_share_dir;
        if !request.disks.is_empty() {
            machine.start_nbd(&Stream::Disks.socket(share, key)).await?;
        }
        for disk in &request.disks {
            let node = names::node(&disk.name);
            machine.export(&node, &node, &node, true, &[]).await?;
            fit(machine, disk, &node).await?;
        }
        let options = terms::read(&request.options)?;
        let known = machine.migration_capabilities().await?;
        let settings = terms::settings(&options, &known, !request.disks.is_empty())?;
        Ok(machine.receive(&Channel::Unix(Stream::Memory.socket(share, key)), &settings).await?)
    }

    /// Follows an arrival to its end.
    async fn follow(
        self: Arc<Self>,
        running: Arc<Running>,
        mut incoming: Incoming,
        tell: watch::Sender<News>,
    ) {
        let mut outcome = incoming.until_runnable().await;
        if matches!(&outcome, Ok(progress) if progress.status == MigrationStatus::PostcopyActive) {
            self.change_migration(|report| report.mode = Mode::PostCopy.as_str().to_owned());
            tell.send_replace(News::Runnable);
            outcome = incoming.finish().await;
        }
        match outcome {
            Ok(_) => {
                tell.send_replace(News::Whole);
                if !self.intent().arriving {
                    self.change_migration(|report| report.end_timestamp = Some(now()));
                }
            }
            Err(error) => {
                let words = match running.process.exit() {
                    Some(exit) => exit.to_string(),
                    None => error.to_string(),
                };
                tracing::error!(error = words, "the machine has not arrived");
                self.change_migration(|report| {
                    report.end_timestamp = Some(now());
                    report.failed = true;
                    report.failure_reason.clone_from(&words);
                });
                tell.send_replace(News::Failed(words));
            }
        }
    }

    /// Waits until the guest could run here.
    pub(super) async fn confirm(&self, migration: &str) -> Result<(), CommandError> {
        let mut news = match &*self.migrations.arrival.lock().await {
            Arrival::Coming(coming) if coming.migration == migration => coming.news.clone(),
            other => return Err(CommandError::CannotMigrate(other.words())),
        };
        match news.wait_for(|news| *news != News::Moving).await.as_deref() {
            Ok(News::Failed(why)) => Err(CommandError::CannotMigrate(why.clone())),
            Ok(_) => Ok(()),
            Err(_) => Err(CommandError::CannotMigrate("the target is ending".into())),
        }
    }

    /// Makes the machine ours and lets it run. If that fails, nothing of it is left here.
    pub(super) async fn take_over(self: &Arc<Self>, request: &TakeOverRequest) -> Result<(), CommandError> {
        let mut arrival = self.migrations.arrival.lock().await;
        let coming = match &*arrival {
            Arrival::Coming(coming) if coming.migration == request.migration => coming,
            Arrival::TakenOver { migration } if *migration == request.migration => return Ok(()),
            other => return Err(CommandError::CannotMigrate(other.words())),
        };
        let (running, news) = (coming.running.clone(), coming.news.clone());
        if !matches!(*news.borrow(), News::Runnable | News::Whole) {
            return Err(CommandError::CannotMigrate("the machine is not here yet".into()));
        }
        if let Err(error) = self.begin_here(&running, coming.disks, request).await {
            self.drop_arrival(&mut arrival, "the guest cannot run here").await;
            return Err(error);
        }
        *arrival = Arrival::TakenOver { migration: request.migration.clone() };
        self.intend(|intent| intent.arriving = false);
        // Whoever of this and the follower comes last sees that both are done.
        if *news.borrow() == News::Whole {
            self.change_migration(|report| report.end_timestamp = Some(now()));
        }
        tokio::spawn(self.clone().settle(running));
        Ok(())
    }

    /// Gives the arrival up; there is no QEMU here afterwards.
    pub(super) async fn abandon(&self, migration: &str) -> Result<(), CommandError> {
        let mut arrival = self.migrations.arrival.lock().await;
        match &*arrival {
            Arrival::TakenOver { migration: taken } if taken == migration => {
                Err(CommandError::CannotMigrate("the machine was taken over".into()))
            }
            Arrival::Coming(coming) if coming.migration == migration => {
                self.drop_arrival(&mut arrival, "the source has given up").await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn drop_arrival(&self, arrival: &mut Arrival, why: &str) {
        if let Arrival::Coming(coming) = arrival {
            tracing::info!(why, "the machine does not come");
            coming.running.process.end().await;
            *arrival = Arrival::Failed(why.to_owned());
        }
    }

    async fn begin_here(
        &self,
        running: &Running,
        disks: bool,
        request: &TakeOverRequest,
    ) -> Result<(), CommandError> {
        if disks {
            running.machine.stop_nbd().await?;
        }
        if request.run {
            return self.resume(running).await;
        }
        let reason: Reason = serde_json::from_str(&request.reason).unwrap_or_default();
        self.board.change_status(|status| (status.status, status.reason) = (State::Paused, reason));
        Ok(())
    }
}

impl Arrival {
    /// Why a call of the source does not fit.
    fn words(&self) -> String {
        match self {
            Self::Nothing => "the target is not prepared".to_owned(),
            Self::Expected { .. } => "the target has not been told what to receive".to_owned(),
            Self::Coming(coming) => format!("the target receives migration {}", coming.migration),
            Self::TakenOver { migration } => format!("the target has what came with migration {migration}"),
            Self::Failed(why) => why.clone(),
        }
    }
}

/// Gives a disk the size that the guest knows.
async fn fit(machine: &Machine, disk: &CopiedDisk, node: &str) -> Result<(), CommandError> {
    let nodes = machine.blocks().await?;
    let size = nodes.iter().find(|one| one.name == node).map(BlockNode::size).unwrap_or_default();
    if size == disk.size {
        return Ok(());
    }
    let resized = machine.resize_block(node, disk.size).await;
    resized.map_err(|error| {
        let words = format!("volume {} has {size} bytes here, not {}: {error}", disk.name, disk.size);
        CommandError::CannotMigrate(words)
    })
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
