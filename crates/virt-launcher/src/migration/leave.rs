//! The machine goes: what is moved in which order, and what ends it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kubevirt_api::names::annotations::TEST_FORCE_MIGRATION_FAILURE;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Domain;
use kubevirt_domain::change::{self, Step as ChangeStep};
use kubevirt_domain::qemu::names;
use kubevirt_launcher_rpc::migration::{MigrationOptions, Stream};
use kubevirt_launcher_rpc::report::MigrationProgress;
use kubevirt_launcher_rpc::target::{CopiedDisk, ReceiveRequest};
use kubevirt_qemu::machine::{BlockNode, UnplugError};
use kubevirt_qemu::migration::{Channel, Migration, MigrationStatus, Progress, Settings};
use tokio::sync::watch;

use super::link::{Link, LinkError};
use super::mirror::Mirrors;
use super::pace::{Limits, Mode, Pace, Step, next_step};
use super::{socket_key, terms, volumes};
use crate::launcher::Launcher;
use crate::running::Running;

/// How often progress is asked for.
const BEAT: Duration = Duration::from_secs(1);
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
fn stays(error: impl ToString) -> Failure {
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
    /// The guest may run on the target.
    pub(super) away: bool,
    pub(super) limits: Limits,
    pub(super) pace: Pace,
    pub(super) target: Option<Link>,
    pub(super) mirrors: Option<Mirrors>,
}

impl Trip {
    /// Makes the trip, and draws the conclusions.
    pub(super) async fn make(mut self) {
        match self.go().await {
            Ok(progress) => self.launcher.has_left(&self.running, &progress).await,
            Err(failure) => {
                let failure = match failure {
                    failure if !self.away => failure,
                    failure => Failure::Unknown(failure.to_string()),
                };
                if let (true, Some(target)) = (failure.is_here(), &mut self.target)
                    && let Err(error) = target.abandon().await
                {
                    tracing::warn!(%error, "the target cannot be told that the machine stays");
                }
                if let Some(mirrors) = &mut self.mirrors {
                    mirrors.give_up().await;
                }
                self.launcher.has_stayed(&self.running, &failure).await;
            }
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

    fn socket(&self, stream: Stream) -> std::path::PathBuf {
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

    async fn copy_disks(
        &mut self,
        mirrors: &mut Mirrors,
        domain: &Domain,
        disks: &[CopiedDisk],
    ) -> Result<(), Failure> {
        let socket = self.socket(Stream::Disks);
        let speed = terms::bandwidth(&self.options).map_err(stays)?;
        for disk in disks {
            mirrors.add(disk, domain, &socket, speed).await.map_err(stays)?;
        }
        loop {
            let news = unless_cancelled(&mut self.cancel, mirrors.next(BEAT)).await?.map_err(stays)?;
            if news.ready {
                return Ok(());
            }
            match self.observe(news.progress) {
                Step::Continue => {}
                // Only memory can follow a guest that runs elsewhere.
                Step::Pause | Step::Postcopy => self.pause().await?,
                Step::Abort(reason) => return Err(Failure::GaveUp(reason)),
            }
        }
    }

    async fn copy_memory(&mut self, settings: &Settings) -> Result<Progress, Failure> {
        let channel = Channel::Unix(self.socket(Stream::Memory));
        let mut migration = self.running.machine.migrate(&channel, settings).await.map_err(stays)?;
        let mut given_up: Option<(Failure, Instant)> = None;
        loop {
            let progress = tokio::select! {
                progress = migration.next(BEAT) => progress.map_err(stays)?,
                () = asked(&mut self.cancel), if given_up.is_none() => {
                    migration.cancel().await.map_err(stays)?;
                    given_up = Some((Failure::Cancelled, Instant::now()));
                    continue;
                }
            };
            let Some(progress) = progress else { return Err(stays("QEMU does not tell how it ended")) };
            match self.follow(&mut migration, &progress, given_up.is_some()).await? {
                Step::Abort(reason) => {
                    migration.cancel().await.map_err(stays)?;
                    given_up = Some((Failure::GaveUp(reason), Instant::now()));
                }
                Step::Postcopy => {
                    self.enter(Mode::PostCopy);
                    migration.start_postcopy().await.map_err(stays)?;
                }
                Step::Pause => self.pause().await?,
                Step::Continue => {}
            }
            match (&progress.status, given_up.take()) {
                (MigrationStatus::Completed, None) => return Ok(progress),
                (MigrationStatus::Completed | MigrationStatus::Failed | MigrationStatus::Cancelled, why) => {
                    let words = progress.error_desc.as_deref().unwrap_or("QEMU gives no reason");
                    let failed = || stays(format_args!("moving the guest's memory failed: {words}"));
                    return Err(why.map_or_else(failed, |(why, _)| why));
                }
                (_, Some((why, since))) => {
                    if since.elapsed() > GIVE_UP {
                        tracing::warn!("QEMU does not give up by itself, its connections are cut");
                        migration.cut().await.map_err(stays)?;
                    }
                    given_up = Some((why, since));
                }
                (_, None) => {}
            }
        }
    }

    /// Does what the phase of the migration asks for, and says what patience asks for.
    async fn follow(
        &mut self,
        migration: &mut Migration,
        progress: &Progress,
        given_up: bool,
    ) -> Result<Step, Failure> {
        let ram = progress.ram.as_ref().map(|ram| MigrationProgress {
            transferred: ram.transferred,
            remaining: ram.remaining,
            total: ram.total,
        });
        let step = ram.map_or(Step::Continue, |ram| self.observe(ram));
        match progress.status {
            _ if given_up => {}
            MigrationStatus::PreSwitchover => {
                if let Some(mirrors) = &mut self.mirrors {
                    mirrors.detach().await.map_err(stays)?;
                }
                migration.switch_over().await.map_err(stays)?;
            }
            MigrationStatus::PostcopyActive if !self.away => {
                self.enter(Mode::PostCopy);
                self.away = true;
                self.hand_over().await?;
            }
            MigrationStatus::PostcopyPaused => {
                return Err(stays("the connection broke while the guest's memory followed it"));
            }
            MigrationStatus::Completed if !self.away => self.hand_over().await?,
            MigrationStatus::Active => return Ok(step),
            _ => {}
        }
        Ok(Step::Continue)
    }

    /// From here on the machine belongs to the target.
    async fn hand_over(&mut self) -> Result<(), Failure> {
        let Some(target) = &mut self.target else { return Err(stays("there is no target")) };
        target.confirm().await.map_err(stays)?;
        if *self.cancel.borrow() && !self.away {
            return Err(Failure::Cancelled);
        }
        let (run, reason) = self.launcher.fate();
        let reason = serde_json::to_string(&reason).unwrap_or_default();
        match target.take_over(run, &reason).await {
            Err(error @ LinkError::Silent(_)) => Err(Failure::Unknown(error.to_string())),
            outcome => outcome.map_err(stays),
        }
    }

    fn observe(&mut self, progress: MigrationProgress) -> Step {
        self.launcher.change_migration(|report| report.progress = Some(progress));
        let (age, stuck) = self.pace.observe(Instant::now(), progress.remaining);
        next_step(&self.limits, self.mode, age, stuck)
    }

    fn enter(&mut self, mode: Mode) {
        tracing::info!(mode = mode.as_str(), "the migration changes its mode");
        self.mode = mode;
        self.launcher.change_migration(|report| report.mode = mode.as_str().to_owned());
    }

    async fn pause(&mut self) -> Result<(), Failure> {
        self.enter(Mode::Paused);
        self.running.machine.pause().await.map_err(stays)
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

async fn unless_cancelled<T>(
    cancel: &mut watch::Receiver<bool>,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    tokio::select! {
        () = asked(cancel) => Err(Failure::Cancelled),
        done = work => Ok(done),
    }
}
