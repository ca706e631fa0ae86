//! The block size that a disk shows to the guest.

use kubevirt_api::vmi::disks::{CustomBlockSize, Disk, DiskBus};

use super::disk_bus::bus_of;
use crate::{Path, Problems};

const SMALLEST: i64 = 512;
const LARGEST: i64 = 2 * 1024 * 1024;

/// What is wrong with the block size of the disk at `path`.
pub(super) fn check(path: &Path<'_>, disk: &Disk, problems: &mut Problems) {
    let Some(block_size) = &disk.block_size else { return };
    let Some(custom) = &block_size.custom else { return };
    if block_size.match_volume.as_ref().is_some_and(|state| state.enabled != Some(false)) {
        problems.invalid(&path.at("blockSize"), "a custom size and that of the volume: choose one of them");
        return;
    }
    let at = path.at("blockSize.custom");
    if let Some((field, why)) = conflict(custom, bus_of(disk) == Some(&DiskBus::Sata)) {
        problems.invalid(&at.at(field), why);
        return;
    }
    for (field, size) in [("logical", custom.logical), ("physical", custom.physical)] {
        let size = size.unwrap_or_default();
        if !(SMALLEST..=LARGEST).contains(&size) || !is_power_of_two(size) {
            let message = format!("{size} is no power of two between {SMALLEST} and {LARGEST}");
            problems.invalid(&at.at(field), message);
        }
    }
}

fn is_power_of_two(size: i64) -> bool {
    u64::try_from(size).is_ok_and(u64::is_power_of_two)
}

/// How the sizes do not go together: the field to change, and why.
fn conflict(custom: &CustomBlockSize, sata: bool) -> Option<(&'static str, String)> {
    let (logical, physical) = (custom.logical.unwrap_or_default(), custom.physical.unwrap_or_default());
    let discard = custom.discard_granularity.unwrap_or_default();
    if logical > physical {
        return Some(("logical", format!("{logical} is more than the physical size of {physical}")));
    }
    if sata && logical != SMALLEST {
        return Some(("logical", format!("{logical} is not {SMALLEST}, the only size on the bus sata")));
    }
    if discard < 0 || (logical > 0 && discard % logical != 0) {
        return Some((
            "discardGranularity",
            format!("{discard} is no multiple of the logical size {logical}"),
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::disks;
    use super::*;
    use crate::testing::{assert_fields, read};

    #[test]
    fn block_sizes_are_powers_of_two_that_go_together() {
        let custom =
            |logical: i64, physical: i64| json!({"custom": {"logical": logical, "physical": physical}});
        let logical = "disks[0].blockSize.custom.logical";
        let physical = "disks[0].blockSize.custom.physical";
        let discard = "disks[0].blockSize.custom.discardGranularity";
        let cases: Vec<(&str, &str, Value, Vec<&str>)> = vec![
            ("equal sizes", "virtio", custom(4096, 4096), vec![]),
            ("a larger physical size", "virtio", custom(512, 4096), vec![]),
            ("the largest size", "virtio", custom(512, 2_097_152), vec![]),
            ("a larger logical size", "virtio", custom(4096, 512), vec![logical]),
            ("sizes too small", "virtio", custom(256, 256), vec![logical, physical]),
            ("no sizes", "virtio", json!({"custom": {}}), vec![logical, physical]),
            ("a logical size too small", "virtio", custom(1, 512), vec![logical]),
            ("a negative size", "virtio", custom(-512, 512), vec![logical]),
            ("the smallest number", "virtio", custom(i64::MIN, i64::MIN), vec![logical, physical]),
            ("a physical size too large", "virtio", custom(512, 4_194_304), vec![physical]),
            ("a size that is no power of two", "virtio", custom(512, 1000), vec![physical]),
            ("both no powers of two", "virtio", custom(1000, 1001), vec![logical, physical]),
            ("512 on sata", "sata", custom(512, 4096), vec![]),
            ("4096 on sata", "sata", custom(4096, 4096), vec![logical]),
            ("the size of the volume", "virtio", json!({"matchVolume": {}}), vec![]),
            (
                "both",
                "virtio",
                json!({"matchVolume": {}, "custom": {"logical": 512, "physical": 512}}),
                vec!["disks[0].blockSize"],
            ),
            (
                "both, one switched on",
                "virtio",
                json!({"matchVolume": {"enabled": true}, "custom": {"logical": 1, "physical": 1}}),
                vec!["disks[0].blockSize"],
            ),
            (
                "both, one switched off",
                "virtio",
                json!({"matchVolume": {"enabled": false}, "custom": {"logical": 512, "physical": 512}}),
                vec![],
            ),
            (
                "a discard granularity",
                "virtio",
                json!({"custom": {"logical": 512, "physical": 512, "discardGranularity": 1024}}),
                vec![],
            ),
            (
                "no discarding",
                "virtio",
                json!({"custom": {"logical": 512, "physical": 512, "discardGranularity": 0}}),
                vec![],
            ),
            (
                "a discard granularity that does not fit",
                "virtio",
                json!({"custom": {"logical": 512, "physical": 512, "discardGranularity": 700}}),
                vec![discard],
            ),
            (
                "a negative discard granularity",
                "virtio",
                json!({"custom": {"logical": 512, "physical": 512, "discardGranularity": -512}}),
                vec![discard],
            ),
        ];
        for (case, bus, block_size, expected) in cases {
            let disk = json!({"name": "root", "disk": {"bus": bus}, "blockSize": block_size});
            let mut problems = Problems::default();
            disks::check(&Path::new("disks"), &[read(disk)], &mut problems);
            assert_fields(case, &problems, &expected);
        }
    }
}
