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

pub(super) fn add_one(domain: &Domain, interface: &Interface, args: &mut Args) {
    host_side(interface, args);
    card(domain, interface, args);
}

fn host_side(interface: &Interface, args: &mut Args) {
    let id = names::netdev(&interface.name);
    match &interface.backend {
        NetBackend::Tap { name, fds, vhost } => {
            let tap = Object::default().with("type", "tap").with("id", id);
            let tap = match fds.as_slice() {
                [] => tap
                    .with("ifname", name.clone())
                    .with("script", "no")
                    .with("downscript", "no")
                    .maybe("queues", (interface.queues > 1).then_some(interface.queues)),
                [fd] => tap.with("fd", fd.to_string()),
                many => tap.with("fds", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(":")),
            };
            args.object("-netdev", &tap.on("vhost", *vhost && interface.model == NicModel::Virtio));
        }
        NetBackend::VhostUser { socket } => {
            let stream = format!("char-{}", interface.name);
            console::connect(args, &stream, socket);
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
        .with("netdev", names::netdev(&interface.name))
        .with("mac", interface.mac.clone())
        .maybe("bootindex", interface.boot_index)
        .maybe("acpi-index", interface.acpi_index)
        .maybe("romfile", no_rom.then_some(""));
    args.device(&device);
}
