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
//! - Where the user writes an address on the root complex, the slot is his: root ports move on to other slots, and
//!   what has its own slot there otherwise goes behind a root port.

mod plan;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use plan::PciPlan;

/// First slot of the root complex with root ports.
const FIRST_PORT_SLOT: u8 = 0x02;
/// First slot of the root complex after the root ports.
const END_PORT_SLOT: u8 = 0x13;
/// Slot of the root complex that nothing has by itself; root ports that lost theirs to the user go there.
const SPARE_SLOT: u8 = 0x1e;
/// Last slot of the root complex with a device of its own.
const LAST_OWN_SLOT: u8 = 0x1c;
/// Slot of the root complex with the expanders.
const EXPANDER_SLOT: u8 = 0x1d;
/// How many expanders there can be.
const MAX_EXPANDERS: usize = 8;
/// How many root ports there can be.
pub const MAX_PORTS: u32 = (END_PORT_SLOT - FIRST_PORT_SLOT) as u32 * 8;

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
    /// Behind a root port of an expander, which is a second root complex on a NUMA node of the guest.
    Expander {
        /// NUMA node of the guest.
        node: u32,
        /// Number of the port, from 1.
        port: u32,
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PciLayout {
    /// How many there are, numbered from 1.
    pub ports: u32,
    /// Addresses that the user wrote, whose devices sit there or nowhere.
    pub fixed: BTreeSet<Address>,
    /// Second root complexes on NUMA nodes of the guest.
    pub expanders: Vec<Expander>,
}

/// A second root complex on a NUMA node of the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Expander {
    /// NUMA node of the guest.
    pub node: u32,
    /// Number of its bus; its root ports have those that follow.
    pub bus: u32,
    /// Root ports, numbered from 1.
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
    #[error("Invalid PCI address {0}: use slot 00 of a bus from 01, or slots 02 to 1c and 1e of bus 00")]
    NoSuchPlace(String),
    /// Guests look for further functions only behind the first one.
    #[error("Invalid PCI address {0}: no device has function 0 of this slot")]
    NoFirstFunction(String),
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
            Self::Expander { node, port } => write!(f, "node {node} port {port}"),
            Self::Ccw(device) => write!(f, "fe.0.{device:04x}"),
        }
    }
}

impl PciLayout {
    /// Adds a root port on a NUMA node of the guest; none if there are no buses or slots left.
    pub fn add_expander_port(&mut self, node: u32) -> Option<Address> {
        if !self.expanders.iter().any(|expander| expander.node == node) {
            if self.expanders.len() == MAX_EXPANDERS {
                return None;
            }
            self.expanders.push(Expander { node, bus: 0, ports: 0 });
        }
        let expander = self.expanders.iter_mut().find(|expander| expander.node == node)?;
        expander.ports += 1;
        let address = Address::Expander { node, port: expander.ports };
        // Their buses are the last ones there are, so that those of other ports stay.
        let mut end = 256_u32;
        for expander in &mut self.expanders {
            expander.bus = end.checked_sub(1 + expander.ports).filter(|bus| *bus > MAX_PORTS)?;
            end = expander.bus;
        }
        Some(address)
    }

    /// Where an expander itself sits, by its place among its like, as slot and function of the root complex.
    pub fn expander_slot(index: usize) -> (u8, u8) {
        (EXPANDER_SLOT, index.min(MAX_EXPANDERS - 1) as u8)
    }

    /// Where root port `port` itself sits, as slot and function of the root complex.
    pub fn port_slot(&self, port: u32) -> (u8, u8) {
        let index = port.saturating_sub(1);
        let slot = port_slots(&self.fixed).nth(index as usize / 8);
        (slot.unwrap_or(SPARE_SLOT), (index % 8) as u8)
    }

    /// Whether a device is the first of several that the user put into one slot.
    pub fn leads_fixed_slot(&self, address: Address) -> bool {
        let Address::Pci { bus: 0, slot, function: 0 } = address else { return false };
        let in_slot = |it: &&Address| matches!(it, Address::Pci { bus: 0, slot: own, .. } if *own == slot);
        !address.leads_slot() && self.fixed.iter().filter(in_slot).count() > 1
    }
}

/// Slots of the root complex that root ports can have, in the order in which they fill them.
fn port_slots(fixed: &BTreeSet<Address>) -> impl Iterator<Item = u8> {
    let own = FIRST_PORT_SLOT..END_PORT_SLOT;
    let lost = own.clone().any(|slot| is_fixed(fixed, slot));
    let spare = Some(SPARE_SLOT).filter(|_| lost);
    own.chain(spare).filter(|slot| !is_fixed(fixed, *slot))
}

/// Whether the user gave this slot of the root complex to a device.
fn is_fixed(fixed: &BTreeSet<Address>, slot: u8) -> bool {
    fixed.iter().any(|address| matches!(address, Address::Pci { bus: 0, slot: own, .. } if *own == slot))
}
