//! The guest's screen.

use std::os::fd::OwnedFd;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Machine;
use crate::qmp::{NoArguments, QmpError};

/// The format of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// PNG, from QEMU 7.1 on.
    Png,
    /// PPM, always there.
    Ppm,
}

impl Machine {
    /// Takes a picture of the guest's first screen. QEMU itself writes the file.
    pub async fn screenshot(&self, file: &Path, format: ImageFormat) -> Result<(), QmpError> {
        self.qmp.run("screendump", json!({ "filename": file, "format": format })).await
    }

    /// Moves the pointer a little: across the screen with a tablet, and by a bit with a mouse. A guest without either
    /// is not an error, since no pointer of it can move.
    pub async fn move_pointer(&self) -> Result<(), QmpError> {
        let axes = |kind: &str, value: i32| {
            let event = |axis| json!({ "type": kind, "data": { "axis": axis, "value": value } });
            json!({ "events": [event("x"), event("y")] })
        };
        // A tablet's screen is 32768 wide; there and back, so that the pointer moves wherever it was.
        for (kind, value) in [("abs", 16_000), ("abs", 16_400), ("rel", 1), ("rel", -1)] {
            match self.qmp.run("input-send-event", axes(kind, value)).await {
                Err(QmpError::Refused { .. }) => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Sets the password of VNC, valid for so many seconds or for good.
    pub async fn set_vnc_password(&self, password: &str, seconds: Option<u64>) -> Result<(), QmpError> {
        self.qmp.run("set_password", json!({ "protocol": "vnc", "password": password })).await?;
        let time = seconds.map_or_else(|| "never".to_owned(), |seconds| format!("+{seconds}"));
        self.qmp.run("expire_password", json!({ "protocol": "vnc", "time": time })).await
    }

    /// Hands a connected viewer to VNC, so that no socket need be found.
    pub async fn add_vnc_viewer(&self, viewer: OwnedFd) -> Result<(), QmpError> {
        self.pass_fd("vnc-viewer", viewer).await?;
        let arguments = json!({ "protocol": "vnc", "fdname": "vnc-viewer", "skipauth": true });
        self.qmp.run("add_client", arguments).await
    }

    /// How many are connected to VNC.
    pub async fn vnc_viewers(&self) -> Result<usize, QmpError> {
        #[derive(Deserialize)]
        struct Vnc {
            #[serde(default)]
            clients: Vec<Value>,
        }
        self.qmp.call::<Vnc>("query-vnc", NoArguments {}).await.map(|told| told.clients.len())
    }
}
