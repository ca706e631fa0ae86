//! Copying disks to the target while the guest writes to them.

use std::path::Path;
use std::time::Duration;

use kubevirt_domain::Domain;
use kubevirt_domain::qemu::names;
use kubevirt_launcher_rpc::report::MigrationProgress;
use kubevirt_launcher_rpc::target::CopiedDisk;
use kubevirt_qemu::Machine;
use kubevirt_qemu::machine::{Job, JobError, JobInfo, JobStatus, Mirror, Sync};
use kubevirt_qemu::qmp::QmpError;
use serde_json::json;

/// Copies that are being made, each a job and a block node with the same name.
pub(super) struct Mirrors {
    machine: Machine,
    jobs: Vec<Job>,
}

/// How far the copies are.
pub(super) struct DiskNews {
    /// All are in step with their sources.
    pub(super) ready: bool,
    /// Bytes of all.
    pub(super) progress: MigrationProgress,
}

impl Mirrors {
    pub(super) fn new(machine: Machine) -> Self {
        Self { machine, jobs: Vec::new() }
    }

    /// Begins to copy a disk to where the target offers it; at most so many bytes a second, or without limit if 0.
    pub(super) async fn add(
        &mut self,
        disk: &CopiedDisk,
        domain: &Domain,
        socket: &Path,
        speed: u64,
    ) -> Result<(), QmpError> {
        let copy = format!("migration-{}", self.jobs.len());
        let source = names::node(&disk.name);
        let node = json!({
            "driver": "nbd",
            "node-name": &copy,
            "server": { "type": "unix", "path": socket },
            "export": &source,
            // Space that is free here is to be free there.
            "discard": "unmap",
            "detect-zeroes": "unmap",
        });
        self.machine.add_block(node).await?;
        let mirror = Mirror {
            sync: if has_base(domain, &disk.name) { Sync::Top } else { Sync::Full },
            speed: (speed > 0).then_some(speed),
            ..Mirror::full(&source, &copy)
        };
        match self.machine.mirror(&copy, &mirror).await {
            Ok(job) => {
                self.jobs.push(job);
                Ok(())
            }
            Err(error) => {
                // Nothing uses it.
                let _ = self.machine.remove_block(&copy).await;
                Err(error)
            }
        }
    }

    /// The next news: when a copy has caught up, and at least this often.
    pub(super) async fn next(&mut self, at_least_every: Duration) -> Result<DiskNews, JobError> {
        let news = self.survey().await?;
        if news.ready {
            return Ok(news);
        }
        for job in &mut self.jobs {
            if !is_ready(&job.info().await?) {
                job.progress(at_least_every).await?;
                break;
            }
        }
        self.survey().await
    }

    async fn survey(&self) -> Result<DiskNews, JobError> {
        let all = self.machine.jobs().await?;
        let mut news = DiskNews { ready: true, progress: MigrationProgress::default() };
        for job in &self.jobs {
            let unknown = || JobError::Unknown { id: job.id().to_owned() };
            let info = all.iter().find(|info| info.id == job.id()).ok_or_else(unknown)?;
            if info.status == JobStatus::Concluded {
                let reason = info.error.clone().unwrap_or_else(|| "it ended early".to_owned());
                return Err(JobError::Failed { id: info.id.clone(), reason });
            }
            news.ready &= is_ready(info);
            news.progress.transferred += info.current_progress;
            news.progress.total += info.total_progress;
        }
        news.progress.remaining = news.progress.total.saturating_sub(news.progress.transferred);
        Ok(news)
    }

    /// Ends the copies, which are the same as their sources from then on as long as the guest stands still.
    pub(super) async fn detach(&mut self) -> Result<(), JobError> {
        for job in &self.jobs {
            job.detach().await?;
        }
        while let Some(job) = self.jobs.pop() {
            let copy = job.id().to_owned();
            let ended = job.finish().await;
            let removed = self.machine.remove_block(&copy).await;
            ended?;
            removed?;
        }
        Ok(())
    }

    /// Gives the copies up; what is left of them is removed as far as it goes.
    pub(super) async fn give_up(&mut self) {
        for mut job in self.jobs.drain(..) {
            let copy = job.id().to_owned();
            let cancelled = job.cancel().await;
            let ended = job.finish().await;
            tracing::debug!(?cancelled, ?ended, "the copy of a disk was given up");
            if let Err(error) = self.machine.remove_block(&copy).await {
                tracing::debug!(%error, "there is nothing to remove of the copy of a disk");
            }
        }
    }
}

fn is_ready(info: &JobInfo) -> bool {
    matches!(info.status, JobStatus::Ready | JobStatus::Standby)
}

/// Whether there is an image below the one that the guest writes to. The target has the like of it.
fn has_base(domain: &Domain, name: &str) -> bool {
    let mut disks = domain.disks.iter();
    disks
        .find(|disk| disk.name == name)
        .and_then(|disk| disk.image.as_ref())
        .is_some_and(|image| image.backing.is_some())
}
