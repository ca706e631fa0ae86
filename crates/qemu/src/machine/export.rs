//! Disks offered to others over NBD, for backups that are pulled.

use std::path::Path;

use serde_json::json;

use super::Machine;
use crate::qmp::{NoArguments, QmpError};

impl Machine {
    /// Starts QEMU's NBD server on a unix socket.
    pub async fn start_nbd(&self, socket: &Path) -> Result<(), QmpError> {
        let addr = json!({ "type": "unix", "data": { "path": socket } });
        self.qmp.run("nbd-server-start", json!({ "addr": addr })).await
    }

    /// Stops the NBD server and all its exports.
    pub async fn stop_nbd(&self) -> Result<(), QmpError> {
        self.qmp.run("nbd-server-stop", NoArguments {}).await
    }

    /// Offers a block node by a name, with the marks of its bitmaps if given.
    pub async fn export(
        &self,
        id: &str,
        node: &str,
        name: &str,
        writable: bool,
        bitmaps: &[&str],
    ) -> Result<(), QmpError> {
        let arguments = json!({
            "type": "nbd", "id": id, "node-name": node, "name": name, "writable": writable, "bitmaps": bitmaps,
        });
        self.qmp.run("block-export-add", arguments).await
    }

    /// Offers it no longer; by force also to those who are connected.
    pub async fn remove_export(&self, id: &str, force: bool) -> Result<(), QmpError> {
        let mode = if force { "hard" } else { "safe" };
        self.qmp.run("block-export-del", json!({ "id": id, "mode": mode })).await
    }
}
