//! Network cards and their host side.

use super::args::{Args, Object, virtio};
use super::{console, names};
use crate::domain::Domain;
use crate::domain::network::{Interface, NetBackend, NicModel};

pub(super) fn add(domain: &Domain, args: &mut Args) {
    for interface in &domain.interfaces {
        add_one(domain, interface, args);
    }
}

fn add_one(domain: &Domain, interface: &Interface, args: &mut Args) {
    if let NetBackend::VhostUser { socket, .. } = &interface.backend {
        console::connect(args, &names::card_stream(&interface.name), socket);
    }
    host_side(interface, |_, fd| fd.to_string(), args);
    card(domain, interface, args);
}

/// For a machine that runs, which has been handed open queues under names and knows the stream already.
pub(super) fn add_later(domain: &Domain, interface: &Interface, args: &mut Args) {
    host_side(interface, |index, _| names::tap_queue(&interface.name, index), args);
    card(domain, interface, args);
}

fn host_side(interface: &Interface, queue: impl Fn(usize, i32) -> String, args: &mut Args) {
    let id = names::netdev(&interface.name);
    match &interface.backend {
        NetBackend::Tap { name, fds, vhost } => {
            let tap = Object::default().with("type", "tap").with("id", id);
            let queues: Vec<_> = fds.iter().enumerate().map(|(index, fd)| queue(index, *fd)).collect();
            let tap = match queues.as_slice() {
                [] => tap
                    .with("ifname", name.clone())
                    .with("script", "no")
                    .with("downscript", "no")
                    .maybe("queues", (interface.queues > 1).then_some(interface.queues)),
                [one] => tap.with("fd", one.clone()),
                many => tap.with("fds", many.join(":")),
            };
            args.object("-netdev", &tap.on("vhost", *vhost && interface.model == NicModel::Virtio));
        }
        NetBackend::VhostUser { .. } => {
            let stream = names::card_stream(&interface.name);
            let queues = (interface.queues > 1).then_some(interface.queues);
            let netdev = Object::default().with("type", "vhost-user").with("id", id).with("chardev", stream);
            args.object("-netdev", &netdev.maybe("queues", queues));
        }
    }
}

fn card(domain: &Domain, interface: &Interface, args: &mut Args) {
    let id = names::interface(&interface.name);
    let driver = match interface.model {
        NicModel::Virtio => None,
        NicModel::E1000 => Some("e1000"),
        NicModel::E1000e => Some("e1000e"),
        NicModel::Igb => Some("igb"),
        NicModel::Ne2kPci => Some("ne2k_pci"),
        NicModel::Pcnet => Some("pcnet"),
        NicModel::Rtl8139 => Some("rtl8139"),
    };
    let on_pci = matches!(interface.address, crate::pci::Address::Pci { .. });
    let device = match driver {
        Some(driver) => Object::device(driver, id),
        None => {
            let many = interface.queues > 1;
            // Two interrupts for each pair of queues, one for control and one for the configuration.
            let vectors = (many && on_pci).then_some(2 * interface.queues + 2);
            virtio(domain, "net", id)
                .maybe("host_mtu", interface.mtu)
                .on("mq", many)
                .maybe("vectors", vectors)
        }
    };
    let no_rom = on_pci && (interface.boot_index.is_none() || domain.machine.virtio_iommu);
    let device = device
        .at(interface.address)
        .on("multifunction", domain.pci.leads_fixed_slot(interface.address))
        .with("netdev", names::netdev(&interface.name))
        .with("mac", interface.mac.clone())
        .maybe("bootindex", interface.boot_index)
        .maybe("acpi-index", interface.acpi_index)
        .maybe("romfile", no_rom.then_some(""));
    args.device(&device);
}
