//! Names that guests are likely to give their disks, which users see in the status.

use std::collections::BTreeMap;

use kubevirt_api::vmi::disks::{self as api, DiskBus};
use kubevirt_api::vmi::status::VolumeStatus;

use super::{Conversion, disks};
use crate::domain::target::index_of;

/// Names such as `vda`: kept from the status where a disk has one, else the first that is free.
pub(super) fn targets(
    c: &Conversion<'_>,
    all: &[api::Disk],
    known: &[VolumeStatus],
) -> BTreeMap<String, (&'static str, u32)> {
    let prefix = |disk: &api::Disk| if disks::bus(c, disk) == DiskBus::Virtio { "vd" } else { "sd" };
    let mut targets = BTreeMap::new();
    for disk in all {
        let status = known.iter().find(|status| status.name == disk.name);
        let kept = status.and_then(|status| index_of(prefix(disk), &status.target));
        if let Some(index) = kept {
            targets.insert(disk.name.clone(), (prefix(disk), index));
        }
    }
    for disk in all {
        let prefix = prefix(disk);
        let mut free = (0..).filter(|index| !targets.values().any(|taken| *taken == (prefix, *index)));
        let first = free.next().unwrap_or(0);
        targets.entry(disk.name.clone()).or_insert((prefix, first));
    }
    targets
}
