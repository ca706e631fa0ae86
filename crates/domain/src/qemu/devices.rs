//! Root ports, controllers and the devices a machine has once.

use super::args::{Args, Object, escape, modern, virtio};
use super::{console, names};
use crate::domain::devices::PanicDevice;
use crate::domain::{Architecture, Domain, VirtioModel};
use crate::pci::PciLayout;

/// Root ports and the controllers that disks and others hang on.
pub(super) fn controllers(domain: &Domain, args: &mut Args) {
    for port in 1..=domain.pci.ports {
        let (slot, function) = domain.pci.port_slot(port);
        let addr = if function == 0 { format!("0x{slot:x}") } else { format!("0x{slot:x}.0x{function:x}") };
        let device = Object::device("pcie-root-port", format!("pci.{port}"))
            .with("bus", "pcie.0")
            .with("addr", addr)
            .with("chassis", port)
            .with("port", u32::from(slot) * 8 + u32::from(function))
            .on("multifunction", function == 0);
        args.device(&device);
    }
    expanders(domain, args);
    let devices = &domain.devices;
    if let Some(scsi) = &devices.scsi {
        let device = virtio(domain, "scsi", "scsi0")
            .at(scsi.address)
            .maybe("iothread", scsi.io_thread.map(names::io_thread))
            .maybe("num_queues", scsi.queues);
        args.device(&device);
    }
    for (index, address) in devices.sata.iter().enumerate() {
        args.device(&Object::device("ich9-ahci", format!("sata{}", index + 1)).at(*address));
    }
    if let Some(address) = devices.usb {
        args.device(&Object::device("qemu-xhci", "usb0").at(address).with("p2", 15).with("p3", 15));
    }
}

/// Second root complexes, each with its root ports.
fn expanders(domain: &Domain, args: &mut Args) {
    for (index, expander) in domain.pci.expanders.iter().enumerate() {
        let (slot, function) = PciLayout::expander_slot(index);
        let (id, several) = (format!("pxb{}", expander.node), domain.pci.expanders.len() > 1);
        let device = Object::device("pxb-pcie", id.clone())
            .with("bus", "pcie.0")
            .with("addr", format!("0x{slot:x}.0x{function:x}"))
            .on("multifunction", function == 0 && several)
            .with("bus_nr", expander.bus)
            .with("numa_node", expander.node);
        args.device(&device);
        for port in 1..=expander.ports {
            let device = Object::device("pcie-root-port", format!("{id}.{port}"))
                .with("bus", id.clone())
                .with("addr", format!("0x{:x}", port - 1))
                .with("chassis", expander.bus.saturating_add(port))
                .with("port", port);
            args.device(&device);
        }
    }
}

/// Devices a machine has once, and shared directories.
pub(super) fn add(domain: &Domain, args: &mut Args) {
    let devices = &domain.devices;
    tpm(domain, args);
    if let Some(file) = &devices.firmware_log {
        args.option("-chardev", format!("file,id=firmwarelog,path={}", escape(file)));
        let device = Object::device("isa-debugcon", "firmwarelog0").with("iobase", 0x402);
        args.device(&device.with("chardev", "firmwarelog"));
    }
    if let Some(watchdog) = &devices.watchdog {
        let id = format!("watchdog-{}", watchdog.name);
        match watchdog.address {
            Some(address) => args.device(&Object::device("i6300esb", id).at(address)),
            None => args.device(&Object::device("diag288", id)),
        }
    }
    if let Some(address) = devices.rng {
        args.object("-object", &Object::qom("rng-random", "objrng0").with("filename", "/dev/urandom"));
        args.device(&virtio(domain, "rng", "rng0").at(address).with("rng", "objrng0"));
    }
    if let Some(balloon) = &devices.balloon {
        let device = virtio(domain, "balloon", "balloon0").at(balloon.address);
        args.device(&device.on("free-page-reporting", balloon.free_page_reporting));
    }
    for (index, panic) in devices.panic.iter().enumerate() {
        match panic {
            PanicDevice::Isa => args.device(&Object::device("pvpanic", format!("panic{index}"))),
            PanicDevice::Pci(address) => {
                args.device(&Object::device("pvpanic-pci", format!("panic{index}")).at(*address));
            }
            PanicDevice::Hyperv => {}
        }
    }
    if let Some(vsock) = &devices.vsock {
        let driver = match domain.machine.virtio {
            VirtioModel::Ccw => "vhost-vsock-ccw",
            _ => "vhost-vsock-pci-non-transitional",
        };
        args.device(&Object::device(driver, "vsock0").at(vsock.address).with("guest-cid", vsock.cid));
    }
    for (index, socket) in devices.usb_redirects.iter().enumerate() {
        let stream = format!("charredir{index}");
        console::listen(args, &stream, socket, None);
        let device = Object::device("usb-redir", format!("redir{index}")).with("bus", "usb0.0");
        args.device(&device.with("chardev", stream));
    }
    for filesystem in &devices.filesystems {
        let stream = format!("charfs-{}", filesystem.name);
        console::connect(args, &stream, &filesystem.socket);
        let device =
            modern(domain, "vhost-user-fs", names::filesystem(&filesystem.name)).at(filesystem.address);
        args.device(&device.with("chardev", stream).with("tag", filesystem.name.clone()));
    }
}

fn tpm(domain: &Domain, args: &mut Args) {
    let Some(tpm) = &domain.devices.tpm else { return };
    console::connect(args, "chartpm0", &tpm.socket);
    args.option("-tpmdev", "emulator,id=tpmdev0,chardev=chartpm0");
    let driver = match (domain.machine.architecture, tpm.crb) {
        (Architecture::Arm64, _) => "tpm-tis-device",
        (_, true) => "tpm-crb",
        (_, false) => "tpm-tis",
    };
    args.device(&Object::device(driver, "tpm0").with("tpmdev", "tpmdev0"));
}
