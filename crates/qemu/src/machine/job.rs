//! Jobs: long work in QEMU, followed to its end.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use super::{Machine, words};
use crate::qmp::{Event, Events, NoArguments, QmpError};

words! {
    /// How far a job is.
    JobStatus {
        Created = "created",
        Running = "running",
        Paused = "paused",
        Ready = "ready",
        Standby = "standby",
        Waiting = "waiting",
        Pending = "pending",
        Aborting = "aborting",
        Concluded = "concluded",
        Null = "null",
    }
}

/// A job's state and progress.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct JobInfo {
    /// Its id.
    pub id: String,
    /// What it does: `backup`, `mirror`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// How far it is.
    pub status: JobStatus,
    /// How much is done. The unit is up to the job; bytes for most.
    pub current_progress: u64,
    /// How much there is to do, as far as known.
    pub total_progress: u64,
    /// Why it failed.
    pub error: Option<String>,
}

/// Why a job did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// It met an error.
    #[error("job {id} failed: {reason}")]
    Failed {
        /// Its id.
        id: String,
        /// QEMU's own words.
        reason: String,
    },
    /// It was cancelled.
    #[error("job {id} was cancelled")]
    Cancelled {
        /// Its id.
        id: String,
    },
    /// QEMU no longer knows it: somebody else dismissed it.
    #[error("job {id} is unknown")]
    Unknown {
        /// Its id.
        id: String,
    },
    /// The monitor failed.
    #[error(transparent)]
    Qmp(#[from] QmpError),
}

/// A job in QEMU. Dropping this does not end the job.
#[derive(Debug)]
pub struct Job {
    machine: Machine,
    id: String,
    events: Events,
    cancelled: bool,
}

impl Machine {
    /// All jobs.
    pub async fn jobs(&self) -> Result<Vec<JobInfo>, QmpError> {
        self.qmp.call("query-jobs", NoArguments {}).await
    }

    /// Follows a job. It must not dismiss itself at its end, or how it ended is lost.
    pub fn job(&self, id: &str) -> Job {
        Job { machine: self.clone(), id: id.to_owned(), events: self.events(), cancelled: false }
    }
}

impl Job {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its state and progress now.
    pub async fn info(&self) -> Result<JobInfo, JobError> {
        let jobs = self.machine.jobs().await?;
        let unknown = || JobError::Unknown { id: self.id.clone() };
        jobs.into_iter().find(|job| job.id == self.id).ok_or_else(unknown)
    }

    /// Waits for its next step, or for the given time, and tells its progress.
    pub async fn progress(&mut self, at_least_every: Duration) -> Result<JobInfo, JobError> {
        if let Ok(step) = timeout(at_least_every, self.step()).await {
            step?;
        }
        self.info().await
    }

    /// Waits until it can be completed: a mirror is then in step with its source.
    pub async fn until_ready(&mut self) -> Result<(), JobError> {
        loop {
            let info = self.info().await?;
            match info.status {
                JobStatus::Ready | JobStatus::Standby => return Ok(()),
                JobStatus::Concluded => return self.conclude(info).await,
                _ => self.step().await?,
            }
        }
    }

    /// Waits for its end and dismisses it.
    pub async fn finish(mut self) -> Result<(), JobError> {
        loop {
            let info = self.info().await?;
            match info.status {
                JobStatus::Concluded => return self.conclude(info).await,
                _ => self.step().await?,
            }
        }
    }

    /// Completes a job that is ready: for a mirror, the guest goes on with the copy.
    pub async fn complete(&self) -> Result<(), QmpError> {
        self.command("job-complete").await
    }

    /// Ends it without its result.
    pub async fn cancel(&mut self) -> Result<(), QmpError> {
        self.cancelled = true;
        self.command("job-cancel").await
    }

    /// Ends a mirror that is ready with its copy as of now; the guest stays on the source.
    pub async fn detach(&self) -> Result<(), QmpError> {
        self.machine.qmp.run("block-job-cancel", json!({ "device": &self.id })).await
    }

    /// Halts it for a while, or lets it go on.
    pub async fn set_paused(&self, paused: bool) -> Result<(), QmpError> {
        self.command(if paused { "job-pause" } else { "job-resume" }).await
    }

    /// Limits a block job to so many bytes a second; zero is no limit.
    pub async fn set_speed(&self, bytes: u64) -> Result<(), QmpError> {
        self.machine.qmp.run("block-job-set-speed", json!({ "device": &self.id, "speed": bytes })).await
    }

    async fn command(&self, name: &str) -> Result<(), QmpError> {
        self.machine.qmp.run(name, json!({ "id": &self.id })).await
    }

    /// Waits for news of this job.
    async fn step(&mut self) -> Result<(), QmpError> {
        while let Some(happened) = self.events.next().await {
            match &happened.event {
                Event::JobStatusChange { id, .. } if *id == self.id => return Ok(()),
                Event::BlockJobCancelled(job) if job.device == self.id => {
                    // A mirror that is detached when ready is cancelled in name only.
                    self.cancelled |= job.offset < job.len;
                    return Ok(());
                }
                Event::Missed { .. } => return Ok(()),
                _ => {}
            }
        }
        Err(QmpError::Gone(self.machine.qmp.gone().await))
    }

    async fn conclude(&self, info: JobInfo) -> Result<(), JobError> {
        self.command("job-dismiss").await?;
        match info.error {
            None => Ok(()),
            Some(_) if self.cancelled => Err(JobError::Cancelled { id: info.id }),
            Some(reason) => Err(JobError::Failed { id: info.id, reason }),
        }
    }
}
