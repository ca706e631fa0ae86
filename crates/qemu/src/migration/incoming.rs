//! The side that the guest comes to: a QEMU started with `-incoming defer`.

use serde_json::json;

use super::outgoing::{MigrationError, change};
use super::progress::{MigrationStatus, Progress};
use super::settings::{Channel, Settings};
use crate::machine::Machine;
use crate::qmp::{Events, QmpError};

/// An arrival under way.
#[derive(Debug)]
pub struct Incoming {
    machine: Machine,
    events: Events,
}

impl Machine {
    /// Listens for a guest. The settings must be those of the other side.
    ///
    /// Once it has come it is paused, since QEMU was started so: let it run with [`Machine::resume`]. A QEMU
    /// whose arrival failed ends by itself.
    pub async fn receive(&self, from: &Channel, settings: &Settings) -> Result<Incoming, QmpError> {
        let events = self.events();
        self.set_migration(settings).await?;
        self.qmp().run("migrate-incoming", json!({ "uri": from.uri() })).await?;
        Ok(Incoming { machine: self.clone(), events })
    }
}

impl Machine {
    /// Listens anew after [`MigrationStatus::PostcopyPaused`], for the side that the guest left to go on.
    pub async fn recover(&self, from: &Channel) -> Result<(), QmpError> {
        let told = self.qmp().run_urgent("migrate-recover", json!({ "uri": from.uri() })).await;
        match told {
            // It listens already, and the other side has not come.
            Err(QmpError::Refused { desc, .. }) if desc.contains("already") => Ok(()),
            told => told,
        }
    }
}

impl Incoming {
    /// Waits until all of the guest is here.
    pub async fn finish(mut self) -> Result<Progress, MigrationError> {
        self.until(|status| *status == MigrationStatus::Completed).await
    }

    /// Waits until the guest can run here: all of it, or with postcopy enough of it.
    pub async fn until_runnable(&mut self) -> Result<Progress, MigrationError> {
        self.until(|status| matches!(status, MigrationStatus::Completed | MigrationStatus::PostcopyActive))
            .await
    }

    async fn until(&mut self, enough: fn(&MigrationStatus) -> bool) -> Result<Progress, MigrationError> {
        loop {
            let progress = self.machine.migration_progress().await?;
            match progress.status {
                status if enough(&status) => return Ok(Progress { status, ..progress }),
                MigrationStatus::Failed | MigrationStatus::Cancelled => {
                    return Err(MigrationError::failed(progress.error_desc));
                }
                _ => change(&self.machine, &mut self.events).await?,
            }
        }
    }
}
