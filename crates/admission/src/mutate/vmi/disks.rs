//! Disks: one for every volume, each with a kind and a bus.

use std::collections::HashSet;

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::disks::{Disk, DiskBus, DiskTarget, TrayState};

use super::{architecture, features};

/// Pulls images anew whose tag can move, and others once.
pub fn set_pull_policies(spec: &mut VirtualMachineInstanceSpec) {
    let disks = spec.volumes.iter_mut().flatten().filter_map(|volume| volume.container_disk.as_mut());
    for disk in disks.filter(|disk| disk.image_pull_policy.as_deref().unwrap_or_default().is_empty()) {
        let moves = disk.image.ends_with(":latest") || !disk.image.contains([':', '@']);
        disk.image_pull_policy = Some(if moves { "Always" } else { "IfNotPresent" }.to_owned());
    }
}

/// Adds a disk for every volume that neither a disk nor a file system shows to the guest.
pub fn add_missing(spec: &mut VirtualMachineInstanceSpec) {
    let devices = &mut spec.domain.devices;
    let disks = devices.disks.iter().flatten().map(|disk| disk.name.as_str());
    let shown: HashSet<&str> =
        disks.chain(devices.filesystems.iter().flatten().map(|shared| shared.name.as_str())).collect();
    let missing: Vec<Disk> = spec
        .volumes
        .iter()
        .flatten()
        .filter(|volume| !shown.contains(volume.name.as_str()))
        .map(|volume| Disk { name: volume.name.clone(), ..Disk::default() })
        .collect();
    if !missing.is_empty() {
        devices.disks.get_or_insert_default().extend(missing);
    }
}

/// Says of every disk what it is, on which bus, and how a CD starts out.
pub fn set_devices(spec: &mut VirtualMachineInstanceSpec) {
    // SATA is what most guests have a driver for; the other architectures have none.
    let usual = match architecture::of(spec) {
        "arm64" | "s390x" => DiskBus::Virtio,
        _ => DiskBus::Sata,
    };
    for disk in spec.domain.devices.disks.iter_mut().flatten() {
        if disk.disk.is_none() && disk.cdrom.is_none() && disk.lun.is_none() {
            disk.disk = Some(DiskTarget::default());
        }
        if let Some(cdrom) = &mut disk.cdrom {
            cdrom.readonly.get_or_insert(true);
            if cdrom.tray.as_ref().is_none_or(TrayState::is_empty) {
                cdrom.tray = Some(TrayState::Closed);
            }
        }
        if let Some(size) = &mut disk.block_size {
            features::switch_on(&mut size.match_volume);
        }
        let buses = [
            disk.disk.as_mut().map(|disk| &mut disk.bus),
            disk.cdrom.as_mut().map(|cdrom| &mut cdrom.bus),
            disk.lun.as_mut().map(|lun| &mut lun.bus),
        ];
        for bus in buses.into_iter().flatten().filter(|bus| bus.as_ref().is_none_or(DiskBus::is_empty)) {
            *bus = Some(usual.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::read;

    #[test]
    fn an_image_is_pulled_anew_if_its_tag_can_move() {
        let cases = [
            ("fedora", None, "Always"),
            ("quay.io/fedora", None, "Always"),
            ("fedora:latest", None, "Always"),
            ("fedora:42", None, "IfNotPresent"),
            ("fedora@sha256:00", None, "IfNotPresent"),
            ("registry:5000/fedora", None, "IfNotPresent"),
            ("fedora", Some("Never"), "Never"),
            ("fedora:42", Some(""), "IfNotPresent"),
        ];
        for (image, policy, expected) in cases {
            let volume =
                json!({ "name": "root", "containerDisk": { "image": image, "imagePullPolicy": policy } });
            let mut spec: VirtualMachineInstanceSpec =
                read(json!({ "domain": { "devices": {} }, "volumes": [volume] }));
            set_pull_policies(&mut spec);
            let disk = spec.volumes.unwrap().remove(0).container_disk.unwrap();
            assert_eq!(disk.image_pull_policy.as_deref(), Some(expected), "{image} {policy:?}");
        }
    }

    #[test]
    fn every_volume_is_shown_to_the_guest() {
        let mut spec: VirtualMachineInstanceSpec = read(json!({
            "domain": { "devices": {
                "disks": [{ "name": "b", "disk": { "bus": "virtio" } }],
                "filesystems": [{ "name": "c", "virtiofs": {} }],
            } },
            "volumes": [{ "name": "a" }, { "name": "b" }, { "name": "c" }, { "name": "d" }],
        }));
        add_missing(&mut spec);
        let names: Vec<String> =
            spec.domain.devices.disks.unwrap().into_iter().map(|disk| disk.name).collect();
        assert_eq!(names, ["b", "a", "d"]);

        let mut bare: VirtualMachineInstanceSpec = read(json!({ "domain": { "devices": {} } }));
        add_missing(&mut bare);
        assert_eq!(bare.domain.devices.disks, None);
    }

    #[test]
    fn a_disk_has_a_kind_and_a_bus() {
        let cases = [
            ("amd64", json!({}), json!({ "disk": { "bus": "sata" } })),
            ("", json!({}), json!({ "disk": { "bus": "sata" } })),
            ("arm64", json!({}), json!({ "disk": { "bus": "virtio" } })),
            ("s390x", json!({ "lun": {} }), json!({ "lun": { "bus": "virtio" } })),
            ("amd64", json!({ "disk": { "bus": "scsi" } }), json!({ "disk": { "bus": "scsi" } })),
            ("amd64", json!({ "disk": { "bus": "" } }), json!({ "disk": { "bus": "sata" } })),
            ("amd64", json!({ "disk": { "bus": "floppy" } }), json!({ "disk": { "bus": "floppy" } })),
            ("amd64", json!({ "lun": {} }), json!({ "lun": { "bus": "sata" } })),
            (
                "amd64",
                json!({ "cdrom": {} }),
                json!({ "cdrom": { "bus": "sata", "readonly": true, "tray": "closed" } }),
            ),
            (
                "amd64",
                json!({ "cdrom": { "bus": "scsi", "readonly": false, "tray": "open" } }),
                json!({ "cdrom": { "bus": "scsi", "readonly": false, "tray": "open" } }),
            ),
            (
                "amd64",
                json!({ "disk": { "bus": "virtio" }, "blockSize": { "matchVolume": {} } }),
                json!({ "disk": { "bus": "virtio" }, "blockSize": { "matchVolume": { "enabled": true } } }),
            ),
        ];
        for (architecture, mut disk, mut expected) in cases {
            disk["name"] = "root".into();
            expected["name"] = "root".into();
            let mut spec: VirtualMachineInstanceSpec =
                read(json!({ "architecture": architecture, "domain": { "devices": { "disks": [disk] } } }));
            set_devices(&mut spec);
            let found: Value = serde_json::to_value(&spec.domain.devices.disks.unwrap()[0]).unwrap();
            assert_eq!(found, expected, "{architecture} {disk}");
        }
    }
}
