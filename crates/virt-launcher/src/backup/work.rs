//! Carrying out a backup.

use std::sync::Arc;

use kubevirt_qemu::Machine;
use kubevirt_qemu::machine::{BlockNode, Job, JobError};
use serde_json::json;
use tokio::sync::Notify;

use super::plan::{Copy, Plan};
use crate::board::now;
use crate::error::CommandError;
use crate::launcher::Launcher;
use crate::running::Running;

/// Why a backup is not whole.
#[derive(Debug, thiserror::Error)]
enum BackupError {
    #[error(transparent)]
    Job(#[from] JobError),
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl Launcher {
    /// Starts a backup; from then on it is followed in the report.
    pub(super) async fn start_backup(
        self: &Arc<Self>,
        running: &Arc<Running>,
        plan: Plan,
        skip_quiesce: bool,
    ) -> Result<(), CommandError> {
        let machine = &running.machine;
        if let Err(error) = self.begin_jobs(machine, &plan, skip_quiesce).await {
            undo(machine, &plan, true).await;
            return Err(match error {
                BackupError::Job(JobError::Qmp(error)) => error.into(),
                BackupError::Job(error) => CommandError::Refused(error.to_string()),
                BackupError::Command(error) => error,
            });
        }
        let (launcher, machine) = (self.clone(), machine.clone());
        let end = self.guest.end_backup.clone();
        // Whoever wants to end it from now on is heard.
        let (ready, listens) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let outcome = follow(&machine, &plan, &end, ready).await;
            let pulled = plan.socket.is_some() && matches!(outcome, Err(JobError::Cancelled { .. }));
            let failure = outcome.err().filter(|_| !pulled);
            undo(&machine, &plan, failure.is_some()).await;
            launcher.tell_backup(failure);
        });
        // It is gone only if the task is, which then has told so.
        let _ = listens.await;
        Ok(())
    }

    /// Makes the files, and starts all jobs at a point in time at which the guest holds still.
    async fn begin_jobs(
        self: &Arc<Self>,
        machine: &Machine,
        plan: &Plan,
        skip_quiesce: bool,
    ) -> Result<(), BackupError> {
        let what = || format!("cannot make the folder {}", plan.folder.display());
        std::fs::create_dir_all(&plan.folder).map_err(|source| CommandError::Io { what: what(), source })?;
        for disk in &plan.disks {
            make_target(machine, disk, plan.socket.is_some()).await?;
        }
        self.hold_still(skip_quiesce).await;
        let started = machine.transaction(&plan.steps()).await;
        if !skip_quiesce && let Err(error) = self.unfreeze().await {
            tracing::warn!(%error, "the guest is not thawed after the start of a backup");
        }
        started.map_err(JobError::from)?;
        if let Some(socket) = &plan.socket {
            let _ = std::fs::remove_file(socket);
            machine.start_nbd(socket).await.map_err(JobError::from)?;
            for disk in &plan.disks {
                let bitmaps: Vec<&str> = plan.changed(disk).map(|(_, name)| name).into_iter().collect();
                let name = &disk.source.volume.volume_name;
                let export = machine.export(&disk.id, &disk.id, name, false, &bitmaps).await;
                export.map_err(JobError::from)?;
            }
        }
        Ok(())
    }

    /// Freezes the guest if it can be; a backup of a guest that goes on is better than none.
    async fn hold_still(self: &Arc<Self>, skip: bool) {
        let (word, message) = if skip {
            ("Skipped", String::new())
        } else {
            match self.freeze(0).await {
                Ok(()) => ("Succeeded", String::new()),
                Err(error) => ("Failed", error.to_string()),
            }
        };
        self.board.change_status(|status| {
            if let Some(backup) = &mut status.backup {
                backup.quiesce = word.to_owned();
                backup.quiesce_message = message;
            }
        });
    }

    fn tell_backup(&self, failure: Option<JobError>) {
        let reason = failure.map(|failure| match failure {
            JobError::Cancelled { .. } => "backup aborted".to_owned(),
            other => other.to_string(),
        });
        tracing::info!(?reason, "the backup is over");
        self.board.change_status(|status| {
            if let Some(backup) = &mut status.backup {
                backup.job.completed = true;
                backup.job.end_timestamp = Some(now());
                backup.job.failed = reason.is_some();
                backup.job.failure_reason = reason.unwrap_or_default();
            }
        });
    }
}

/// Makes an empty image of the disk's size and opens it; one that is pulled shows the disk beneath.
async fn make_target(machine: &Machine, disk: &Copy, pull: bool) -> Result<(), JobError> {
    let size = machine.blocks().await?.iter().find(|node| node.name == disk.source.node).map(BlockNode::size);
    let (id, file) = (&disk.id, disk.file_node());
    create(machine, id, json!({ "driver": "file", "filename": disk.file, "size": 0 })).await?;
    machine.add_block(json!({ "driver": "file", "node-name": file, "filename": disk.file })).await?;
    let options = json!({ "driver": "qcow2", "file": file, "size": size.unwrap_or(0) });
    create(machine, id, options).await?;
    let backing = pull.then_some(&disk.source.node);
    let image = json!({ "driver": "qcow2", "node-name": id, "file": file, "backing": backing });
    Ok(machine.add_block(image).await?)
}

async fn create(machine: &Machine, id: &str, options: serde_json::Value) -> Result<(), JobError> {
    let job = machine.job(id);
    machine.qmp().run("blockdev-create", json!({ "job-id": id, "options": options })).await?;
    job.finish().await
}

/// Follows the jobs to their end, or to ours.
async fn follow(
    machine: &Machine,
    plan: &Plan,
    end: &Notify,
    ready: tokio::sync::oneshot::Sender<()>,
) -> Result<(), JobError> {
    let ended = end.notified();
    tokio::pin!(ended);
    ended.as_mut().enable();
    let _ = ready.send(());
    let jobs: Vec<Job> = plan.disks.iter().map(|disk| machine.job(&disk.id)).collect();
    let all = finish(machine, plan, jobs);
    tokio::pin!(all);
    tokio::select! {
        outcome = &mut all => outcome,
        () = &mut ended => {
            if plan.socket.is_some() {
                // First of all nobody reads any more what no longer is of one point in time.
                let _ = machine.stop_nbd().await;
            }
            cancel(machine, plan).await;
            // However they ended: somebody wanted it.
            let _ = all.await;
            Err(JobError::Cancelled { id: plan.report.job.name.clone() })
        }
    }
}

/// One copy that fails makes the others useless.
async fn finish(machine: &Machine, plan: &Plan, jobs: Vec<Job>) -> Result<(), JobError> {
    let mut outcome = Ok(());
    for job in jobs {
        let ended = job.finish().await;
        if ended.is_err() && outcome.is_ok() {
            outcome = ended;
            cancel(machine, plan).await;
        }
    }
    outcome
}

async fn cancel(machine: &Machine, plan: &Plan) {
    for disk in &plan.disks {
        // Those that are over already are fine.
        let _ = machine.job(&disk.id).cancel().await;
    }
}

/// Closes all that was opened. Of a backup that failed nothing stays, since nothing can start from it.
async fn undo(machine: &Machine, plan: &Plan, failed: bool) {
    if let Some(socket) = &plan.socket {
        let _ = machine.stop_nbd().await;
        let _ = std::fs::remove_file(socket);
        // Those that never started, and those whose start nobody followed.
        let jobs = plan.disks.iter().map(|disk| machine.job(&disk.id)).collect();
        cancel(machine, plan).await;
        let _ = finish(machine, plan, jobs).await;
    }
    for disk in &plan.disks {
        if let Some((node, name)) = plan.changed(disk) {
            let _ = machine.remove_bitmap(node, name).await;
        }
        let _ = machine.remove_block(&disk.id).await;
        let _ = machine.remove_block(&disk.file_node()).await;
        if failed {
            let _ = machine.remove_bitmap(&disk.source.node, &plan.report.checkpoint).await;
        }
    }
    // What was pulled was only scratch space.
    if failed || plan.socket.is_some() {
        let _ = std::fs::remove_dir_all(&plan.folder);
    }
}
