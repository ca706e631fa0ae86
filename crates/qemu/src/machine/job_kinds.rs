//! Copies of disks while the guest runs: backups of a point in time, mirrors that follow.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Job, Machine};
use crate::qmp::QmpError;

/// Which blocks to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// All.
    Full,
    /// Those of the top image.
    Top,
    /// Those that the bitmap marks; on success its marks are forgotten.
    Incremental,
    /// Those that the bitmap marks; see [`Backup::bitmap_mode`].
    Bitmap,
    /// Only those that the guest writes meanwhile.
    None,
}

/// A copy of a disk as it was at the start of the job.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Backup {
    /// The block node or device to copy.
    #[serde(rename = "device")]
    pub source: String,
    /// The block node to copy to.
    pub target: String,
    /// Which blocks.
    pub sync: Sync,
    /// The bitmap that marks the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bitmap: Option<String>,
    /// When the bitmap's marks are forgotten: `on-success`, `never` or `always`. For [`Sync::Bitmap`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bitmap_mode: Option<&'static str>,
    /// At most so many bytes a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<u64>,
    /// Whether to compress, where the target can.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub compress: bool,
}

impl Backup {
    /// A backup of all blocks.
    pub fn full(source: &str, target: &str) -> Self {
        Self {
            source: source.to_owned(),
            target: target.to_owned(),
            sync: Sync::Full,
            bitmap: None,
            bitmap_mode: None,
            speed: None,
            compress: false,
        }
    }

    /// A backup of the blocks that changed since the bitmap began or the last such backup.
    pub fn incremental(source: &str, target: &str, bitmap: &str) -> Self {
        let bitmap = Some(bitmap.to_owned());
        Self { sync: Sync::Incremental, bitmap, ..Self::full(source, target) }
    }

    /// The step of a [`Machine::transaction`] that starts it, to begin several at the same point in time.
    /// Follow it with [`Machine::job`].
    pub fn step(&self, id: &str) -> Value {
        json!({ "type": "blockdev-backup", "data": with_id(self, id) })
    }
}

/// A copy of a disk that follows its source until it is completed or detached.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Mirror {
    /// The block node or device to copy.
    #[serde(rename = "device")]
    pub source: String,
    /// The block node to copy to.
    pub target: String,
    /// Which blocks.
    pub sync: Sync,
    /// At most so many bytes a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<u64>,
    /// `write-blocking` lets the guest's writes wait for the copy, so that it surely comes to an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_mode: Option<&'static str>,
}

impl Mirror {
    /// A mirror of all blocks.
    pub fn full(source: &str, target: &str) -> Self {
        let (source, target) = (source.to_owned(), target.to_owned());
        Self { source, target, sync: Sync::Full, speed: None, copy_mode: None }
    }
}

impl Machine {
    /// Starts a backup as a job of that id.
    pub async fn backup(&self, id: &str, backup: &Backup) -> Result<Job, QmpError> {
        self.start_job("blockdev-backup", id, backup).await
    }

    /// Starts a mirror as a job of that id.
    pub async fn mirror(&self, id: &str, mirror: &Mirror) -> Result<Job, QmpError> {
        self.start_job("blockdev-mirror", id, mirror).await
    }

    /// Writes an overlay's blocks down into its backing file as a job of that id. Like a mirror it follows
    /// the guest until it is completed.
    pub async fn commit(&self, id: &str, node: &str) -> Result<Job, QmpError> {
        self.start_job("block-commit", id, json!({ "device": node })).await
    }

    /// Pulls the backing file's blocks up into the overlay as a job of that id.
    pub async fn flatten(&self, id: &str, node: &str) -> Result<Job, QmpError> {
        self.start_job("block-stream", id, json!({ "device": node })).await
    }

    async fn start_job(&self, command: &str, id: &str, arguments: impl Serialize) -> Result<Job, QmpError> {
        let job = self.job(id);
        self.qmp.run(command, with_id(&arguments, id)).await?;
        Ok(job)
    }
}

/// How a job ended must stay known until we have read it.
fn with_id(arguments: &impl Serialize, id: &str) -> Value {
    let mut arguments = json!(arguments);
    arguments["job-id"] = json!(id);
    arguments["auto-dismiss"] = json!(false);
    arguments
}
