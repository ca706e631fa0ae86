//! The machine comes: QEMU is started for it and its state arrives.

use std::sync::Arc;

use kubevirt_domain::qemu::names;
use kubevirt_domain::{Domain, for_migration_target};
use kubevirt_launcher_rpc::migration::Stream;
use kubevirt_launcher_rpc::report::MigrationReport;
use kubevirt_launcher_rpc::target::{CopiedDisk, ReceiveRequest};
use kubevirt_qemu::Machine;
use kubevirt_qemu::machine::BlockNode;
use kubevirt_qemu::migration::{Channel, Incoming, MigrationStatus};
use tokio::sync::watch;

use super::arrival::{Arrival, Coming, News};
use super::pace::Mode;
use super::terms;
use crate::board::now;
use crate::error::CommandError;
use crate::launcher::Launcher;
use crate::running::Running;
use crate::start::Way;

impl Launcher {
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
        *arrival = Arrival::Coming(Coming { migration: request.migration, running, news, key, disks });
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
