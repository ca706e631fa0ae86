//! Counts devices and hears the user's own PCI addresses before anything is placed.

use kubevirt_api::vmi::disks::DiskBus;
use kubevirt_api::vmi::network::Interface;

use super::{Conversion, disks};
use crate::pci::{Counts, PciPlan};

/// Makes the plan that all devices get their addresses from.
pub(super) fn plan(c: &mut Conversion<'_>) {
    let devices = &c.spec.devices;
    let interfaces = devices.interfaces.as_deref().unwrap_or_default();
    let count = |number: usize| number as u32;
    let has_sriov = |interface: &&Interface| interface.sriov.is_some();
    let sriov = interfaces.iter().filter(has_sriov).count();
    let all_disks = devices.disks.as_deref().unwrap_or_default();
    let virtio = all_disks.iter().filter(|disk| disks::bus(c, disk) == DiskBus::Virtio).count();
    let counts = Counts {
        interfaces: count(interfaces.len() - sriov),
        disks: count(virtio),
        sriov: count(sriov),
        host_devices: count(
            devices.gpus.iter().flatten().count() + devices.host_devices.iter().flatten().count(),
        ),
        filesystems: count(devices.filesystems.iter().flatten().count()),
    };
    c.pci = PciPlan::new(c.architecture, counts, c.on_root_complex_only());
    wishes(c);
}

/// Reserves the addresses that the user wrote.
fn wishes(c: &mut Conversion<'_>) {
    let interfaces = c.spec.devices.interfaces.as_deref().unwrap_or_default();
    let disks = c.spec.devices.disks.as_deref().unwrap_or_default();
    let of_interfaces = interfaces.iter().enumerate().map(|(index, interface)| {
        (format!("spec.domain.devices.interfaces[{index}]"), ".pciAddress", interface.pci_address.as_deref())
    });
    let of_disks = disks.iter().enumerate().map(|(index, disk)| {
        let address = disk.disk.as_ref().and_then(|disk| disk.pci_address.as_deref());
        (format!("spec.domain.devices.disks[{index}]"), ".disk.pciAddress", address)
    });
    let mut reserved = Vec::new();
    for (field, end, address) in of_interfaces.chain(of_disks).collect::<Vec<_>>() {
        let Some(address) = address.filter(|address| !address.is_empty()) else { continue };
        match c.pci.reserve(address) {
            Ok(address) => {
                reserved.push((format!("{field}{end}"), address));
                c.wished.insert(field, address);
            }
            Err(error) => c.unsupported(format!("{field}{end}"), error),
        }
    }
    for (field, address) in reserved {
        if let Err(error) = c.pci.check(address) {
            c.unsupported(field, error);
        }
    }
}
