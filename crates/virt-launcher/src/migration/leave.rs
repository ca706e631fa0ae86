//! The machine goes: what is done in which order, and undone if it fails.

use std::sync::Arc;
use std::time::Duration;

use kubevirt_api::names::annotations::TEST_FORCE_MIGRATION_FAILURE;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Domain;
use kubevirt_domain::change::{self, Step as ChangeStep};
use kubevirt_domain::qemu::names;
use kubevirt_launcher_rpc::migration::{MigrationOptions, Stream};
use kubevirt_launcher_rpc::target::{CopiedDisk, ReceiveRequest};
use kubevirt_qemu::machine::{BlockNode, UnplugError};
use kubevirt_qemu::migration::{MigrationStatus, Progress};
use tokio::sync::watch;
use tokio::time::timeout;

use super::link::Link;
use super::mirror::Mirrors;
use super::pace::{Limits, Mode, Pace};
use super::stall::Stall;
use super::{socket_key, terms, volumes};
use crate::launcher::Launcher;
use crate::running::Running;

/// How long the guest may take to let a device go.
const UNPLUG: Duration = Duration::from_secs(30);
/// How long QEMU may take to give up before its connections are cut.
const GIVE_UP: Duration = Duration::from_secs(10);

/// Why the machine has not moved.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// Somebody wanted it so.
    #[error("the migration was cancelled")]
    Cancelled,
    /// It took too long.
    #[error("the migration was given up: {0}")]
    GaveUp(String),
    /// Something failed, and the machine is still here.
    #[error("{0}")]
    Stays(String),
    /// Something failed after the machine may have begun to run on the target.
    #[error("{0}; the guest stands still here, since it may run on the target")]
    Unknown(String),
}

impl Failure {
    /// Whether the machine is surely here.
    pub(super) fn is_here(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }
}

/// Something failed, and the machine is still here.
pub(super) fn stays(error: impl ToString) -> Failure {
    Failure::Stays(error.to_string())
}

/// A migration from here.
pub(super) struct Trip {
    pub(super) launcher: Arc<Launcher>,
    pub(super) running: Arc<Running>,
    pub(super) vmi: VirtualMachineInstance,
    pub(super) options: MigrationOptions,
    pub(super) uid: String,
    pub(super) cancel: watch::Receiver<bool>,
    pub(super) mode: Mode,
    /// QEMU was told to move the guest's memory.
    pub(super) moving: bool,
    /// The guest may run on the target.
    pub(super) away: bool,
    pub(super) limits: Limits,
    pub(super) pace: Pace,
    /// How to tell that it has stalled, if not by the clock alone.
    pub(super) stall: Option<Stall>,
    pub(super) target: Option<Link>,
    pub(super) mirrors: Option<Mirrors>,
}

impl Trip {
    /// Makes the trip, and draws the conclusions.
    pub(super) async fn make(mut self) {
        let failure = match self.go().await {
            Ok(progress) => return self.launcher.has_left(&self.running, &progress).await,
            Err(failure) if self.may_be_away().await => Failure::Unknown(failure.to_string()),
            Err(failure) => failure,
        };
        if failure.is_here() {
            self.turn_back().await;
        }
        self.launcher.has_stayed(&self.running, &failure).await;
    }

    /// Whether QEMU may have let go of the guest before all of it was on the target. It cannot take it back.
    async fn may_be_away(&self) -> bool {
        if self.away || self.mode != Mode::PostCopy {
            return self.away;
        }
        match self.running.machine.migration_progress().await {
            Ok(progress) => !matches!(
                progress.status,
                MigrationStatus::Active | MigrationStatus::Failed | MigrationStatus::Cancelled
            ),
            Err(error) => !error.is_gone(),
        }
    }

    /// Undoes what was begun, as far as it goes: nothing moves any more and the target has nothing.
    async fn turn_back(&mut self) {
        if self.moving {
            self.stop_moving().await;
        }
        if let Some(target) = &mut self.target
            && let Err(error) = target.abandon().await
        {
            tracing::warn!(%error, "the target cannot be told that the machine stays");
        }
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.give_up().await;
        }
    }

    /// Has QEMU give up what it moves. It may have given up already, or be done: nobody was handed anything.
    async fn stop_moving(&self) {
        let migration = self.running.machine.migration();
        if migration.cancel().await.is_err() {
            return;
        }
        if timeout(GIVE_UP, migration.finish()).await.is_err() {
            tracing::warn!("QEMU does not give up by itself, its connections are cut");
            let migration = self.running.machine.migration();
            let cut = migration.cut().await;
            let ended = timeout(GIVE_UP, migration.finish()).await;
            tracing::info!(?cut, ?ended, "the connections were cut");
        }
    }

    async fn go(&mut self) -> Result<Progress, Failure> {
        let annotations = self.vmi.metadata.annotations.as_ref();
        if annotations.is_some_and(|all| all.contains_key(TEST_FORCE_MIGRATION_FAILURE)) {
            return Err(stays("the annotation of a test asks for this failure"));
        }
        self.let_devices_go().await?;
        let domain = self.running.domain();
        let copied = volumes::to_copy(&domain, &self.vmi, &self.options).map_err(stays)?;
        let disks = self.disks(&copied).await?;
        let known = self.running.machine.migration_capabilities().await.map_err(stays)?;
        let settings = terms::settings(&self.options, &known, !disks.is_empty()).map_err(stays)?;
        let bytes = disks.iter().map(|disk| disk.size).sum::<u64>() + memory(&domain);
        self.limits = terms::limits(&self.options, bytes);
        let downtime = Duration::from_millis(terms::downtime(&self.options));
        let stall = |options| Stall::new(options, self.limits.clone(), downtime);
        self.stall = self.options.stall_detector_options.clone().map(stall);
        self.reach_target(&domain, &disks).await?;
        if !disks.is_empty() {
            let mut mirrors = Mirrors::new(self.running.machine.clone());
            let copied = self.copy_disks(&mut mirrors, &domain, &disks).await;
            self.mirrors = Some(mirrors);
            copied?;
        }
        self.copy_memory(&settings).await
    }

    /// Takes out what cannot move; a sync on the other side puts the like back in.
    async fn let_devices_go(&self) -> Result<(), Failure> {
        let mut domain = self.running.domain();
        for change in change::before_migration(&domain) {
            for step in change.steps(&domain) {
                match step {
                    ChangeStep::Unplug { device } => match self.running.machine.unplug(&device, UNPLUG).await
                    {
                        Ok(()) | Err(UnplugError::NoSuchDevice { .. }) => {}
                        Err(error) => return Err(stays(error)),
                    },
                    ChangeStep::Clean(command) => {
                        // It is fine if that is gone already.
                        let qmp = self.running.machine.qmp();
                        let _ = qmp.run(command.execute, command.arguments).await;
                    }
                    other => return Err(stays(format_args!("a device cannot be taken out: {other:?}"))),
                }
            }
            change.apply(&mut domain);
            self.running.set_domain(domain.clone());
        }
        Ok(())
    }

    /// The disks to copy with the sizes that the guest sees.
    async fn disks(&self, names: &[String]) -> Result<Vec<CopiedDisk>, Failure> {
        let nodes = self.running.machine.blocks().await.map_err(stays)?;
        let size = |name: &String| {
            let node = names::node(name);
            let found = nodes.iter().find(|one| one.name == node).map(BlockNode::size);
            let missing = || stays(format_args!("QEMU does not know the disk {name}"));
            Ok(CopiedDisk { name: name.clone(), size: found.ok_or_else(missing)? })
        };
        names.iter().map(size).collect()
    }

    /// Where a stream to the target begins.
    pub(super) fn socket(&self, stream: Stream) -> std::path::PathBuf {
        let key = self.vmi.metadata.uid.as_deref().unwrap_or_else(|| socket_key(&self.vmi));
        stream.socket(&self.launcher.arguments.kubevirt_share_dir, key)
    }

    async fn reach_target(&mut self, domain: &Domain, disks: &[CopiedDisk]) -> Result<(), Failure> {
        let request = ReceiveRequest {
            migration: self.uid.clone(),
            domain: serde_json::to_vec(domain).map_err(stays)?,
            options: serde_json::to_vec(&self.options).map_err(stays)?,
            disks: disks.to_vec(),
        };
        let socket = self.socket(Stream::Control);
        let link = unless_cancelled(&mut self.cancel, Link::open(&socket, &self.uid)).await?;
        let target = self.target.insert(link.map_err(stays)?);
        unless_cancelled(&mut self.cancel, target.receive(request)).await?.map_err(stays)
    }
}

/// Bytes of memory that may have to move.
fn memory(domain: &Domain) -> u64 {
    domain.memory.size + domain.memory.hotplug.as_ref().map_or(0, |hotplug| hotplug.requested)
}

/// Resolves once somebody wants the migration cancelled.
async fn asked(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Does it, unless somebody wants the migration cancelled.
pub(super) async fn unless_cancelled<T>(
    cancel: &mut watch::Receiver<bool>,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    tokio::select! {
        () = asked(cancel) => Err(Failure::Cancelled),
        done = work => Ok(done),
    }
}
