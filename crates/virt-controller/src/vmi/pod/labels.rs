//! Labels of launcher pods, by which Services and our own components find them.

use std::collections::BTreeMap;

use kubevirt_api::names::external::istio;
use kubevirt_api::names::{labels, values};
use kubevirt_api::vmi::VirtualMachineInstance;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::instance;
use super::surroundings::Surroundings;

/// The longest value of a label.
const LONGEST: usize = 63;

/// How much of a hash tells long names apart.
const HASH: usize = 8;

/// Labels of the pod of a VMI: the VMI's own, and ours.
pub(super) fn of(vmi: &VirtualMachineInstance) -> BTreeMap<String, String> {
    let mut all = vmi.metadata.labels.clone().unwrap_or_default();
    let mut set = |name: &str, value: String| all.insert(name.to_owned(), value);
    set(labels::APP, values::app::LAUNCHER.to_owned());
    set(labels::CREATED_BY, vmi.metadata.uid.clone().unwrap_or_default());
    set(labels::VM_NAME, vmi.hostname());
    set(labels::VMI_ID, id(vmi.metadata.name.as_deref().unwrap_or_default()));
    if let Some(inject) = instance::annotation(vmi, istio::INJECT) {
        set(istio::INJECT, inject.to_owned());
    }
    all
}

/// The name of a VMI as the value of a label; a long one ends in a hash, as KubeVirt computes it.
fn id(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, name.as_bytes());
    let hash: String = hash.as_ref().iter().take(HASH / 2).map(|byte| format!("{byte:02x}")).collect();
    let kept: String = name.chars().take(LONGEST - HASH - 1).collect();
    format!("{kept}-{hash}")
}

/// Whether Istio puts a proxy beside the machine.
pub(super) fn gets_a_proxy(vmi: &VirtualMachineInstance) -> bool {
    instance::annotation(vmi, istio::INJECT).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// A label for each claim that the machine reserves for itself, by which such pods keep off each other's nodes.
pub(super) fn reservations(
    vmi: &VirtualMachineInstance,
    around: &Surroundings<'_>,
) -> BTreeMap<String, String> {
    let disks = vmi.spec.domain.devices.disks.iter().flatten();
    let reserving = disks.filter(|disk| disk.lun.as_ref().and_then(|lun| lun.reservation) == Some(true));
    let claim = |disk: &kubevirt_api::vmi::disks::Disk| {
        let volume = instance::volumes(vmi).find(|volume| volume.name == disk.name)?;
        around.claims.get(instance::claim_of(volume)?)
    };
    reserving
        .filter_map(claim)
        .map(|claim| (format!("{}{}", labels::PERSISTENT_RESERVATION_PREFIX, claim.uid), String::new()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_ends_in_a_hash() {
        assert_eq!(id("web"), "web");
        assert_eq!(id(&"a".repeat(63)), "a".repeat(63));
        // The first eight digits of the SHA-1 of 64 times `a`.
        assert_eq!(id(&"a".repeat(64)), format!("{}-0098ba82", "a".repeat(54)));
    }
}
