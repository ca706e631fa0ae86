//! What QEMU must be told over its monitor before the guest runs, because no argument says it.

use serde::Serialize;
use serde_json::{Value, json};

use super::args::Args;
use super::{disks, names, network};
use crate::domain::Domain;
use crate::domain::disk::{Disk, DiskKind};
use crate::domain::network::Interface;

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

/// The commands that add a disk to a machine that runs.
pub fn attach_disk(domain: &Domain, disk: &Disk) -> Vec<Command> {
    let mut args = Args::default();
    disks::add_one(domain, disk, &mut args);
    as_commands(&args)
}

/// The commands that add a network card on a tap device to a machine that runs.
pub fn attach_interface(domain: &Domain, interface: &Interface) -> Vec<Command> {
    let mut args = Args::default();
    network::add_one(domain, interface, &mut args);
    as_commands(&args)
}

/// Arguments with an object each have a command that does the same later.
fn as_commands(args: &Args) -> Vec<Command> {
    let command = |pair: &[String]| {
        let [name, object] = pair else { return None };
        let execute = match name.as_str() {
            "-blockdev" => "blockdev-add",
            "-device" => "device_add",
            "-netdev" => "netdev_add",
            "-object" => "object-add",
            _ => return None,
        };
        Some(Command { execute, arguments: serde_json::from_str(object).ok()? })
    };
    args.list.chunks(2).filter_map(command).collect()
}
