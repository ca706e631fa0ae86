//! What a change comes to over the monitor.

use super::apply::last_io_thread;
use super::{Change, Step};
use crate::domain::Domain;
use crate::domain::disk::Disk;
use crate::domain::network::{Interface, NetBackend};
use crate::qemu::{self, Command, names};

pub(super) fn of(change: &Change, running: &Domain) -> Vec<Step> {
    match change {
        Change::DetachDisk(disk) => {
            let mut after = qemu::close_image(disk);
            if disk.reserves() && running.disks.iter().filter(|disk| disk.reserves()).count() == 1 {
                after.push(qemu::remove_reservations());
            }
            unplug(names::disk(&disk.name), after)
        }
        Change::DetachInterface(interface) => {
            unplug(names::interface(&interface.name), qemu::close_interface(interface))
        }
        Change::DetachHostDevice(device) => unplug(device.id(), Vec::new()),
        Change::ChangeMedium(drive) => change_medium(drive, running),
        Change::AttachDisk { disk, reservations } => {
            let mut commands = prerequisites(disk, reservations.as_deref(), running);
            commands.extend(qemu::attach_disk(running, disk));
            run(commands)
        }
        Change::AttachInterface(interface) => {
            let mut steps = open_queues(interface);
            steps.extend(run(qemu::attach_interface(running, interface)));
            steps
        }
        Change::AttachHostDevice(device) => run(qemu::attach_host_device(running, device)),
        Change::SetLink { interface, up } => run(vec![qemu::set_link(interface, *up)]),
        Change::ResizeDisk { disk, size } => run(vec![qemu::resize(disk, *size)]),
        Change::PlugSockets { sockets, .. } => {
            let count = sockets.saturating_mul(running.cpu.topology.per_socket());
            vec![Step::PlugCpus { count }]
        }
        Change::RequestMemory { bytes } => run(vec![qemu::request_memory(*bytes)]),
    }
}

pub(super) fn undo(change: &Change, running: &Domain) -> Vec<Command> {
    match change {
        Change::AttachDisk { disk, .. } => {
            let mut commands = qemu::close_image(disk);
            if disk.reserves() && !running.disks.iter().any(Disk::reserves) {
                commands.push(qemu::remove_reservations());
            }
            commands
        }
        Change::AttachInterface(interface) => qemu::close_interface(interface),
        Change::ChangeMedium(drive) => {
            // What is in the drive stays open, as it is in use; what did not get in is closed.
            let mut commands = qemu::close_image(drive);
            commands.push(qemu::close_tray(&drive.name));
            commands
        }
        _ => Vec::new(),
    }
}

/// IO threads and services that a new disk needs and the machine has not.
fn prerequisites(disk: &Disk, reservations: Option<&str>, running: &Domain) -> Vec<Command> {
    let threads = running.io_threads.saturating_add(1)..=last_io_thread(disk);
    let mut commands: Vec<_> = threads.map(qemu::add_io_thread).collect();
    let connected = running.disks.iter().any(Disk::reserves);
    if let Some(socket) = reservations.filter(|_| disk.reserves() && !connected) {
        commands.push(qemu::add_reservations(socket));
    }
    commands
}

fn change_medium(drive: &Disk, running: &Domain) -> Vec<Step> {
    let mut steps = run(qemu::take_medium(&drive.name));
    let before = running.disks.iter().find(|disk| disk.name == drive.name);
    steps.extend(before.into_iter().flat_map(qemu::close_image).map(Step::Clean));
    let mut insert = Vec::new();
    if drive.image.is_some() {
        insert = qemu::open_image(drive);
        insert.push(qemu::put_medium(&drive.name));
    }
    insert.push(qemu::close_tray(&drive.name));
    steps.extend(run(insert));
    steps
}

fn open_queues(interface: &Interface) -> Vec<Step> {
    let NetBackend::Tap { fds, .. } = &interface.backend else { return Vec::new() };
    let pass = |(index, fd): (usize, &i32)| Step::PassFile {
        fd: *fd,
        name: names::tap_queue(&interface.name, index),
    };
    fds.iter().enumerate().map(pass).collect()
}

fn unplug(device: String, after: Vec<Command>) -> Vec<Step> {
    std::iter::once(Step::Unplug { device }).chain(after.into_iter().map(Step::Clean)).collect()
}

fn run(commands: Vec<Command>) -> Vec<Step> {
    commands.into_iter().map(Step::Run).collect()
}
