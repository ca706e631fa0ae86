//! The machine goes: its disks and memory are copied, and at last it is handed over.

use std::time::{Duration, Instant};

use kubevirt_domain::Domain;
use kubevirt_launcher_rpc::migration::Stream;
use kubevirt_launcher_rpc::report::{MigrationProgress, Reason, State};
use kubevirt_launcher_rpc::target::CopiedDisk;
use kubevirt_qemu::migration::{Channel, Migration, MigrationStatus, Parameters, Progress, Ram, Settings};
use kubevirt_qemu::qmp::QmpError;
use tokio::time::sleep;

use super::leave::{Failure, Trip, stays, unless_cancelled};
use super::link::LinkError;
use super::mirror::Mirrors;
use super::pace::{Mode, Step, next_step};
use super::stall::Seen;
use super::terms;

/// How often progress is asked for.
const BEAT: Duration = Duration::from_secs(1);
/// How long to try to mend a connection that broke.
const MEND: Duration = Duration::from_secs(600);

impl Trip {
    /// Copies disks until the copies are in step.
    pub(super) async fn copy_disks(
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
                Step::Pause | Step::Postcopy | Step::Hasten(_) => self.pause().await?,
                Step::Abort(reason) => return Err(Failure::GaveUp(reason)),
            }
        }
    }

    /// Copies memory until all of the machine is on the target and handed over.
    pub(super) async fn copy_memory(&mut self, settings: &Settings) -> Result<Progress, Failure> {
        let channel = Channel::Unix(self.socket(Stream::Memory));
        self.moving = true;
        let mut migration = self.running.machine.migrate(&channel, settings).await.map_err(stays)?;
        loop {
            let news = if self.mode == Mode::PostCopy {
                migration.next(BEAT).await
            } else {
                unless_cancelled(&mut self.cancel, migration.next(BEAT)).await?
            };
            let progress = match news {
                Ok(Some(progress)) => progress,
                Ok(None) => return Err(stays("QEMU does not tell how it ended")),
                // It is busy; whether too much so is a matter of patience.
                Err(QmpError::Hung { .. }) => match self.wait() {
                    Step::Abort(reason) => return Err(Failure::GaveUp(reason)),
                    _ => continue,
                },
                Err(error) => return Err(stays(error)),
            };
            match self.follow(&mut migration, &progress).await? {
                Step::Abort(reason) => return Err(Failure::GaveUp(reason)),
                Step::Postcopy if *self.cancel.borrow() => {}
                Step::Postcopy => {
                    self.enter(Mode::PostCopy);
                    migration.start_postcopy().await.map_err(stays)?;
                }
                Step::Pause => self.pause().await?,
                Step::Hasten(downtime) => self.hasten(downtime).await?,
                Step::Continue => {}
            }
            match progress.status {
                MigrationStatus::Completed => return Ok(progress),
                MigrationStatus::Failed | MigrationStatus::Cancelled => {
                    let words = progress.error_desc.as_deref().unwrap_or("QEMU gives no reason");
                    return Err(stays(format_args!("moving the guest's memory failed: {words}")));
                }
                _ => {}
            }
        }
    }

    /// Does what the phase of the migration asks for, and says what patience asks for.
    async fn follow(&mut self, migration: &mut Migration, progress: &Progress) -> Result<Step, Failure> {
        let ram = progress.ram.as_ref().map(|ram| MigrationProgress {
            transferred: ram.transferred,
            remaining: ram.remaining,
            total: ram.total,
        });
        let step = match (ram, &progress.ram) {
            (Some(report), Some(ram)) if self.stall.is_some() => self.observe_passes(report, ram),
            (Some(report), _) => self.observe(report),
            _ => Step::Continue,
        };
        match progress.status {
            MigrationStatus::PreSwitchover => {
                // QEMU may tell of it again until it has noticed that it may go on.
                if let Some(mut mirrors) = self.mirrors.take() {
                    let detached = mirrors.detach().await;
                    if detached.is_err() {
                        self.mirrors = Some(mirrors);
                    }
                    detached.map_err(stays)?;
                    migration.switch_over().await.map_err(stays)?;
                }
            }
            MigrationStatus::PostcopyActive if !self.away => {
                self.enter(Mode::PostCopy);
                self.away = true;
                self.hand_over().await?;
            }
            MigrationStatus::PostcopyPaused => self.mend().await?,
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

    /// The same where passes over the memory count.
    fn observe_passes(&mut self, report: MigrationProgress, ram: &Ram) -> Step {
        let still = self.launcher.state() == (State::Paused, Reason::Migration);
        if still && self.mode == Mode::PreCopy {
            self.enter(Mode::Paused);
        }
        let usual = self.observe(report);
        let (age, _) = self.pace.at(Instant::now());
        // QEMU counts the pass that has begun and megabits.
        let speed = ram.mbps * 1_000_000.0 / 8.0;
        let seen = Seen { age, passes: ram.passes, remaining: ram.remaining, speed, still };
        match &mut self.stall {
            Some(_) if self.mode == Mode::PostCopy => Step::Continue,
            Some(stall) => stall.step(&seen),
            None => usual,
        }
    }

    /// Lets the guest move as soon as it would stand still for so long.
    async fn hasten(&mut self, downtime: Duration) -> Result<(), Failure> {
        let milliseconds = u64::try_from(downtime.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(milliseconds, "the guest may stand still for longer");
        let parameters = Parameters { downtime_limit: Some(milliseconds), ..Parameters::default() };
        self.running.machine.set_migration_parameters(&parameters).await.map_err(stays)
    }

    /// Connects anew to a target where the guest runs without all of its memory: it has no other way to get it.
    async fn mend(&mut self) -> Result<(), Failure> {
        tracing::warn!("the connection broke while the guest's memory followed it, and is made anew");
        let (channel, until) = (Channel::Unix(self.socket(Stream::Memory)), Instant::now() + MEND);
        let Some(target) = &mut self.target else { return Err(stays("there is no target")) };
        loop {
            let machine = &self.running.machine;
            if machine.migration_progress().await.map_err(stays)?.status != MigrationStatus::PostcopyPaused {
                return Ok(());
            }
            let mended = match target.recover().await {
                Ok(()) => machine.resume_migration(&channel).await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(words) = mended
                && Instant::now() >= until
            {
                let words = format!("the rest of the guest's memory cannot be sent: {words}");
                return Err(Failure::Unknown(words));
            }
            sleep(BEAT).await;
        }
    }

    /// There is no news.
    fn wait(&self) -> Step {
        let (age, stuck) = self.pace.at(Instant::now());
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
