//! Block nodes: the storage behind disks.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Bitmap, Machine};
use crate::qmp::QmpError;

/// A node of the block graph.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BlockNode {
    /// Its name.
    #[serde(rename = "node-name")]
    pub name: String,
    /// Its driver: `qcow2`, `raw`, `file`, …
    #[serde(rename = "drv")]
    pub driver: String,
    /// The file, as QEMU names it.
    pub file: String,
    /// Whether it refuses writes.
    #[serde(rename = "ro")]
    pub read_only: bool,
    /// Its image.
    image: Image,
    #[serde(default, rename = "dirty-bitmaps")]
    pub(crate) bitmaps: Vec<Bitmap>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Image {
    virtual_size: u64,
    actual_size: Option<u64>,
    backing_filename: Option<String>,
}

impl BlockNode {
    /// The size that a guest sees, in bytes.
    pub fn size(&self) -> u64 {
        self.image.virtual_size
    }

    /// The space that it takes, in bytes, where that can be known.
    pub fn used(&self) -> Option<u64> {
        self.image.actual_size
    }

    /// The file behind it, if it is an overlay.
    pub fn backing_file(&self) -> Option<&str> {
        self.image.backing_filename.as_deref()
    }

    /// Its dirty bitmaps.
    pub fn bitmaps(&self) -> &[Bitmap] {
        &self.bitmaps
    }
}

/// Limits of a disk; zero is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are QEMU's own")]
pub struct Throttle {
    pub bps: u64,
    pub bps_rd: u64,
    pub bps_wr: u64,
    pub iops: u64,
    pub iops_rd: u64,
    pub iops_wr: u64,
}

impl Machine {
    /// Opens storage: `driver`, `node-name` and its options, as in `-blockdev`.
    pub async fn add_block(&self, node: impl Serialize) -> Result<(), QmpError> {
        self.qmp.run("blockdev-add", node).await
    }

    /// Closes storage that nothing uses.
    pub async fn remove_block(&self, node: &str) -> Result<(), QmpError> {
        self.qmp.run("blockdev-del", json!({ "node-name": node })).await
    }

    /// Changes the options of open storage; all of them are to be given.
    pub async fn reopen_block(&self, node: impl Serialize) -> Result<(), QmpError> {
        self.qmp.run("blockdev-reopen", json!({ "options": [node] })).await
    }

    /// Every node with a name.
    pub async fn blocks(&self) -> Result<Vec<BlockNode>, QmpError> {
        self.qmp.call("query-named-block-nodes", json!({ "flat": true })).await
    }

    /// Grows or shrinks storage to a size in bytes; the guest's disk follows at once.
    pub async fn resize_block(&self, node: &str, bytes: u64) -> Result<(), QmpError> {
        self.qmp.run("block_resize", json!({ "node-name": node, "size": bytes })).await
    }

    /// Limits the disk of a device.
    pub async fn throttle(&self, device: &str, limits: &Throttle) -> Result<(), QmpError> {
        // The disk of a virtio device hangs on a device inside of it.
        let drives = self.drives().await?;
        let path =
            drives.iter().find(|drive| drive.id() == Some(device)).and_then(|drive| drive.qdev.as_deref());
        let mut arguments = json!(limits);
        arguments["id"] = json!(path.unwrap_or(device));
        self.qmp.run("block_set_io_throttle", arguments).await
    }

    /// Asks for [`crate::qmp::Event::BlockWriteThreshold`] once more than this was written; zero asks no more.
    pub async fn watch_writes(&self, node: &str, bytes: u64) -> Result<(), QmpError> {
        let arguments = json!({ "node-name": node, "write-threshold": bytes });
        self.qmp.run("block-set-write-threshold", arguments).await
    }

    /// Several changes at once, or none of them: each a `type` and its `data`.
    pub async fn transaction(&self, actions: &[Value]) -> Result<(), QmpError> {
        self.qmp.run("transaction", json!({ "actions": actions })).await
    }
}
