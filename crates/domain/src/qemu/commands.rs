//! What QEMU must be told over its monitor before the guest runs, because no argument says it.

use serde::Serialize;
use serde_json::{Value, json};

use super::names;
use crate::domain::Domain;
use crate::domain::disk::DiskKind;

/// A command of the monitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Command {
    /// Its name.
    pub execute: &'static str,
    /// Its arguments.
    pub arguments: Value,
}

/// The commands to send after the capabilities are negotiated and before the guest runs.
pub fn start_commands(domain: &Domain) -> Vec<Command> {
    let mut commands = Vec::new();
    for interface in domain.interfaces.iter().filter(|interface| !interface.link_up) {
        let arguments = json!({ "name": names::interface(&interface.name), "up": false });
        commands.push(Command { execute: "set_link", arguments });
    }
    for disk in domain.disks.iter().filter(|disk| disk.kind == DiskKind::Cdrom { tray_open: true }) {
        let arguments = json!({ "force": true, "id": names::disk(&disk.name) });
        commands.push(Command { execute: "blockdev-open-tray", arguments });
    }
    if let Some(balloon) = domain.devices.balloon.as_ref().filter(|balloon| balloon.stats_period > 0) {
        let arguments = json!({
            "path": "/machine/peripheral/balloon0",
            "property": "guest-stats-polling-interval",
            "value": balloon.stats_period,
        });
        commands.push(Command { execute: "qom-set", arguments });
    }
    commands
}
