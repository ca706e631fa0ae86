//! The machine goes: the commands that begin and cancel it, and its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_launcher_rpc::report::{MigrationReport, Reason, State};
use kubevirt_qemu::machine::RunState;
use kubevirt_qemu::migration::Progress;
use tokio::sync::watch;
use tokio::time::sleep;

use super::admit::{Admission, admit, admit_cancel};
use super::leave::{Failure, Trip};
use super::pace::{Limits, Mode, Pace};
use super::{migration_uid, terms};
use crate::board::now;
use crate::error::CommandError;
use crate::launcher::{Launcher, lock};
use crate::running::Running;

/// How long QEMU may take to leave once the machine runs elsewhere.
const LEAVE: Duration = Duration::from_secs(10);
/// How often to try to let the guest go on here: a target that dies may hold its disks for a moment.
const ATTEMPTS: u32 = 20;
/// The pause between two such attempts.
const PAUSE: Duration = Duration::from_millis(500);

impl Launcher {
    /// Begins to move the machine away. How it goes is told in the report.
    pub async fn migrate(
        self: &Arc<Self>,
        vmi: &VirtualMachineInstance,
        options: &[u8],
    ) -> Result<(), CommandError> {
        let options = terms::read(options)?;
        let missing = || CommandError::CannotMigrate("the VMI has no status.migrationState yet".into());
        let uid = migration_uid(vmi).ok_or_else(missing)?.to_owned();
        if let Some(backup) = backup(vmi) {
            return Err(CommandError::CannotMigrate(format!("backup {backup} must end first")));
        }
        let _work = self.work.lock().await;
        let running = self.running()?;
        if self.intent().arriving {
            return Err(CommandError::CannotMigrate("the virtual machine has not arrived yet".into()));
        }
        if admit(self.board.report().status.migration.as_ref(), &uid)? == Admission::Underway {
            return Ok(());
        }
        let (switch, cancel) = watch::channel(false);
        *lock(&self.migrations.cancel) = Some(switch);
        self.intend(|intent| intent.migrating = true);
        let report = MigrationReport {
            uid: uid.clone(),
            start_timestamp: Some(now()),
            mode: Mode::PreCopy.as_str().to_owned(),
            ..MigrationReport::default()
        };
        self.board.change_status(|status| status.migration = Some(report));
        tracing::info!(migration = uid, "the machine begins to move");
        let trip = Trip {
            launcher: self.clone(),
            running,
            vmi: vmi.clone(),
            options,
            uid,
            cancel,
            mode: Mode::PreCopy,
            moving: false,
            away: false,
            limits: Limits::default(),
            pace: Pace::new(Instant::now()),
            stall: None,
            target: None,
            mirrors: None,
        };
        tokio::spawn(trip.make());
        Ok(())
    }

    /// Cancels the migration that is under way. What comes of it is told in the report.
    pub async fn cancel_migration(&self) -> Result<(), CommandError> {
        if !admit_cancel(self.board.report().status.migration.as_ref())? {
            return Ok(());
        }
        self.change_migration(|report| report.abort_status = "Aborting".to_owned());
        if let Some(switch) = lock(&self.migrations.cancel).as_ref() {
            switch.send_replace(true);
        }
        Ok(())
    }

    /// Changes what is told of the latest migration.
    pub(super) fn change_migration(&self, change: impl FnOnce(&mut MigrationReport)) {
        self.board.change_status(|status| {
            if let Some(report) = &mut status.migration {
                change(report);
            }
        });
    }

    /// The machine runs elsewhere: this one ends.
    pub(super) async fn has_left(&self, running: &Running, progress: &Progress) {
        tracing::info!(downtime = progress.downtime, elapsed = progress.elapsed, "the machine has moved");
        self.intend(|intent| intent.migrated = true);
        self.change_migration(|report| {
            report.end_timestamp = Some(now());
            report.downtime_ms = progress.downtime;
            if report.abort_status == "Aborting" {
                report.abort_status = "Failed".to_owned();
            }
        });
        running.process.quit(&running.machine, LEAVE).await;
    }

    /// The machine has not moved: unless it may be elsewhere, the guest goes on here.
    pub(super) async fn has_stayed(&self, running: &Running, failure: &Failure) {
        tracing::error!(%failure, "the migration failed");
        let mut words = failure.to_string();
        if failure.is_here()
            && let Err(error) = self.go_on(running).await
        {
            words = format!("{words}; and the guest cannot go on here: {error}");
        }
        self.intend(|intent| intent.migrating = false);
        self.change_migration(|report| {
            report.end_timestamp = Some(now());
            report.failed = true;
            report.failure_reason = words;
            match failure {
                Failure::Cancelled | Failure::GaveUp(_) => report.abort_status = "Succeeded".to_owned(),
                _ if report.abort_status == "Aborting" => report.abort_status = "Failed".to_owned(),
                _ => {}
            }
        });
    }

    /// Whether the guest ran before the migration made it stand still; if not, why.
    pub(super) fn fate(&self) -> (bool, Reason) {
        match self.state() {
            (State::Paused, reason) if reason != Reason::Migration => (false, reason),
            _ => (true, Reason::Unknown),
        }
    }

    /// Lets a guest go on that only stands still for a migration. QEMU mostly does so by itself.
    async fn go_on(&self, running: &Running) -> Result<(), CommandError> {
        let mut outcome = Ok(());
        for _ in 0..ATTEMPTS {
            let status = running.machine.status().await?;
            let stands = matches!(status, RunState::Paused | RunState::PostMigrate | RunState::FinishMigrate);
            if !stands || !self.fate().0 {
                return Ok(());
            }
            outcome = self.resume(running).await;
            if outcome.is_ok() {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
        outcome
    }
}

/// The backup that is under way.
fn backup(vmi: &VirtualMachineInstance) -> Option<&str> {
    let tracking = vmi.status.as_ref()?.changed_block_tracking.as_ref()?;
    let backup = tracking.backup_status.as_ref().filter(|backup| backup.completed != Some(true))?;
    Some(backup.backup_name.as_deref().unwrap_or(""))
}
