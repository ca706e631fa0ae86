//! The machine comes: it is handed over, or given up.

use std::sync::Arc;

use kubevirt_launcher_rpc::migration::Stream;
use kubevirt_launcher_rpc::report::{Reason, State};
use kubevirt_launcher_rpc::target::TakeOverRequest;
use kubevirt_qemu::migration::Channel;

use super::arrival::{Arrival, News};
use crate::board::now;
use crate::error::CommandError;
use crate::launcher::Launcher;
use crate::running::Running;

impl Launcher {
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
            Arrival::TakenOver { migration, .. } if *migration == request.migration => return Ok(()),
            other => return Err(CommandError::CannotMigrate(other.words())),
        };
        let (running, news, key) = (coming.running.clone(), coming.news.clone(), coming.key.clone());
        if !matches!(*news.borrow(), News::Runnable | News::Whole) {
            return Err(CommandError::CannotMigrate("the machine is not here yet".into()));
        }
        if let Err(error) = self.begin_here(&running, coming.disks, request).await {
            self.drop_arrival(&mut arrival, "the guest cannot run here").await;
            return Err(error);
        }
        *arrival = Arrival::TakenOver { migration: request.migration.clone(), key };
        self.intend(|intent| intent.arriving = false);
        // Whoever of this and the follower comes last sees that both are done.
        if *news.borrow() == News::Whole {
            self.change_migration(|report| report.end_timestamp = Some(now()));
        }
        tokio::spawn(self.clone().settle(running));
        Ok(())
    }

    /// Listens anew for memory of a guest that runs here without all of it.
    pub(super) async fn recover(&self, migration: &str) -> Result<(), CommandError> {
        let key = match &*self.migrations.arrival.lock().await {
            Arrival::Coming(coming) if coming.migration == migration => coming.key.clone(),
            Arrival::TakenOver { migration: taken, key } if taken == migration => key.clone(),
            other => return Err(CommandError::CannotMigrate(other.words())),
        };
        let channel = Channel::Unix(Stream::Memory.socket(&self.arguments.kubevirt_share_dir, &key));
        Ok(self.running()?.machine.recover(&channel).await?)
    }

    /// Gives the arrival up; there is no QEMU here afterwards.
    pub(super) async fn abandon(&self, migration: &str) -> Result<(), CommandError> {
        let mut arrival = self.migrations.arrival.lock().await;
        match &*arrival {
            Arrival::TakenOver { migration: taken, .. } if taken == migration => {
                Err(CommandError::CannotMigrate("the machine was taken over".into()))
            }
            Arrival::Coming(coming) if coming.migration == migration => {
                self.drop_arrival(&mut arrival, "the source has given up").await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends the QEMU of an arrival.
    pub(super) async fn drop_arrival(&self, arrival: &mut Arrival, why: &str) {
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
