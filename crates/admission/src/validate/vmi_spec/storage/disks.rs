//! Disks, each for itself.

use std::collections::HashMap;

use kubevirt_api::vmi::disks::{Disk, DiskBus, DiskErrorPolicy, DriverCache, DriverIo};

use super::{block_size, disk_bus};
use crate::validate::address::is_pci;
use crate::validate::names::{DNS_LABEL, is_dns_label};
use crate::{Path, Problems};

/// The longest serial number of a disk, in characters.
const LONGEST_SERIAL: usize = 256;

/// Where some rules say that the list of disks stands, below the list itself: clients know the paths.
pub(super) const DISKS_AGAIN: &str = "domain.devices.disks";

/// Everything that is wrong with disks, each for itself; `path` is that of the list.
pub fn check(path: &Path<'_>, disks: &[Disk], problems: &mut Problems) {
    let mut names = HashMap::with_capacity(disks.len());
    for (index, disk) in disks.iter().enumerate() {
        let at = path.index(index);
        if let Some(first) = names.get(disk.name.as_str()) {
            let message = format!("disk {first} is called {:?} too: names of disks are unique", disk.name);
            problems.invalid(&at.at("name"), message);
        } else {
            names.insert(disk.name.as_str(), index);
        }
        check_disk(path, index, disk, problems);
    }
}

fn check_disk(path: &Path<'_>, index: usize, disk: &Disk, problems: &mut Problems) {
    let at = path.index(index);
    let again = path.at(DISKS_AGAIN);
    // A container can be called like the disk.
    if !is_dns_label(&disk.name) {
        let message = format!("{:?} is no name for a disk: {DNS_LABEL}", disk.name);
        problems.invalid(&again.index(index).at("name"), message);
    }
    let targets = [disk.disk.is_some(), disk.lun.is_some(), disk.cdrom.is_some()];
    if targets.into_iter().filter(|set| *set).count() > 1 {
        problems.invalid(&at, "a disk is one of disk, lun and cdrom: set one of them");
    }
    if disk.boot_order.is_some_and(|order| order < 1) {
        problems.invalid(&at.at("bootOrder"), "boot orders start at 1");
    }
    check_pci_address(path, index, disk, problems);
    disk_bus::check(path, index, disk, problems);
    check_serial(&at, disk, problems);
    check_words(path, index, disk, problems);
    block_size::check(&at, disk, problems);
}

fn check_pci_address(path: &Path<'_>, index: usize, disk: &Disk, problems: &mut Problems) {
    let Some(target) = &disk.disk else { return };
    let Some(address) = target.pci_address.as_deref().filter(|address| !address.is_empty()) else { return };
    let targets = path.at("domain.devices.disks.disk");
    let at = targets.index(index);
    if target.bus != Some(DiskBus::Virtio) {
        problems.invalid(&at.at("pciAddress"), "only disks on the bus virtio can have a PCI address");
    }
    if !is_pci(address) {
        let message = format!("{address:?} is no PCI address such as 0000:01:1f.7");
        problems.invalid(&at.at("pciAddress"), message);
    }
}

fn check_serial(at: &Path<'_>, disk: &Disk, problems: &mut Problems) {
    let serial = disk.serial.as_deref().unwrap_or_default();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte);
    if !serial.bytes().all(allowed) {
        problems.invalid(&at.at("serial"), "a serial is made of letters, digits and the characters _.+-");
    }
    if serial.chars().count() > LONGEST_SERIAL {
        problems.invalid(&at.at("serial"), format!("a serial has at most {LONGEST_SERIAL} characters"));
    }
}

fn check_words(path: &Path<'_>, index: usize, disk: &Disk, problems: &mut Problems) {
    let at = path.index(index);
    let choice = |given: &str, known: &[&str]| format!("{given:?} is none of {}", known.join(", "));
    if let Some(cache) = disk.cache.as_ref().filter(|cache| !cache.is_known() && !cache.is_empty()) {
        problems.invalid(&at.at("cache"), choice(cache.as_str(), DriverCache::KNOWN));
    }
    if let Some(io) = disk.io.as_ref().filter(|io| !io.is_known() && !io.is_empty()) {
        let again = path.at(DISKS_AGAIN);
        problems.not_supported(&again.index(index).at("io"), choice(io.as_str(), DriverIo::KNOWN));
    }
    if let Some(policy) = disk.error_policy.as_ref().filter(|policy| !policy.is_known()) {
        problems.invalid(&at.at("errorPolicy"), choice(policy.as_str(), DiskErrorPolicy::KNOWN));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{assert_fields, patched, read};

    fn check_one(patch: &Value) -> Problems {
        let disk: Disk = read(patched(&json!({ "name": "root" }), patch));
        let mut problems = Problems::default();
        check(&Path::new("disks"), &[disk], &mut problems);
        problems
    }

    #[test]
    fn a_disk_is_checked_field_by_field() {
        let long = "a".repeat(63);
        let too_long = "a".repeat(64);
        let cases: Vec<(&str, Value, &[&str])> = vec![
            ("nothing but a name", json!({}), &[]),
            ("a name as long as can be", json!({"name": long}), &[]),
            ("a name too long", json!({"name": too_long}), &["disks.domain.devices.disks[0].name"]),
            ("a name with a dot", json!({"name": "a.b"}), &["disks.domain.devices.disks[0].name"]),
            ("a name with capitals", json!({"name": "Root"}), &["disks.domain.devices.disks[0].name"]),
            (
                "a name that starts with a dash",
                json!({"name": "-a"}),
                &["disks.domain.devices.disks[0].name"],
            ),
            ("a name that ends with a dash", json!({"name": "a-"}), &["disks.domain.devices.disks[0].name"]),
            ("no name", json!({"name": ""}), &["disks.domain.devices.disks[0].name"]),
            ("a disk", json!({"disk": {}}), &[]),
            ("a LUN", json!({"lun": {}}), &[]),
            ("a CD-ROM", json!({"cdrom": {}}), &[]),
            ("disk and CD-ROM", json!({"disk": {}, "cdrom": {}}), &["disks[0]"]),
            ("all three", json!({"disk": {}, "cdrom": {}, "lun": {}}), &["disks[0]"]),
            ("first to boot", json!({"bootOrder": 1}), &[]),
            ("boot order 0", json!({"bootOrder": 0}), &["disks[0].bootOrder"]),
            ("negative boot order", json!({"bootOrder": -1}), &["disks[0].bootOrder"]),
            ("a PCI address", json!({"disk": {"bus": "virtio", "pciAddress": "0000:81:1F.0"}}), &[]),
            ("an empty PCI address", json!({"disk": {"bus": "scsi", "pciAddress": ""}}), &[]),
            (
                "a PCI address on another bus",
                json!({"disk": {"bus": "scsi", "pciAddress": "0000:81:1f.0"}}),
                &["disks.domain.devices.disks.disk[0].pciAddress"],
            ),
            (
                "a PCI address and no bus",
                json!({"disk": {"pciAddress": "0000:81:1f.0"}}),
                &["disks.domain.devices.disks.disk[0].pciAddress"],
            ),
            (
                "a malformed PCI address",
                json!({"disk": {"bus": "virtio", "pciAddress": "0000:81:1f.8"}}),
                &["disks.domain.devices.disks.disk[0].pciAddress"],
            ),
            ("a serial", json!({"serial": "SN-1_2.3+4"}), &[]),
            ("an empty serial", json!({"serial": ""}), &[]),
            ("a serial with a space", json!({"serial": "SN 1"}), &["disks[0].serial"]),
            ("a serial that is not ASCII", json!({"serial": "ü"}), &["disks[0].serial"]),
            ("a serial as long as can be", json!({"serial": "7".repeat(256)}), &[]),
            ("a serial too long", json!({"serial": "7".repeat(257)}), &["disks[0].serial"]),
            (
                "a serial too long and not ASCII",
                json!({"serial": "ü".repeat(257)}),
                &["disks[0].serial", "disks[0].serial"],
            ),
            ("no cache", json!({"cache": "none"}), &[]),
            ("write-through", json!({"cache": "writethrough"}), &[]),
            ("write-back", json!({"cache": "writeback"}), &[]),
            ("an empty cache", json!({"cache": ""}), &[]),
            ("an unknown cache", json!({"cache": "directsync"}), &["disks[0].cache"]),
            ("native IO", json!({"io": "native"}), &[]),
            ("threaded IO", json!({"io": "threads"}), &[]),
            ("an empty IO", json!({"io": ""}), &[]),
            ("an unknown IO", json!({"io": "io_uring"}), &["disks.domain.devices.disks[0].io"]),
            ("stop on errors", json!({"errorPolicy": "stop"}), &[]),
            ("ignore errors", json!({"errorPolicy": "ignore"}), &[]),
            ("report errors", json!({"errorPolicy": "report"}), &[]),
            ("stop when full", json!({"errorPolicy": "enospace"}), &[]),
            ("an unknown error policy", json!({"errorPolicy": "panic"}), &["disks[0].errorPolicy"]),
            ("an empty error policy", json!({"errorPolicy": ""}), &["disks[0].errorPolicy"]),
        ];
        for (case, patch, expected) in cases {
            assert_fields(case, &check_one(&patch), expected);
        }
    }

    #[test]
    fn names_are_unique() {
        let disk = |name: &str| read::<Disk>(json!({ "name": name }));
        let mut problems = Problems::default();
        check(&Path::new("disks"), &[disk("a"), disk("b"), disk("a"), disk("a")], &mut problems);
        assert_fields("three of a name", &problems, &["disks[2].name", "disks[3].name"]);
    }
}
