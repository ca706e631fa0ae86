//! The side that the guest leaves.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::progress::{MigrationStatus, Progress};
use super::settings::{Channel, Settings};
use crate::machine::Machine;
use crate::qmp::{Event, Events, NoArguments, QmpError};

/// Why the guest has not moved. Unless QEMU is gone, it is where it was.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// QEMU gave up.
    #[error("the migration failed: {reason}")]
    Failed {
        /// QEMU's own words.
        reason: String,
    },
    /// It was cancelled.
    #[error("the migration was cancelled")]
    Cancelled,
    /// The monitor failed.
    #[error(transparent)]
    Qmp(#[from] QmpError),
}

impl MigrationError {
    pub(super) fn failed(reason: Option<String>) -> Self {
        Self::Failed { reason: reason.unwrap_or_else(|| "no reason given".to_owned()) }
    }
}

/// A migration under way. Dropping this does not end it.
#[derive(Debug)]
pub struct Migration {
    machine: Machine,
    events: Events,
    over: bool,
}

impl Machine {
    /// Starts to move the guest. Afterwards it is paused here and may be ended.
    pub async fn migrate(&self, to: &Channel, settings: &Settings) -> Result<Migration, QmpError> {
        let events = self.events();
        self.set_migration(settings).await?;
        self.qmp().run("migrate", json!({ "uri": to.uri() })).await?;
        Ok(Migration { machine: self.clone(), events, over: false })
    }

    /// Connects anew after [`MigrationStatus::PostcopyPaused`], to a target that listens again.
    pub async fn resume_migration(&self, to: &Channel) -> Result<(), QmpError> {
        self.qmp().run("migrate", json!({ "uri": to.uri(), "resume": true })).await
    }

    /// Follows a migration that is already under way.
    pub fn migration(&self) -> Migration {
        Migration { machine: self.clone(), events: self.events(), over: false }
    }
}

impl Migration {
    /// The next news: whenever the phase changes, and at least this often while it is under way.
    /// None once its end has been told.
    pub async fn next(&mut self, at_least_every: Duration) -> Result<Option<Progress>, QmpError> {
        if self.over {
            return Ok(None);
        }
        if let Ok(changed) = timeout(at_least_every, self.change()).await {
            changed?;
        }
        let progress = self.machine.migration_progress().await?;
        self.over = progress.status.is_final();
        Ok(Some(progress))
    }

    /// Waits for its end without asking for progress on the way.
    pub async fn finish(mut self) -> Result<Progress, MigrationError> {
        loop {
            let progress = self.machine.migration_progress().await?;
            match progress.status {
                MigrationStatus::Completed => return Ok(progress),
                MigrationStatus::Cancelled => return Err(MigrationError::Cancelled),
                MigrationStatus::Failed => return Err(MigrationError::failed(progress.error_desc)),
                _ => self.change().await?,
            }
        }
    }

    /// Gives up: the guest stays. [`MigrationStatus::Cancelled`] tells when that is done.
    pub async fn cancel(&self) -> Result<(), QmpError> {
        self.machine.qmp().run("migrate_cancel", NoArguments {}).await
    }

    /// Lets the guest run on the target at once and fetch its memory there. There is no way back.
    pub async fn start_postcopy(&self) -> Result<(), QmpError> {
        self.machine.qmp().run("migrate-start-postcopy", NoArguments {}).await
    }

    /// Goes on from [`MigrationStatus::PreSwitchover`], where the guest is paused and nothing is lost yet.
    pub async fn switch_over(&self) -> Result<(), QmpError> {
        self.machine.qmp().run("migrate-continue", json!({ "state": "pre-switchover" })).await
    }

    /// Breaks the connections of a migration that hangs on a dead peer.
    pub async fn cut(&self) -> Result<(), QmpError> {
        let instances = json!({ "instances": [{ "type": "migration" }] });
        self.machine.qmp().run_urgent("yank", instances).await
    }

    async fn change(&mut self) -> Result<(), QmpError> {
        change(&self.machine, &mut self.events).await
    }
}

/// Waits for news of a migration.
pub(super) async fn change(machine: &Machine, events: &mut Events) -> Result<(), QmpError> {
    while let Some(happened) = events.next().await {
        // A pass that begins tells best how much is left.
        if matches!(
            happened.event,
            Event::Migration { .. } | Event::MigrationPass { .. } | Event::Missed { .. }
        ) {
            return Ok(());
        }
    }
    Err(QmpError::Gone(machine.qmp().gone().await))
}
