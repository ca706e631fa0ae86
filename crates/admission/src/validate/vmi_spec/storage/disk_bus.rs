//! The bus of a disk, and what goes with it.

use kubevirt_api::vmi::disks::{Disk, DiskBus};

use super::disks::DISKS_AGAIN;
use crate::{Path, Problems};

/// What a disk is to the guest, and its bus where it names one.
pub(super) fn target_of(disk: &Disk) -> Option<(&'static str, Option<&DiskBus>)> {
    let disk_target = disk.disk.as_ref().map(|target| ("disk", target.bus.as_ref()));
    let lun = || disk.lun.as_ref().map(|target| ("lun", target.bus.as_ref()));
    let cdrom = || disk.cdrom.as_ref().map(|target| ("cdrom", target.bus.as_ref()));
    disk_target.or_else(lun).or_else(cdrom)
}

/// The bus of a disk, if it names one.
pub(super) fn bus_of(disk: &Disk) -> Option<&DiskBus> {
    target_of(disk)?.1.filter(|bus| !bus.is_empty())
}

/// What is wrong with the bus of a disk.
pub(super) fn check(path: &Path<'_>, index: usize, disk: &Disk, problems: &mut Problems) {
    let (Some((target, _)), Some(bus)) = (target_of(disk), bus_of(disk)) else { return };
    let at = path.index(index);
    let at = at.at(target);
    let read_only = disk.disk.as_ref().is_some_and(|disk| disk.readonly == Some(true));
    match bus {
        DiskBus::Virtio if target == "cdrom" => {
            problems.invalid(&at.at("bus"), "a CD-ROM cannot be on the bus virtio: use sata, scsi or usb");
        }
        DiskBus::Sata if read_only => {
            problems.invalid(&at.at("bus"), "a disk on the bus sata cannot be read-only: use virtio or scsi");
        }
        DiskBus::Other(name) => {
            let known = DiskBus::KNOWN.join(", ");
            problems.invalid(&at.at("bus"), format!("{name:?} is no bus for disks: use one of {known}"));
        }
        _ => {}
    }
    if disk.dedicated_io_thread == Some(true) && *bus != DiskBus::Virtio {
        let again = path.at(DISKS_AGAIN);
        let message = format!("a disk on the bus {bus} cannot have an IO thread of its own: use virtio");
        problems.not_supported(&again.index(index), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::disks;
    use super::*;
    use crate::testing::{assert_fields, read};

    #[test]
    fn a_bus_suits_its_disk() {
        let cases: Vec<(&str, Value, &[&str])> = vec![
            ("a disk on virtio", json!({"disk": {"bus": "virtio"}}), &[]),
            ("a disk on sata", json!({"disk": {"bus": "sata"}}), &[]),
            ("a disk on scsi", json!({"disk": {"bus": "scsi"}}), &[]),
            ("a disk on usb", json!({"disk": {"bus": "usb"}}), &[]),
            ("a disk on no bus", json!({"disk": {"bus": ""}}), &[]),
            ("a disk on ide", json!({"disk": {"bus": "ide"}}), &["disks[0].disk.bus"]),
            ("a disk on an unknown bus", json!({"disk": {"bus": "nvme"}}), &["disks[0].disk.bus"]),
            ("a LUN on an unknown bus", json!({"lun": {"bus": "nvme"}}), &["disks[0].lun.bus"]),
            ("a CD-ROM on ide", json!({"cdrom": {"bus": "ide"}}), &["disks[0].cdrom.bus"]),
            ("a CD-ROM on virtio", json!({"cdrom": {"bus": "virtio"}}), &["disks[0].cdrom.bus"]),
            ("a CD-ROM on sata", json!({"cdrom": {"bus": "sata", "readonly": true}}), &[]),
            ("a LUN on virtio", json!({"lun": {"bus": "virtio"}}), &[]),
            ("a LUN on sata, read-only", json!({"lun": {"bus": "sata", "readonly": true}}), &[]),
            (
                "a disk on sata, read-only",
                json!({"disk": {"bus": "sata", "readonly": true}}),
                &["disks[0].disk.bus"],
            ),
            ("a disk on scsi, read-only", json!({"disk": {"bus": "scsi", "readonly": true}}), &[]),
            ("an IO thread on virtio", json!({"disk": {"bus": "virtio"}, "dedicatedIOThread": true}), &[]),
            ("an IO thread on no bus", json!({"disk": {}, "dedicatedIOThread": true}), &[]),
            ("an IO thread refused", json!({"disk": {"bus": "sata"}, "dedicatedIOThread": false}), &[]),
            (
                "an IO thread on sata",
                json!({"disk": {"bus": "sata"}, "dedicatedIOThread": true}),
                &["disks.domain.devices.disks[0]"],
            ),
            (
                "an IO thread on an unknown bus",
                json!({"disk": {"bus": "nvme"}, "dedicatedIOThread": true}),
                &["disks[0].disk.bus", "disks.domain.devices.disks[0]"],
            ),
        ];
        for (case, mut disk, expected) in cases {
            disk["name"] = "root".into();
            let mut problems = Problems::default();
            disks::check(&Path::new("disks"), &[read(disk)], &mut problems);
            assert_fields(case, &problems, expected);
        }
    }
}
