//! The domain: a complete, typed description of one virtual machine.

pub mod cpu;
pub mod devices;
pub mod disk;
pub mod firmware;
pub mod host_device;
pub mod memory;
pub mod network;
pub mod security;
pub mod target;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::pci::{Address, PciLayout};
use crate::pinning::Pinning;
use cpu::Cpu;
use devices::Devices;
use disk::Disk;
use firmware::{Clock, Firmware, KernelBoot, Smbios};
use host_device::HostDevice;
use memory::Memory;
use network::Interface;
use security::LaunchSecurity;

/// One virtual machine, down to the address of each device.
///
/// Launchers of different versions hand it to each other when a machine migrates: fields that are not known are
/// ignored, and a new field must have a default that says what machines were before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Domain {
    /// Who it is.
    pub identity: Identity,
    /// The board.
    pub machine: Machine,
    /// Virtual CPUs.
    pub cpu: Cpu,
    /// Guest memory.
    pub memory: Memory,
    /// What runs first.
    pub firmware: Firmware,
    /// A kernel that is started directly.
    pub kernel: Option<KernelBoot>,
    /// The guest's clock.
    #[serde(default)]
    pub clock: Clock,
    /// Tables the guest reads about its hardware.
    #[serde(default)]
    pub smbios: Smbios,
    /// Protection of the guest from its host.
    pub launch_security: Option<LaunchSecurity>,
    /// How many IO threads there are; they are named `iothread1` and up.
    #[serde(default)]
    pub io_threads: u32,
    /// Root ports, used and spare.
    #[serde(default)]
    pub pci: PciLayout,
    /// Disks, in the order of the VMI.
    #[serde(default)]
    pub disks: Vec<Disk>,
    /// Network cards, in the order of the VMI.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
    /// Devices of the host given to the guest.
    #[serde(default)]
    pub host_devices: Vec<HostDevice>,
    /// The kernel's newer way to share memory with host devices, as an open file that the process inherits.
    #[serde(default)]
    pub iommufd: Option<i32>,
    /// All other devices.
    #[serde(default)]
    pub devices: Devices,
    /// Which host CPUs its threads run on; none if they may run on any.
    pub pinning: Option<Pinning>,
    /// What happens at start and at a guest's reboot.
    #[serde(default)]
    pub lifecycle: Lifecycle,
    /// Unix socket of the host's service for persistent reservations, if a LUN may make them.
    pub reservations: Option<String>,
    /// Environment of the process, such as the time zone.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Small files that must be there before the process starts.
    #[serde(default)]
    pub files: Vec<FileContent>,
}

/// Who a domain is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Identity {
    /// Namespace of the VMI.
    pub namespace: String,
    /// Name of the VMI.
    pub name: String,
    /// UID of the VMI object.
    pub uid: String,
    /// System UUID that the guest sees.
    pub uuid: Option<String>,
}

/// Architecture of a guest or a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// 64-bit x86.
    #[default]
    Amd64,
    /// 64-bit Arm.
    Arm64,
    /// IBM Z.
    S390x,
}

/// What executes the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Accelerator {
    /// The CPU itself.
    Kvm,
    /// Translation by QEMU, with a buffer of this many MiB for translated code.
    Tcg {
        /// Size of the buffer in MiB.
        buffer: u32,
    },
}

/// The board of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// The type that the VMI asks for, which may be an alias; empty if it leaves the choice to us.
    #[serde(default)]
    pub asked: String,
    /// Machine type, as exact as is known, such as `pc-q35-10.0`.
    pub machine_type: String,
    /// Architecture of the guest.
    pub architecture: Architecture,
    /// What runs it.
    pub accelerator: Accelerator,
    /// Whether there are ACPI tables.
    pub acpi: bool,
    /// Whether there is System Management Mode, if that is asked for.
    pub smm: Option<bool>,
    /// Whether there is a High Precision Event Timer, if that is asked for.
    pub hpet: Option<bool>,
    /// Whether there is a Programmable Interval Timer, if that is asked for.
    pub pit: Option<bool>,
    /// Whether virtio devices must use the platform's memory translation, as encrypted guests need.
    pub virtio_iommu: bool,
    /// Whether the 64-bit PCI window is closed, for old guests.
    pub no_pci_hole64: bool,
    /// How virtio devices present themselves.
    pub virtio: VirtioModel,
}

/// How virtio devices present themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum VirtioModel {
    /// Modern only, on PCI.
    #[default]
    Modern,
    /// Modern and legacy, on PCI.
    Transitional,
    /// On the channel subsystem of IBM Z.
    Ccw,
}

/// What happens at start and at a guest's reboot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lifecycle {
    /// The guest does not run until somebody says so.
    pub start_paused: bool,
    /// A guest's reboot ends the machine.
    pub terminate_on_reboot: bool,
}

/// A small file that must be there before the process starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileContent {
    /// Absolute path.
    pub path: String,
    /// What is in it.
    pub content: String,
}

impl Architecture {
    /// Reads the word of the API.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "amd64" => Some(Self::Amd64),
            "arm64" => Some(Self::Arm64),
            "s390x" => Some(Self::S390x),
            _ => None,
        }
    }

    /// The word of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
            Self::S390x => "s390x",
        }
    }

    /// Name of the QEMU program for this guest architecture.
    pub fn qemu_program(self) -> &'static str {
        match self {
            Self::Amd64 => "qemu-system-x86_64",
            Self::Arm64 => "qemu-system-aarch64",
            Self::S390x => "qemu-system-s390x",
        }
    }
}

impl Domain {
    /// Name of the domain: `namespace_name`.
    pub fn name(&self) -> String {
        format!("{}_{}", self.identity.namespace, self.identity.name)
    }

    /// The places of all devices.
    pub fn places(&self) -> BTreeSet<Address> {
        let devices = &self.devices;
        let of_disk = |disk: &Disk| match disk.bus {
            disk::DiskBus::Virtio { address, .. } => Some(address),
            _ => None,
        };
        let of_panic = |panic: &devices::PanicDevice| match panic {
            devices::PanicDevice::Pci(address) => Some(*address),
            _ => None,
        };
        let once = [
            devices.scsi.as_ref().map(|scsi| scsi.address),
            devices.usb,
            devices.serial_bus,
            devices.graphics.as_ref().and_then(|graphics| graphics.address),
            devices.sound.as_ref().map(|sound| sound.address),
            devices.watchdog.as_ref().and_then(|watchdog| watchdog.address),
            devices.rng,
            devices.balloon.as_ref().map(|balloon| balloon.address),
            devices.vsock.as_ref().map(|vsock| vsock.address),
            self.memory.hotplug.as_ref().map(|hotplug| hotplug.address),
        ];
        let listed = self.interfaces.iter().map(|interface| interface.address);
        listed
            .chain(self.disks.iter().filter_map(of_disk))
            .chain(self.host_devices.iter().filter_map(|device| device.address))
            .chain(devices.filesystems.iter().map(|filesystem| filesystem.address))
            .chain(devices.sata.iter().copied())
            .chain(devices.inputs.iter().filter_map(|input| input.address))
            .chain(devices.panic.iter().filter_map(of_panic))
            .chain(once.into_iter().flatten())
            .collect()
    }

    /// Root ports with no device behind them, which can take one while the machine runs.
    pub fn free_ports(&self) -> Vec<u32> {
        let used = self.places();
        (1..=self.pci.ports).filter(|port| !used.contains(&Address::port(*port))).collect()
    }

    /// Whether the CPU itself runs the guest.
    pub fn is_kvm(&self) -> bool {
        self.machine.accelerator == Accelerator::Kvm
    }
}
