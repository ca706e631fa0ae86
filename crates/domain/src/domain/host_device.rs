//! Devices of the host that are given to the guest.

use serde::{Deserialize, Serialize};

use crate::pci::Address;

/// A device of the host that is given to the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostDevice {
    /// Name in the VMI.
    pub name: String,
    /// What it is for.
    pub role: HostDeviceRole,
    /// Which device it is.
    pub source: HostDeviceSource,
    /// Where it sits in the guest; none on USB.
    pub address: Option<Address>,
    /// Whether its picture is the machine's display.
    pub display: bool,
    /// Whether it has a frame buffer before the guest's driver starts.
    pub ramfb: bool,
    /// Place in the boot order, from 1.
    pub boot_index: Option<u32>,
    /// Number the guest's firmware names it by.
    pub acpi_index: Option<u32>,
}

/// What a host device is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostDeviceRole {
    /// A virtual function of a network card, for an interface.
    Sriov,
    /// A GPU or a part of one.
    Gpu,
    /// Anything else.
    Generic,
}

/// Which device of the host it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostDeviceSource {
    /// A PCI function, such as `0000:65:00.0`.
    Pci(String),
    /// A mediated device, by its UUID.
    Mdev(String),
    /// A USB device.
    Usb {
        /// Number of the bus.
        bus: u32,
        /// Number of the device on it.
        device: u32,
    },
}

impl HostDevice {
    /// Name of the device in QEMU.
    pub fn id(&self) -> String {
        let role = match self.role {
            HostDeviceRole::Sriov => "sriov",
            HostDeviceRole::Gpu => "gpu",
            HostDeviceRole::Generic => "hostdev",
        };
        format!("{role}-{}", self.name)
    }
}
