//! Backups of the disks while the guest runs: whole, or what changed since a checkpoint.
//!
//! A checkpoint is a bitmap in the image that tracks a disk's changes; it marks every block that was written since.

mod plan;
mod work;

use std::sync::Arc;

use kubevirt_api::backup::{BackupCheckpoint, BackupCommand, BackupOptions};
use kubevirt_launcher_rpc::report::{BackupReport, JobReport};

use self::plan::Plan;
use crate::error::CommandError;
use crate::launcher::Launcher;

/// What to do about a wish for a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Begin,
    /// This very backup runs.
    Runs,
    /// This very backup is over.
    Over,
    /// Another one runs.
    Busy,
}

fn wish(latest: Option<&BackupReport>, asked: &JobReport) -> Wish {
    let Some(latest) = latest.map(|latest| &latest.job) else { return Wish::Begin };
    let same = latest.name == asked.name && latest.start_timestamp == asked.start_timestamp;
    match (same, latest.completed) {
        (true, false) => Wish::Runs,
        (true, true) => Wish::Over,
        (false, false) => Wish::Busy,
        (false, true) => Wish::Begin,
    }
}

impl Launcher {
    /// Begins a backup, or ends one.
    pub async fn back_up(self: &Arc<Self>, options: &[u8]) -> Result<(), CommandError> {
        let options: BackupOptions = serde_json::from_slice(options).map_err(|error| {
            CommandError::Refused(format!("the options of the backup cannot be read: {error}"))
        })?;
        match &options.cmd {
            Some(BackupCommand::Start) => self.begin_backup(&options).await,
            Some(BackupCommand::Abort) => self.end_backup(&options).await,
            Some(BackupCommand::Export) => Err(CommandError::Unsupported(
                "the data of a pull backup cannot be sent to an export server yet: read it from the socket \
                 backup-nbd-sock, or use mode Push"
                    .into(),
            )),
            other => {
                let word = other.as_ref().map_or("", BackupCommand::as_str);
                Err(CommandError::Refused(format!("there is no backup command {word:?}")))
            }
        }
    }

    async fn begin_backup(self: &Arc<Self>, options: &BackupOptions) -> Result<(), CommandError> {
        if self.intent().migrating {
            return Err(CommandError::Refused("no backup can begin during a migration".into()));
        }
        let running = self.running()?;
        let _one = self.guest.backing_up.lock().await;
        let sockets = self.arguments.sockets();
        let plan = Plan::new(&running.domain(), options, &sockets).map_err(CommandError::Refused)?;
        let latest = self.board.report().status.backup;
        match wish(latest.as_ref(), &plan.report.job) {
            Wish::Begin => {}
            Wish::Runs => return Ok(()),
            Wish::Over => {
                let name = &options.backup_name;
                return Err(CommandError::Refused(format!("backup {name} has already been made")));
            }
            Wish::Busy => return Err(CommandError::Refused("another backup runs".into())),
        }
        self.board.change_status(|status| status.backup = Some(plan.report.clone()));
        let begun = self.start_backup(&running, plan, options.skip_quiesce).await;
        if begun.is_err() {
            // So that it can be tried again under the same name.
            self.board.change_status(|status| status.backup = latest);
        }
        begun
    }

    /// Ends the backup that runs: a pull backup is over then, any other has failed.
    async fn end_backup(&self, options: &BackupOptions) -> Result<(), CommandError> {
        // One that is only about to begin could not hear it.
        let _one = self.guest.backing_up.lock().await;
        let latest = self.board.report().status.backup;
        match wish(latest.as_ref(), &plan::job(options)) {
            Wish::Runs => {
                self.guest.end_backup.notify_waiters();
                Ok(())
            }
            Wish::Over => Err(CommandError::Refused("the backup is already over".into())),
            Wish::Begin | Wish::Busy => Err(CommandError::Refused("no such backup runs".into())),
        }
    }

    /// Whether a checkpoint of an earlier run of the machine can still be started from.
    pub async fn redefine_checkpoint(&self, checkpoint: &[u8]) -> Result<bool, CommandError> {
        let checkpoint: BackupCheckpoint = serde_json::from_slice(checkpoint)
            .map_err(|error| CommandError::Refused(format!("the checkpoint cannot be read: {error}")))?;
        let name = checkpoint.name.unwrap_or_default();
        let running = self.running()?;
        let nodes = plan::tracked(&running.domain());
        if nodes.is_empty() {
            return Err(CommandError::Refused(plan::NOT_TRACKED.into()));
        }
        for disk in nodes {
            let bitmaps = running.machine.bitmaps(&disk.node).await?;
            if bitmaps.iter().any(|bitmap| bitmap.name == name && !bitmap.inconsistent) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_known_by_its_name_and_start() {
        let job = |name: &str, start: &str, completed| JobReport {
            name: name.into(),
            start_timestamp: Some(start.into()),
            completed,
            ..JobReport::default()
        };
        let asked = job("a", "1", false);
        let report = |job| BackupReport { job, ..BackupReport::default() };
        for (latest, expected) in [
            (None, Wish::Begin),
            (Some(job("a", "1", false)), Wish::Runs),
            (Some(job("a", "1", true)), Wish::Over),
            (Some(job("a", "2", true)), Wish::Begin),
            (Some(job("a", "2", false)), Wish::Busy),
            (Some(job("b", "1", false)), Wish::Busy),
        ] {
            assert_eq!(wish(latest.clone().map(report).as_ref(), &asked), expected, "{latest:?}");
        }
    }
}
