//! Names that guests are likely to give their disks, which users see in the status.

use std::collections::BTreeMap;

use kubevirt_api::vmi::disks::{self as api, DiskBus};
use kubevirt_api::vmi::status::VolumeStatus;

use super::{Conversion, disks};

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
        let kept = status.and_then(|status| device_index(status.target.strip_prefix(prefix(disk))?));
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

/// `0` is `a`, `25` is `z`, `26` is `aa`.
pub(super) fn device_name(prefix: &str, index: u32) -> String {
    let (mut letters, mut rest) = (Vec::new(), index + 1);
    while rest > 0 {
        rest -= 1;
        letters.push(char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    prefix.chars().chain(letters.into_iter().rev()).collect()
}

fn device_index(letters: &str) -> Option<u32> {
    let letter = |letter: u8| letter.is_ascii_lowercase().then(|| u32::from(letter - b'a') + 1);
    let sum = letters.bytes().try_fold(0_u32, |sum, byte| sum.checked_mul(26)?.checked_add(letter(byte)?))?;
    sum.checked_sub(1).filter(|index| *index < 16384)
}

#[cfg(test)]
mod tests {
    use super::{device_index, device_name};

    #[test]
    fn names_and_numbers_agree() {
        for (index, name) in [(0, "vda"), (25, "vdz"), (26, "vdaa"), (701, "vdzz"), (702, "vdaaa")] {
            assert_eq!(device_name("vd", index), name);
            assert_eq!(device_index(&name[2..]), Some(index));
        }
        assert_eq!(device_index(""), None);
        assert_eq!(device_index("A"), None);
    }
}
