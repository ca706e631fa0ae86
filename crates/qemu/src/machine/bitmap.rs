//! Dirty bitmaps: which blocks changed since the last backup.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Machine;
use crate::qmp::QmpError;

/// A dirty bitmap of a block node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Bitmap {
    /// Its name. Those of jobs have none.
    #[serde(default)]
    pub name: String,
    /// How many bytes it marks as changed.
    pub count: u64,
    /// How many bytes each of its marks stands for.
    pub granularity: u64,
    /// Whether writes are being marked.
    pub recording: bool,
    /// Whether a job uses it.
    pub busy: bool,
    /// Whether it is stored with the image.
    pub persistent: bool,
    /// Whether it was in use when QEMU died: of no more use than to be removed.
    #[serde(default)]
    pub inconsistent: bool,
}

impl Machine {
    /// Starts to mark changed blocks. A persistent bitmap lives in the image, which must then be qcow2.
    pub async fn add_bitmap(&self, node: &str, name: &str, persistent: bool) -> Result<(), QmpError> {
        let arguments = json!({ "node": node, "name": name, "persistent": persistent });
        self.qmp.run("block-dirty-bitmap-add", arguments).await
    }

    /// Removes a bitmap.
    pub async fn remove_bitmap(&self, node: &str, name: &str) -> Result<(), QmpError> {
        self.qmp.run("block-dirty-bitmap-remove", json!({ "node": node, "name": name })).await
    }

    /// Forgets all marks of a bitmap.
    pub async fn clear_bitmap(&self, node: &str, name: &str) -> Result<(), QmpError> {
        self.qmp.run("block-dirty-bitmap-clear", json!({ "node": node, "name": name })).await
    }

    /// Marks writes from now on, or no longer.
    pub async fn set_bitmap_recording(&self, node: &str, name: &str, on: bool) -> Result<(), QmpError> {
        let command = if on { "block-dirty-bitmap-enable" } else { "block-dirty-bitmap-disable" };
        self.qmp.run(command, json!({ "node": node, "name": name })).await
    }

    /// Adds the marks of other bitmaps of the node to one.
    pub async fn merge_bitmaps(&self, node: &str, from: &[&str], into: &str) -> Result<(), QmpError> {
        let arguments = json!({ "node": node, "target": into, "bitmaps": from });
        self.qmp.run("block-dirty-bitmap-merge", arguments).await
    }

    /// The bitmaps of a node.
    pub async fn bitmaps(&self, node: &str) -> Result<Vec<Bitmap>, QmpError> {
        let nodes = self.blocks().await?;
        Ok(nodes.into_iter().find(|one| one.name == node).map(|one| one.bitmaps).unwrap_or_default())
    }

    /// The step of a [`Machine::transaction`] that adds a bitmap, to begin it at the very point of a backup.
    pub fn add_bitmap_step(node: &str, name: &str, persistent: bool) -> Value {
        let data = json!({ "node": node, "name": name, "persistent": persistent });
        json!({ "type": "block-dirty-bitmap-add", "data": data })
    }
}
