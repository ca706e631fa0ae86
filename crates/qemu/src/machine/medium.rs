//! Media of CD-ROM drives.

use serde::Deserialize;
use serde_json::json;

use super::Machine;
use crate::qmp::{NoArguments, QmpError};

/// A drive as the guest has it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BlockDevice {
    /// The path of its device in QEMU's tree of objects, which ends in its id.
    pub qdev: Option<String>,
    /// Whether media can be changed.
    pub removable: bool,
    /// Whether its tray is open, if it has one.
    pub tray_open: Option<bool>,
    /// Its state after an error: `ok`, `failed` or `nospace`.
    #[serde(rename = "io-status")]
    pub io_status: Option<String>,
    inserted: Option<Inserted>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Inserted {
    node_name: Option<String>,
    file: String,
}

impl BlockDevice {
    /// The block node that is in, if any.
    pub fn node(&self) -> Option<&str> {
        self.inserted.as_ref()?.node_name.as_deref()
    }

    /// The file that is in, as QEMU names it.
    pub fn file(&self) -> Option<&str> {
        Some(&self.inserted.as_ref()?.file)
    }

    /// The device's id.
    pub fn id(&self) -> Option<&str> {
        self.qdev.as_deref()?.trim_end_matches("/virtio-backend").rsplit('/').next()
    }
}

impl Machine {
    /// The drives that the guest has.
    pub async fn drives(&self) -> Result<Vec<BlockDevice>, QmpError> {
        self.qmp.call("query-block", NoArguments {}).await
    }

    /// Puts a file in, in place of what was there.
    pub async fn change_medium(&self, device: &str, file: &str, format: &str) -> Result<(), QmpError> {
        let arguments = json!({ "id": device, "filename": file, "format": format });
        self.qmp.run("blockdev-change-medium", arguments).await
    }

    /// Puts a block node in, in place of what was there.
    pub async fn insert(&self, device: &str, node: &str) -> Result<(), QmpError> {
        self.qmp.run("blockdev-open-tray", json!({ "id": device, "force": true })).await?;
        self.qmp.run("blockdev-remove-medium", json!({ "id": device })).await?;
        self.qmp.run("blockdev-insert-medium", json!({ "id": device, "node-name": node })).await?;
        self.qmp.run("blockdev-close-tray", json!({ "id": device })).await
    }

    /// Takes the medium out; by force even if the guest has locked the tray.
    pub async fn eject(&self, device: &str, force: bool) -> Result<(), QmpError> {
        self.qmp.run("eject", json!({ "id": device, "force": force })).await
    }
}
