//! Devices of the host.

use super::args::{Args, Object};
use crate::domain::Domain;
use crate::domain::host_device::{HostDevice, HostDeviceSource};

/// Where the host lists mediated devices.
const MEDIATED_DEVICES: &str = "/sys/bus/mdev/devices";

/// The kernel's newer way to share memory with devices.
const IOMMUFD: &str = "iommufd0";

pub(super) fn add(domain: &Domain, args: &mut Args) {
    if let Some(fd) = domain.iommufd {
        args.object("-object", &Object::qom("iommufd", IOMMUFD).with("fd", fd.to_string()));
    }
    for device in &domain.host_devices {
        add_one(domain, device, args);
    }
}

pub(super) fn add_one(domain: &Domain, device: &HostDevice, args: &mut Args) {
    // The early frame buffer needs a device that is there from the start to the end.
    let driver = if device.ramfb { "vfio-pci-nohotplug" } else { "vfio-pci" };
    let object = match &device.source {
        HostDeviceSource::Usb { bus, device: number } => Object::device("usb-host", device.id())
            .with("bus", "usb0.0")
            .with("hostdevice", format!("/dev/bus/usb/{bus:03}/{number:03}")),
        HostDeviceSource::Pci(host) => Object::device(driver, device.id()).with("host", host.clone()),
        HostDeviceSource::Mdev(uuid) => {
            Object::device(driver, device.id()).with("sysfsdev", format!("{MEDIATED_DEVICES}/{uuid}"))
        }
    };
    let object = match device.address {
        Some(address) => object.at(address).on("multifunction", domain.pci.leads_fixed_slot(address)),
        None => object,
    };
    let object = object.maybe("acpi-index", device.acpi_index);
    let shares = domain.iommufd.filter(|_| !matches!(device.source, HostDeviceSource::Usb { .. }));
    let object = object.maybe("iommufd", shares.map(|_| IOMMUFD));
    let display = device.display.then_some("on");
    args.device(
        &object.maybe("display", display).on("ramfb", device.ramfb).maybe("bootindex", device.boot_index),
    );
}
