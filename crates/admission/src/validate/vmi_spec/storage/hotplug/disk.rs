//! A disk that is to be plugged in.

use kubevirt_api::vmi::disks::{Disk, DiskBus};

use crate::validate::vmi_spec::storage::disk_bus::bus_of;
use crate::{Path, Problems};

/// What is wrong with a disk that is to be plugged into a running instance; `field` is where it is asked for.
pub fn check_disk(disk: &Disk, name: &str, field: &Path<'_>, problems: &mut Problems) {
    let bus = bus_of(disk);
    let shown = bus.map_or("none", DiskBus::as_str);
    if disk.disk.is_some() {
        if !matches!(bus, Some(DiskBus::Scsi | DiskBus::Virtio)) {
            let message = format!("to plug in disk {name:?} its bus must be scsi or virtio, not {shown}");
            problems.invalid(field, message);
        }
    } else if disk.lun.is_some() {
        if bus != Some(&DiskBus::Scsi) {
            let message = format!("to plug in LUN {name:?} its bus must be scsi, not {shown}");
            problems.invalid(field, message);
        }
    } else {
        problems.invalid(field, format!("to plug in {name:?} it must be a disk or a lun"));
        return;
    }
    if disk.dedicated_io_thread == Some(true) && bus != Some(&DiskBus::Virtio) {
        problems.invalid(field, format!("disk {name:?} needs the bus virtio for an IO thread of its own"));
    }
    if disk.boot_order.is_some_and(|order| order < 1) {
        // Clients know the problem under this path, whichever disk it is.
        problems.invalid(&Path::new("spec.domain.devices.disks[1].bootOrder"), "boot orders start at 1");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{assert_fields, read};

    #[test]
    fn a_disk_to_plug_in_suits_its_bus() {
        const ORDER: &str = "spec.domain.devices.disks[1].bootOrder";
        let cases: Vec<(&str, Value, &[&str])> = vec![
            ("a disk on scsi", json!({"disk": {"bus": "scsi"}}), &[]),
            ("a disk on virtio", json!({"disk": {"bus": "virtio"}}), &[]),
            ("a disk on sata", json!({"disk": {"bus": "sata"}}), &["here"]),
            ("a disk on no bus", json!({"disk": {}}), &["here"]),
            ("a LUN on scsi", json!({"lun": {"bus": "scsi"}}), &[]),
            ("a LUN on virtio", json!({"lun": {"bus": "virtio"}}), &["here"]),
            ("a CD-ROM", json!({"cdrom": {"bus": "scsi"}}), &["here"]),
            ("nothing", json!({}), &["here"]),
            ("an IO thread on virtio", json!({"disk": {"bus": "virtio"}, "dedicatedIOThread": true}), &[]),
            ("an IO thread on scsi", json!({"disk": {"bus": "scsi"}, "dedicatedIOThread": true}), &["here"]),
            ("first to boot", json!({"disk": {"bus": "scsi"}, "bootOrder": 1}), &[]),
            ("boot order 0", json!({"disk": {"bus": "scsi"}, "bootOrder": 0}), &[ORDER]),
        ];
        for (case, mut disk, expected) in cases {
            disk["name"] = "d".into();
            let mut problems = Problems::default();
            check_disk(&read(disk), "d", &Path::new("here"), &mut problems);
            assert_fields(case, &problems, expected);
        }
    }
}
