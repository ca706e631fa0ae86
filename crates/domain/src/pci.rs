//! Where each device sits: addresses that stay when other devices come and go.
//!
//! A guest names its network cards and keeps its settings by address, so an address follows from what a device is
//! and its place in its own list, never from how many devices of other kinds there are:
//!
//! - What there is once (USB, balloon, …) has a slot of its own on the root complex, which costs no root port.
//! - Ports 1–4 are for network cards, 5 and 6 for the SCSI and channel controllers, 7 and up for virtio disks: the
//!   numbers a guest knows from KubeVirt's third PCI topology, where the first card is `enp1s0`.
//! - Further cards, virtual functions, host devices and shared directories come after them in zones that grow in
//!   steps. A guest's bus numbers count ports, so zones are padded with spare ports, which take hot-plugged devices.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::domain::Architecture;

/// First slot of the root complex with root ports.
const FIRST_PORT_SLOT: u8 = 0x02;
/// First slot of the root complex after the root ports.
const END_PORT_SLOT: u8 = 0x13;
/// How many root ports there can be.
pub const MAX_PORTS: u32 = (END_PORT_SLOT - FIRST_PORT_SLOT) as u32 * 8;
/// Guest memory above which a machine gets more spare ports, as they cost some of it.
const LARGE_MEMORY: u64 = 2 << 30;

/// Where a device sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Address {
    /// On PCI: bus 0 is the root complex, bus N is behind root port N.
    Pci {
        /// Number of the bus.
        bus: u32,
        /// Slot on the bus.
        slot: u8,
        /// Function of the slot.
        function: u8,
    },
    /// On the channel subsystem of IBM Z, by device number.
    Ccw(u16),
}

/// What a device is, and its place among its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Network card that is not a host device.
    Interface(u32),
    /// SCSI controller.
    Scsi,
    /// Controller of the channels.
    Serial,
    /// Virtio disk.
    Disk(u32),
    /// Virtual function of a network card.
    Sriov(u32),
    /// GPU or other host device.
    HostDevice(u32),
    /// Shared directory.
    Filesystem(u32),
    /// Graphics card.
    Video,
    /// USB controller.
    Usb,
    /// Memory balloon.
    Balloon,
    /// Random number generator.
    Rng,
    /// Watchdog.
    Watchdog,
    /// Sockets to the host.
    Vsock,
    /// Memory that can grow.
    Memory,
    /// Keyboard or tablet.
    Input(u32),
    /// Crash reporter.
    Panic(u32),
    /// Sound card.
    Sound,
    /// SATA controller beyond the board's own.
    Sata(u32),
}

/// How many devices of each kind that comes in lists there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Network cards.
    pub interfaces: u32,
    /// Virtio disks.
    pub disks: u32,
    /// Virtual functions.
    pub sriov: u32,
    /// GPUs and other host devices.
    pub host_devices: u32,
    /// Shared directories.
    pub filesystems: u32,
}

/// Root ports of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PciLayout {
    /// How many there are, numbered from 1.
    pub ports: u32,
}

/// Why a device has no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// All places of its kind are taken.
    #[error("there is no free PCI slot left for it")]
    Full,
    /// The text is no PCI address.
    #[error("{0:?} is not a PCI address of the form 0000:01:00.0")]
    Malformed(String),
    /// Another device was given the same address.
    #[error("the PCI address {0} is already taken")]
    Taken(String),
    /// The board has no such place.
    #[error(
        "the machine has no place for a device at {0}: use function 0 of slot 0 on buses 1 to {MAX_PORTS}"
    )]
    NoSuchPlace(String),
}

/// Hands out addresses.
#[derive(Clone, Debug)]
pub struct PciPlan {
    architecture: Architecture,
    counts: Counts,
    root_complex_only: bool,
    taken: BTreeMap<Address, Role>,
    reserved: BTreeSet<Address>,
}

impl Address {
    /// A slot of the root complex.
    pub fn root(slot: u8) -> Self {
        Self::Pci { bus: 0, slot, function: 0 }
    }

    /// The one slot behind a root port.
    pub fn port(port: u32) -> Self {
        Self::Pci { bus: port, slot: 0, function: 0 }
    }

    /// Whether it is the first of several functions that share a slot.
    pub fn leads_slot(&self) -> bool {
        matches!(self, Self::Pci { bus: 0, slot: 0x19 | 0x1a | 0x1c, function: 0 })
    }

    /// Reads `0000:01:00.0`.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        let malformed = || PlaceError::Malformed(text.to_owned());
        let (rest, function) = text.rsplit_once('.').ok_or_else(malformed)?;
        let mut parts = rest.split(':');
        let mut next = |width: usize| {
            let part = parts.next().filter(|part| part.len() == width).ok_or_else(malformed)?;
            u32::from_str_radix(part, 16).map_err(|_| malformed())
        };
        let (domain, bus, slot) = (next(4)?, next(2)?, next(2)?);
        let function = u8::from_str_radix(function, 16).map_err(|_| malformed())?;
        if parts.next().is_some() || domain != 0 || slot > 0x1f || function > 7 {
            return Err(malformed());
        }
        Ok(Self::Pci { bus, slot: slot as u8, function })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci { bus, slot, function } => write!(f, "0000:{bus:02x}:{slot:02x}.{function}"),
            Self::Ccw(device) => write!(f, "fe.0.{device:04x}"),
        }
    }
}

impl PciLayout {
    /// Where root port `port` itself sits, as slot and function of the root complex.
    pub fn port_slot(port: u32) -> (u8, u8) {
        let index = port.saturating_sub(1).min(MAX_PORTS - 1);
        (FIRST_PORT_SLOT + (index / 8) as u8, (index % 8) as u8)
    }
}

impl PciPlan {
    /// A plan for a machine with these devices.
    pub fn new(architecture: Architecture, counts: Counts, root_complex_only: bool) -> Self {
        Self { architecture, counts, root_complex_only, taken: BTreeMap::new(), reserved: BTreeSet::new() }
    }

    /// Keeps an address that the user wrote free for its device.
    pub fn reserve(&mut self, text: &str) -> Result<Address, PlaceError> {
        let address = Address::parse(text)?;
        let Address::Pci { bus, slot, function } = address else {
            return Err(PlaceError::NoSuchPlace(text.to_owned()));
        };
        let on_port = (1..=MAX_PORTS).contains(&bus) && slot == 0 && function == 0 && !self.root_complex_only;
        let on_root =
            bus == 0 && function == 0 && (slot == 0x1e || (self.root_complex_only && is_port_slot(slot)));
        if self.architecture == Architecture::S390x || !(on_port || on_root) {
            return Err(PlaceError::NoSuchPlace(text.to_owned()));
        }
        if !self.reserved.insert(address) {
            return Err(PlaceError::Taken(address.to_string()));
        }
        Ok(address)
    }

    /// The place of a device.
    pub fn place(&mut self, role: Role) -> Result<Address, PlaceError> {
        let address = match self.architecture {
            Architecture::S390x => Address::Ccw(ccw_device(role).ok_or(PlaceError::Full)?),
            _ => self.pci_address(role)?,
        };
        self.taken.insert(address, role);
        Ok(address)
    }

    /// The root ports that are needed and those kept spare.
    pub fn layout(&self, memory: u64) -> PciLayout {
        if self.root_complex_only || self.architecture == Architecture::S390x {
            return PciLayout { ports: 0 };
        }
        let behind_port = |address: &Address| match address {
            Address::Pci { bus, .. } => Some(*bus).filter(|bus| *bus > 0),
            Address::Ccw(_) => None,
        };
        let used: BTreeSet<u32> = self.taken.keys().chain(&self.reserved).filter_map(behind_port).collect();
        let top = used.last().copied().unwrap_or(0);
        let (total, free) = if memory > LARGE_MEMORY { (16, 6) } else { (8, 3) };
        let ports = top.max(total).max(used.len() as u32 + free);
        PciLayout { ports: ports.min(MAX_PORTS) }
    }

    fn pci_address(&self, role: Role) -> Result<Address, PlaceError> {
        if let Some(address) = root_address(role) {
            return if self.taken.contains_key(&address) { Err(PlaceError::Full) } else { Ok(address) };
        }
        if self.root_complex_only {
            return self.root_slot(role).ok_or(PlaceError::Full);
        }
        let free = |address: &Address| !self.taken.contains_key(address) && !self.reserved.contains(address);
        let wanted = Address::port(self.port(role).ok_or(PlaceError::Full)?);
        if free(&wanted) {
            return Ok(wanted);
        }
        (self.zones().end..=MAX_PORTS).map(Address::port).find(free).ok_or(PlaceError::Full)
    }

    /// Without root ports, devices take the ports' slots in the order of their kinds.
    fn root_slot(&self, role: Role) -> Option<Address> {
        let Counts { interfaces, disks, sriov, host_devices, .. } = self.counts;
        let controllers = interfaces;
        let first_disk = controllers + 2;
        let first_passed = first_disk + disks;
        let place = match role {
            Role::Interface(index) => index,
            Role::Scsi => controllers,
            Role::Serial => controllers + 1,
            Role::Disk(index) => first_disk + index,
            Role::Sriov(index) => first_passed + index,
            Role::HostDevice(index) => first_passed + sriov + index,
            Role::Filesystem(index) => first_passed + sriov + host_devices + index,
            _ => return None,
        };
        let slots = (FIRST_PORT_SLOT..END_PORT_SLOT).map(Address::root);
        slots.filter(|address| !self.reserved.contains(address)).nth(place as usize)
    }

    fn zones(&self) -> Zones {
        let base = 16 + self.counts.disks.saturating_sub(10).next_multiple_of(8);
        let grown = |count: u32, step: u32| count.max(1).next_multiple_of(step);
        let cards = base + 1;
        let sriov = cards + grown(self.counts.interfaces.saturating_sub(4), 4);
        let host_devices = sriov + grown(self.counts.sriov, 4);
        let filesystems = host_devices + grown(self.counts.host_devices, 8);
        Zones {
            cards,
            sriov,
            host_devices,
            filesystems,
            end: filesystems + grown(self.counts.filesystems, 4),
        }
    }

    fn port(&self, role: Role) -> Option<u32> {
        let zones = self.zones();
        let port = match role {
            Role::Interface(index @ 0..4) => index + 1,
            Role::Interface(index) => zones.cards + index - 4,
            Role::Scsi => 5,
            Role::Serial => 6,
            Role::Disk(index) => 7 + index,
            Role::Sriov(index) => zones.sriov + index,
            Role::HostDevice(index) => zones.host_devices + index,
            Role::Filesystem(index) => zones.filesystems + index,
            _ => return None,
        };
        (port <= MAX_PORTS).then_some(port)
    }
}

/// First ports of the zones beyond the first sixteen or so ports.
struct Zones {
    cards: u32,
    sriov: u32,
    host_devices: u32,
    filesystems: u32,
    end: u32,
}

fn is_port_slot(slot: u8) -> bool {
    (FIRST_PORT_SLOT..END_PORT_SLOT).contains(&slot)
}

/// The slot of what there is once, on the root complex.
fn root_address(role: Role) -> Option<Address> {
    let address = match role {
        Role::Video => Address::root(0x01),
        Role::Usb => Address::root(0x13),
        Role::Balloon => Address::root(0x14),
        Role::Rng => Address::root(0x15),
        Role::Watchdog => Address::root(0x16),
        Role::Vsock => Address::root(0x17),
        Role::Memory => Address::root(0x18),
        Role::Input(index) => Address::Pci { bus: 0, slot: 0x19, function: index.min(7) as u8 },
        Role::Panic(index) => Address::Pci { bus: 0, slot: 0x1a, function: index.min(7) as u8 },
        Role::Sound => Address::root(0x1b),
        Role::Sata(index) => Address::Pci { bus: 0, slot: 0x1c, function: index.min(7) as u8 },
        _ => return None,
    };
    Some(address)
}

/// The device number on the channel subsystem, by kind and place.
fn ccw_device(role: Role) -> Option<u16> {
    let (base, index) = match role {
        Role::Scsi => (0x0001, 0),
        Role::Serial => (0x0002, 0),
        Role::Balloon => (0x0003, 0),
        Role::Rng => (0x0004, 0),
        Role::Video => (0x0005, 0),
        Role::Vsock => (0x0006, 0),
        Role::Memory => (0x0007, 0),
        Role::Input(index) => (0x0010, index),
        Role::Interface(index) => (0x0100, index),
        Role::Disk(index) => (0x0200, index),
        Role::Filesystem(index) => (0x0400, index),
        _ => return None,
    };
    u16::try_from(index).ok()?.checked_add(base)
}
