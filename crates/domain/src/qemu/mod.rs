//! From a domain to QEMU's arguments and to the commands it needs before it runs.

mod args;
mod block;
mod board;
mod commands;
mod console;
mod cpu;
mod devices;
mod disks;
mod display;
mod firmware;
mod host_devices;
mod memory;
pub mod names;
mod network;
mod security;

pub use commands::{
    Command, add_io_thread, add_reservations, attach_disk, attach_host_device, attach_interface, close_image,
    close_interface, close_tray, open_image, put_medium, remove_reservations, request_memory, resize,
    set_link, start_commands, take_medium,
};

use crate::domain::Domain;
use crate::domain::cpu::CpuFeature;
use crate::domain::disk::Disk;
use crate::domain::network::Interface;
use args::Args;

/// What QEMU may not do: change privileges or resources, start programs, use old system calls.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// The arguments of the QEMU process, without the program's own name.
///
/// Whoever starts the process adds its monitor and `-S`: the guest runs once [`start_commands`] and then `cont` have
/// been sent.
pub fn arguments(domain: &Domain) -> Vec<String> {
    build(domain).list
}

/// The arguments of a QEMU process that a machine migrates to.
///
/// It starts stopped and empty, and says over its monitor where it listens.
pub fn incoming_arguments(domain: &Domain) -> Vec<String> {
    let mut domain = domain.clone();
    if domain.is_kvm() && domain.cpu.is_of_host() {
        // The guest knows its CPU: a host that cannot give it all of that must refuse.
        domain.cpu.features.push(CpuFeature { name: "enforce".into(), enabled: true });
    }
    let mut args = build(&domain);
    args.option("-incoming", "defer");
    args.list
}

/// Device drivers that the domain needs, each with the name of its device.
pub fn drivers(domain: &Domain) -> Vec<(String, String)> {
    build(domain).drivers
}

/// The disk that a block node is part of.
pub fn disk_of_node<'a>(domain: &'a Domain, node: &str) -> Option<&'a Disk> {
    domain.disks.iter().find(|disk| block::nodes(disk).iter().any(|own| own == node))
}

/// The disk of a device, by its name or its path in QEMU's tree of objects.
pub fn disk_of_device<'a>(domain: &'a Domain, device: &str) -> Option<&'a Disk> {
    let is = |disk: &&Disk| device.split('/').any(|part| part == names::disk(&disk.name));
    domain.disks.iter().find(is)
}

/// The network card of a device, by its name or its path in QEMU's tree of objects.
pub fn interface_of_device<'a>(domain: &'a Domain, device: &str) -> Option<&'a Interface> {
    let is = |card: &&Interface| device.split('/').any(|part| part == names::interface(&card.name));
    domain.interfaces.iter().find(is)
}

fn build(domain: &Domain) -> Args {
    let mut args = Args::default();
    args.option("-name", format!("guest={},debug-threads=on", args::escape(&domain.name())));
    board::add(domain, &mut args);
    cpu::add(domain, &mut args);
    memory::add(domain, &mut args);
    security::add(domain, &mut args);
    firmware::add(domain, &mut args);
    devices::controllers(domain, &mut args);
    disks::add(domain, &mut args);
    network::add(domain, &mut args);
    console::add(domain, &mut args);
    display::add(domain, &mut args);
    host_devices::add(domain, &mut args);
    devices::add(domain, &mut args);
    args.option("-sandbox", SANDBOX);
    args.option("-msg", "timestamp=on");
    args
}
