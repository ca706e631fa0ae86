//! Mediated devices: slices of a card that its driver has made.

use std::collections::BTreeMap;
use std::path::Path;

use kubevirt_api::kubevirt::devices::MediatedHostDevice;

use super::resource::Unit;
use super::sysfs::{link_name, names, numa_node, text};

/// A slice of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediatedDevice {
    /// Its name.
    pub uuid: String,
    /// Its type, such as `GRID_T4-1Q`.
    pub kind: String,
    /// The group of devices that can only be given away together.
    pub group: String,
    /// The NUMA node that its card is near to.
    pub numa: Option<i64>,
}

/// The slices that there are.
pub fn devices(sysfs: &Path) -> Vec<MediatedDevice> {
    let folder = sysfs.join("bus/mdev/devices");
    names(&folder).into_iter().filter_map(|uuid| device(sysfs, &folder.join(&uuid), uuid)).collect()
}

fn device(sysfs: &Path, path: &Path, uuid: String) -> Option<MediatedDevice> {
    let kind = text(&path.join("mdev_type/name")).or_else(|| link_name(&path.join("mdev_type")))?;
    let group = link_name(&path.join("iommu_group"))?;
    // A slice is in the folder of its card.
    let real = std::fs::read_link(path).ok()?;
    let card = real.parent()?.file_name()?.to_str()?;
    Some(MediatedDevice { uuid, kind: spelled(&kind), group, numa: numa_node(sysfs, card) })
}

/// Types are compared with blanks as underscores.
pub(super) fn spelled(kind: &str) -> String {
    kind.trim().replace(' ', "_")
}

/// The permitted ones among the slices, by resource.
pub fn permitted(
    devices: &[MediatedDevice],
    permitted: &[MediatedHostDevice],
) -> BTreeMap<String, Vec<Unit>> {
    let mut found: BTreeMap<String, Vec<Unit>> = BTreeMap::new();
    for rule in permitted.iter().filter(|rule| rule.external_resource_provider != Some(true)) {
        let wanted = spelled(&rule.mdev_name_selector);
        for device in devices.iter().filter(|device| device.kind == wanted) {
            let units = found.entry(rule.resource_name.clone()).or_default();
            if !units.iter().any(|unit| unit.id == device.group) {
                units.push(unit(device));
            }
        }
    }
    found
}

fn unit(device: &MediatedDevice) -> Unit {
    let nodes = vec!["/dev/vfio/vfio".to_owned(), format!("/dev/vfio/{}", device.group)];
    Unit { id: device.group.clone(), numa: device.numa, value: device.uuid.clone(), nodes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::testing::Tree;

    #[test]
    fn finds_slices_by_name_or_by_type() {
        let tree = Tree::new();
        let slice = |uuid: &str, group: &str, kind: &str| {
            let real = format!("devices/pci0000:00/0000:00:03.0/{uuid}");
            tree.link(&format!("bus/mdev/devices/{uuid}"), &format!("../../../{real}"));
            tree.link(&format!("{real}/iommu_group"), &format!("../../../../kernel/iommu_groups/{group}"));
            tree.link(&format!("{real}/mdev_type"), &format!("../mdev_supported_types/{kind}"));
            tree.file(
                &format!("devices/pci0000:00/0000:00:03.0/mdev_supported_types/{kind}/device_api"),
                "vfio-pci",
            );
        };
        slice("aaaa", "7", "nvidia-222");
        slice("bbbb", "8", "i915-GVTg_V5_4");
        tree.file("devices/pci0000:00/0000:00:03.0/mdev_supported_types/nvidia-222/name", "GRID T4-1Q\n");
        tree.file("bus/pci/devices/0000:00:03.0/numa_node", "1\n");

        let found = devices(tree.path());
        assert_eq!(
            found,
            [
                MediatedDevice {
                    uuid: "aaaa".into(),
                    kind: "GRID_T4-1Q".into(),
                    group: "7".into(),
                    numa: Some(1)
                },
                MediatedDevice {
                    uuid: "bbbb".into(),
                    kind: "i915-GVTg_V5_4".into(),
                    group: "8".into(),
                    numa: Some(1)
                },
            ]
        );
        let rule = |kind: &str, resource: &str| MediatedHostDevice {
            mdev_name_selector: kind.into(),
            resource_name: resource.into(),
            external_resource_provider: None,
        };
        let offered =
            permitted(&found, &[rule("GRID T4-1Q", "nvidia.com/GRID_T4-1Q"), rule("other", "a.b/c")]);
        assert_eq!(offered.len(), 1);
        let unit = &offered["nvidia.com/GRID_T4-1Q"][0];
        assert_eq!((unit.id.as_str(), unit.value.as_str()), ("7", "aaaa"));
        assert_eq!(unit.nodes, ["/dev/vfio/vfio", "/dev/vfio/7"]);
    }
}
