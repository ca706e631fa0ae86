//! Hands out addresses, kind by kind.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Address, Counts, END_PORT_SLOT, FIRST_PORT_SLOT, LAST_OWN_SLOT, MAX_PORTS, PciLayout, PlaceError, Role,
    SPARE_SLOT, is_fixed, port_slots,
};
use crate::domain::Architecture;

/// Guest memory above which a machine gets more spare ports, as they cost some of it.
const LARGE_MEMORY: u64 = 2 << 30;

/// How many ports come before the zones.
const FIRST_PORTS: u32 = 16;

/// Hands out addresses.
#[derive(Clone, Debug)]
pub struct PciPlan {
    architecture: Architecture,
    counts: Counts,
    root_complex_only: bool,
    taken: BTreeMap<Address, Role>,
    reserved: BTreeSet<Address>,
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
        // Without root ports, what has a slot of its own could go nowhere else.
        let last = if self.root_complex_only { END_PORT_SLOT - 1 } else { LAST_OWN_SLOT };
        let on_root = bus == 0 && (slot == SPARE_SLOT || (FIRST_PORT_SLOT..=last).contains(&slot));
        if self.architecture == Architecture::S390x || !(on_port || on_root) {
            return Err(PlaceError::NoSuchPlace(text.to_owned()));
        }
        if !self.reserved.insert(address) {
            return Err(PlaceError::Taken(address.to_string()));
        }
        Ok(address)
    }

    /// Whether a reserved address can be reached, now that all of them are known.
    pub fn check(&self, address: Address) -> Result<(), PlaceError> {
        match address {
            Address::Pci { bus: 0, slot, function } if function > 0 => {
                let first = self.reserved.contains(&Address::root(slot));
                if first { Ok(()) } else { Err(PlaceError::NoFirstFunction(address.to_string())) }
            }
            Address::Pci { bus, .. } if bus > self.most_ports() => {
                Err(PlaceError::NoSuchPlace(address.to_string()))
            }
            _ => Ok(()),
        }
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
            return PciLayout { fixed: self.reserved.clone(), ..PciLayout::default() };
        }
        let behind_port = |address: &Address| match address {
            Address::Pci { bus, .. } => Some(*bus).filter(|bus| *bus > 0),
            Address::Expander { .. } | Address::Ccw(_) => None,
        };
        let used: BTreeSet<u32> = self.taken.keys().chain(&self.reserved).filter_map(behind_port).collect();
        let top = used.last().copied().unwrap_or(0);
        let (total, free) = if memory > LARGE_MEMORY { (16, 6) } else { (8, 3) };
        let ports = top.max(total).max(used.len() as u32 + free);
        PciLayout { ports: ports.min(self.most_ports()), fixed: self.reserved.clone(), expanders: Vec::new() }
    }

    /// How many root ports fit beside what the user put on the root complex.
    fn most_ports(&self) -> u32 {
        let slots = u32::try_from(port_slots(&self.reserved).count()).unwrap_or_default();
        (slots * 8).min(MAX_PORTS)
    }

    fn pci_address(&self, role: Role) -> Result<Address, PlaceError> {
        let (own, most) = (root_address(role), self.most_ports());
        let lost = |slot| is_fixed(&self.reserved, slot);
        match own {
            Some(Address::Pci { slot, .. }) if lost(slot) => {}
            Some(address) if self.taken.contains_key(&address) => return Err(PlaceError::Full),
            Some(address) => return Ok(address),
            None if self.root_complex_only => return self.root_slot(role).ok_or(PlaceError::Full),
            None => {}
        }
        let free = |address: &Address| !self.taken.contains_key(address) && !self.reserved.contains(address);
        let wanted = match own {
            Some(_) => None,
            None => Some(self.port(role).ok_or(PlaceError::Full)?),
        };
        // What lost its slot goes where disks come last, which costs few ports. Ports past all zones are nobody's place.
        let early = own.into_iter().flat_map(|_| (1..=FIRST_PORTS).rev());
        let others = early.chain(self.zones().end..=most).chain((1..=most).rev());
        let ports = wanted.into_iter().chain(others).filter(|port| *port <= most);
        ports.map(Address::port).find(free).ok_or(PlaceError::Full)
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
        let slots = (FIRST_PORT_SLOT..END_PORT_SLOT).filter(|slot| !is_fixed(&self.reserved, *slot));
        slots.map(Address::root).nth(place as usize)
    }

    fn zones(&self) -> Zones {
        let base = FIRST_PORTS + self.counts.disks.saturating_sub(10).next_multiple_of(8);
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
