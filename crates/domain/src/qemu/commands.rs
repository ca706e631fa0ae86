//! What QEMU is told over its monitor: before the guest runs, and to add and remove devices while it does.

use serde::Serialize;
use serde_json::{Value, json};

use super::args::{Args, Object};
use super::{block, disks, host_devices, names, network};
use crate::domain::Domain;
use crate::domain::disk::{Disk, DiskKind};
use crate::domain::host_device::HostDevice;
use crate::domain::network::{Interface, NetBackend};

/// A command of the monitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Command {
    /// Its name.
    pub execute: &'static str,
    /// Its arguments.
    pub arguments: Value,
}

impl Command {
    pub(crate) fn new(execute: &'static str, arguments: Value) -> Self {
        Self { execute, arguments }
    }
}

/// The commands to send after the capabilities are negotiated and before the guest runs.
pub fn start_commands(domain: &Domain) -> Vec<Command> {
    let mut commands = Vec::new();
    for interface in domain.interfaces.iter().filter(|interface| !interface.link_up) {
        commands.push(set_link(&interface.name, false));
    }
    for disk in domain.disks.iter().filter(|disk| disk.kind == DiskKind::Cdrom { tray_open: true }) {
        commands.push(open_tray(&disk.name));
    }
    if let Some(balloon) = domain.devices.balloon.as_ref().filter(|balloon| balloon.stats_period > 0) {
        let arguments = json!({
            "path": "/machine/peripheral/balloon0",
            "property": "guest-stats-polling-interval",
            "value": balloon.stats_period,
        });
        commands.push(Command::new("qom-set", arguments));
    }
    commands
}

/// The commands that add a disk to a machine that runs.
pub fn attach_disk(domain: &Domain, disk: &Disk) -> Vec<Command> {
    let mut args = Args::default();
    disks::add_one(domain, disk, &mut args);
    as_commands(&args)
}

/// The commands that open a disk's image without showing it to the guest.
pub fn open_image(disk: &Disk) -> Vec<Command> {
    let mut args = Args::default();
    block::add(disk, &mut args);
    as_commands(&args)
}

/// The commands that close a disk's image, which nothing may use any more.
pub fn close_image(disk: &Disk) -> Vec<Command> {
    let close = |node: String| Command::new("blockdev-del", json!({ "node-name": node }));
    block::nodes(disk).into_iter().map(close).collect()
}

/// The commands that open a drive and take out what is in it, if anything is.
pub fn take_medium(drive: &str) -> Vec<Command> {
    let id = names::disk(drive);
    vec![open_tray(drive), Command::new("blockdev-remove-medium", json!({ "id": id }))]
}

/// The command that puts an open image into an open and empty drive.
pub fn put_medium(drive: &str) -> Command {
    let (id, node) = (names::disk(drive), names::node(drive));
    Command::new("blockdev-insert-medium", json!({ "id": id, "node-name": node }))
}

/// The command that closes a drive.
pub fn close_tray(drive: &str) -> Command {
    Command::new("blockdev-close-tray", json!({ "id": names::disk(drive) }))
}

/// The command that gives a disk another size.
pub fn resize(disk: &str, size: u64) -> Command {
    Command::new("block_resize", json!({ "node-name": names::node(disk), "size": size }))
}

/// The commands that add a network card to a machine that runs.
///
/// Queues of a tap device that are open in the caller go by [`names::tap_queue`], so they must have been handed over
/// under these names.
pub fn attach_interface(domain: &Domain, interface: &Interface) -> Vec<Command> {
    let mut commands = Vec::new();
    if let NetBackend::VhostUser { socket, .. } = &interface.backend {
        let address = json!({ "type": "unix", "data": { "path": socket } });
        let backend = json!({ "type": "socket", "data": { "addr": address, "server": false } });
        let arguments = json!({ "id": names::card_stream(&interface.name), "backend": backend });
        commands.push(Command::new("chardev-add", arguments));
    }
    let mut args = Args::default();
    network::add_later(domain, interface, &mut args);
    commands.extend(as_commands(&args));
    if !interface.link_up {
        commands.push(set_link(&interface.name, false));
    }
    commands
}

/// The commands that remove the host's side of a network card, once the card is out.
pub fn close_interface(interface: &Interface) -> Vec<Command> {
    let mut commands = vec![Command::new("netdev_del", json!({ "id": names::netdev(&interface.name) }))];
    if matches!(interface.backend, NetBackend::VhostUser { .. }) {
        commands.push(Command::new("chardev-remove", json!({ "id": names::card_stream(&interface.name) })));
    }
    commands
}

/// The commands that add a host device to a machine that runs.
pub fn attach_host_device(domain: &Domain, device: &HostDevice) -> Vec<Command> {
    let mut args = Args::default();
    host_devices::add_one(domain, device, &mut args);
    as_commands(&args)
}

/// The command that plugs in or pulls out the cable of a network card.
pub fn set_link(interface: &str, up: bool) -> Command {
    Command::new("set_link", json!({ "name": names::interface(interface), "up": up }))
}

/// The command that asks the guest to take so much of the memory that can grow.
pub fn request_memory(bytes: u64) -> Command {
    let path = format!("/machine/peripheral/{}", names::MEMORY);
    Command::new("qom-set", json!({ "path": path, "property": "requested-size", "value": bytes }))
}

/// The command that makes an IO thread.
pub fn add_io_thread(number: u32) -> Command {
    add_object(&Object::qom("iothread", names::io_thread(number)))
}

/// The command that connects to the host's service for persistent reservations.
pub fn add_reservations(socket: &str) -> Command {
    add_object(&disks::reservations(socket))
}

/// The command that undoes [`add_reservations`].
pub fn remove_reservations() -> Command {
    Command::new("object-del", json!({ "id": block::RESERVATIONS }))
}

fn open_tray(disk: &str) -> Command {
    Command::new("blockdev-open-tray", json!({ "force": true, "id": names::disk(disk) }))
}

fn add_object(object: &Object) -> Command {
    Command::new("object-add", json!(object))
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
