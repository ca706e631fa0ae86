//! Where a device that is plugged in can sit: places that are free, and stay free of each other.

use std::collections::BTreeSet;

use crate::domain::Domain;
use crate::domain::disk::DiskBus;
use crate::domain::target::{index_of, name_of};
use crate::pci::Address;

/// Places of a running machine.
pub(super) struct Room {
    ports: u32,
    /// Ports on NUMA nodes of the guest.
    expanders: Vec<Address>,
    /// Taken before any change, or by one of them.
    taken: BTreeSet<Address>,
    /// Given up by a device that leaves, which may take its time.
    leaving: BTreeSet<Address>,
    targets: BTreeSet<String>,
    units: BTreeSet<u32>,
}

impl Room {
    /// The places of a machine as it runs.
    pub(super) fn of(running: &Domain) -> Self {
        let unit = |bus: &DiskBus| if let DiskBus::Scsi { unit } = bus { Some(*unit) } else { None };
        let expanders = running.pci.expanders.iter().flat_map(|expander| {
            (1..=expander.ports).map(|port| Address::Expander { node: expander.node, port })
        });
        Self {
            expanders: expanders.collect(),
            ports: running.pci.ports,
            taken: running.places(),
            leaving: BTreeSet::new(),
            targets: running.disks.iter().map(|disk| disk.target.clone()).collect(),
            units: running.disks.iter().filter_map(|disk| unit(&disk.bus)).collect(),
        }
    }

    /// The device at this place leaves.
    pub(super) fn leave(&mut self, address: Address) {
        self.leaving.insert(address);
    }

    /// A place for a device that a fresh machine would have at `wanted`.
    ///
    /// If that is taken, another root port serves, the last first, as the first ones are where fresh machines put
    /// their devices. A place that is only about to be free comes last. A `fixed` device sits where the user wrote.
    pub(super) fn take(&mut self, wanted: Address, fixed: bool) -> Option<Address> {
        let others: Vec<Address> = match wanted {
            Address::Pci { bus: 0, .. } => return None,
            Address::Pci { .. } => (1..=self.ports).rev().map(Address::port).collect(),
            Address::Expander { .. } => {
                let ports = (1..=self.ports).rev().map(Address::port);
                self.expanders.iter().copied().filter(|place| *place == wanted).chain(ports).collect()
            }
            Address::Ccw(device) => (device & 0xff00..=device | 0x00ff).map(Address::Ccw).collect(),
        };
        let own = others.contains(&wanted).then_some(wanted);
        let choices = own.into_iter().chain(others.into_iter().filter(|_| !fixed));
        let choices: Vec<_> = choices.collect();
        let free = choices.iter().find(|place| !self.taken.contains(place));
        let chosen = *free.or_else(|| choices.iter().find(|place| self.leaving.contains(place)))?;
        self.leaving.remove(&chosen);
        self.taken.insert(chosen);
        Some(chosen)
    }

    /// A name for a disk, and the unit of the SCSI controller that goes with it.
    pub(super) fn take_target(&mut self, wanted: &str, scsi: Option<u32>) -> Option<(String, u32)> {
        let prefix = wanted.get(..2)?;
        let free = |unit: &u32, name: &String| {
            !self.targets.contains(name) && (scsi.is_none() || !self.units.contains(unit))
        };
        let own = (scsi.or(index_of(prefix, wanted))?, wanted.to_owned());
        let others = (0..16384).map(|index| (index, name_of(prefix, index)));
        let mut choices = std::iter::once(own).chain(others);
        let (unit, name) = choices.find(|(unit, name)| free(unit, name))?;
        self.targets.insert(name.clone());
        self.units.extend(scsi.map(|_| unit));
        Some((name, unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(ports: u32, taken: &[u32]) -> Room {
        Room {
            ports,
            expanders: Vec::new(),
            taken: taken.iter().copied().map(Address::port).collect(),
            leaving: BTreeSet::new(),
            targets: BTreeSet::from(["sda".into(), "vda".into()]),
            units: BTreeSet::from([0]),
        }
    }

    #[test]
    fn the_wanted_place_then_the_last_then_one_that_is_left() {
        let mut room = room(4, &[1, 2]);
        room.leave(Address::port(1));
        let mut take = |port| room.take(Address::port(port), false);
        assert_eq!(take(3), Some(Address::port(3)));
        assert_eq!(take(2), Some(Address::port(4)));
        assert_eq!(take(2), Some(Address::port(1)));
        assert_eq!(take(2), None);
    }

    #[test]
    fn what_the_user_wrote_is_kept_or_refused() {
        let mut room = room(4, &[1]);
        assert_eq!(room.take(Address::port(1), true), None);
        assert_eq!(room.take(Address::port(9), true), None);
        assert_eq!(room.take(Address::port(2), true), Some(Address::port(2)));
        assert_eq!(room.take(Address::root(0x1e), true), None);
    }

    #[test]
    fn channel_devices_have_numbers() {
        let mut room = room(0, &[]);
        let disk = Address::Ccw(0x0200);
        assert_eq!(room.take(disk, false), Some(disk));
        assert_eq!(room.take(disk, false), Some(Address::Ccw(0x0201)));
    }

    #[test]
    fn names_and_units_are_not_given_twice() {
        let mut room = room(0, &[]);
        assert_eq!(room.take_target("sda", Some(0)), Some(("sdb".into(), 1)));
        assert_eq!(room.take_target("sdc", Some(2)), Some(("sdc".into(), 2)));
        assert_eq!(room.take_target("vda", None), Some(("vdb".into(), 1)));
        assert_eq!(room.take_target("", None), None);
    }
}
