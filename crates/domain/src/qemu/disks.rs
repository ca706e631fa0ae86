//! Disk devices and the SCSI, SATA and USB places they hang on.

use serde_json::{Value, json};

use super::args::{Args, Object, virtio};
use super::{block, names};
use crate::domain::disk::{Cache, Disk, DiskBus, DiskKind, ErrorPolicy};
use crate::domain::{Architecture, Domain};

/// Ports of one SATA controller.
const SATA_PORTS: u32 = 6;

pub(super) fn add(domain: &Domain, args: &mut Args) {
    if let Some(socket) = domain.reservations.as_ref().filter(|_| domain.disks.iter().any(Disk::reserves)) {
        args.object("-object", &reservations(socket));
    }
    for disk in &domain.disks {
        add_one(domain, disk, args);
    }
}

/// Connection to the host's service for persistent reservations.
pub(super) fn reservations(socket: &str) -> Object {
    Object::qom("pr-manager-helper", block::RESERVATIONS).with("path", socket)
}

pub(super) fn add_one(domain: &Domain, disk: &Disk, args: &mut Args) {
    block::add(disk, args);
    match &disk.bus {
        DiskBus::Virtio { .. } => virtio_disk(domain, disk, args),
        DiskBus::Sata { port } => sata_disk(domain, disk, *port, args),
        DiskBus::Scsi { unit } => scsi_disk(disk, *unit, args),
        DiskBus::Usb => usb_disk(disk, args),
    }
}

fn virtio_disk(domain: &Domain, disk: &Disk, args: &mut Args) {
    let DiskBus::Virtio { address, queues, io_threads } = &disk.bus else { return };
    let mapping = (io_threads.len() > 1).then(|| {
        let thread = |number: &u32| json!({ "iothread": names::io_thread(*number) });
        Value::from(io_threads.iter().map(thread).collect::<Vec<_>>())
    });
    let one = io_threads.first().filter(|_| io_threads.len() == 1).map(|number| names::io_thread(*number));
    let device = virtio(domain, "blk", names::disk(&disk.name))
        .at(*address)
        .on("multifunction", domain.pci.leads_fixed_slot(*address))
        .maybe("num-queues", *queues)
        .maybe("iothread", one)
        .maybe("iothread-vq-mapping", mapping);
    args.device(&finish(disk, device));
}

fn sata_disk(domain: &Domain, disk: &Disk, port: u32, args: &mut Args) {
    let driver = if disk.is_cdrom() { "ide-cd" } else { "ide-hd" };
    let (controller, port) = (port / SATA_PORTS, port % SATA_PORTS);
    let bus = match (domain.machine.architecture, controller) {
        (Architecture::Amd64, 0) => format!("ide.{port}"),
        (Architecture::Amd64, further) => format!("sata{further}.{port}"),
        (_, further) => format!("sata{}.{port}", further + 1),
    };
    args.device(&finish(disk, Object::device(driver, names::disk(&disk.name)).with("bus", bus)));
}

fn scsi_disk(disk: &Disk, unit: u32, args: &mut Args) {
    let driver = match disk.kind {
        DiskKind::Disk => "scsi-hd",
        DiskKind::Cdrom { .. } => "scsi-cd",
        DiskKind::Lun { .. } => "scsi-block",
    };
    let device = Object::device(driver, names::disk(&disk.name))
        .with("bus", "scsi0.0")
        .with("channel", 0)
        .with("scsi-id", 0)
        .with("lun", unit);
    let device = match disk.kind {
        DiskKind::Lun { .. } => device,
        _ => {
            device.with("device_id", disk.serial.clone().unwrap_or_else(|| format!("drive-ua-{}", disk.name)))
        }
    };
    args.device(&finish(disk, device));
}

fn usb_disk(disk: &Disk, args: &mut Args) {
    let id = names::disk(&disk.name);
    if !disk.is_cdrom() {
        return args.device(&finish(disk, Object::device("usb-storage", id).with("bus", "usb0.0")));
    }
    let bridge = format!("bot-{}", disk.name);
    args.device(&Object::device("usb-bot", bridge.clone()).with("bus", "usb0.0"));
    args.device(&finish(
        disk,
        Object::device("scsi-cd", id).with("bus", format!("{bridge}.0")).with("lun", 0),
    ));
}

/// What is the same on every bus.
fn finish(disk: &Disk, device: Object) -> Object {
    let device = device.maybe("bootindex", disk.boot_index);
    let is_lun = matches!(disk.kind, DiskKind::Lun { .. });
    let device = if is_lun { device } else { device.maybe("serial", disk.serial.clone()) };
    if disk.image.is_none() {
        return device;
    }
    let (write_error, read_error) = match disk.error_policy {
        ErrorPolicy::Stop => ("stop", "stop"),
        ErrorPolicy::Ignore => ("ignore", "ignore"),
        ErrorPolicy::Report => ("report", "report"),
        ErrorPolicy::Enospace => ("enospc", "report"),
    };
    let sizes = disk.block_size.filter(|_| !is_lun);
    let device = device
        .with("drive", names::node(&disk.name))
        .maybe("logical_block_size", sizes.map(|sizes| sizes.logical))
        .maybe("physical_block_size", sizes.map(|sizes| sizes.physical))
        .maybe("discard_granularity", sizes.and_then(|sizes| sizes.discard))
        .on("share-rw", disk.shareable)
        .with("werror", write_error)
        .with("rerror", read_error);
    if is_lun || disk.is_cdrom() {
        return device;
    }
    device.with("write-cache", if disk.cache == Cache::Writethrough { "off" } else { "on" })
}
