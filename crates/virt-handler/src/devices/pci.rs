//! PCI devices that the host has set aside for guests.

use std::collections::BTreeMap;
use std::path::Path;

use kubevirt_api::kubevirt::devices::PciHostDevice;

use super::resource::Unit;
use super::sysfs::{described, link_name, names, numa_node, text};

/// A PCI device that a guest can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciDevice {
    /// Where it is, such as `0000:65:00.0`.
    pub address: String,
    /// Vendor and product, such as `10de:1eb8`.
    pub model: String,
    /// The group of devices that can only be given away together.
    pub group: String,
    /// The NUMA node that it is near to.
    pub numa: Option<i64>,
    /// Its own device nodes, on kernels that have them.
    pub nodes: Vec<String>,
}

/// The devices that are bound to a driver for guests.
pub fn devices(sysfs: &Path) -> Vec<PciDevice> {
    let folder = sysfs.join("bus/pci/devices");
    names(&folder).into_iter().filter_map(|address| device(sysfs, &folder.join(&address), address)).collect()
}

fn device(sysfs: &Path, path: &Path, address: String) -> Option<PciDevice> {
    let uevent = text(&path.join("uevent"))?;
    let model = described(&uevent, "PCI_ID")?.to_lowercase();
    let driver = link_name(&path.join("driver"))?;
    if driver != "vfio-pci" && !(driver == "nvidia" && is_virtual_gpu(path)) {
        return None;
    }
    let group = link_name(&path.join("iommu_group"))?;
    let nodes =
        names(&path.join("vfio-dev")).iter().map(|name| format!("/dev/vfio/devices/{name}")).collect();
    Some(PciDevice { numa: numa_node(sysfs, &address), address, model, group, nodes })
}

/// A virtual function that its maker's own driver passes through, once it has a profile.
fn is_virtual_gpu(path: &Path) -> bool {
    let physical = path.join("sriov_totalvfs").exists();
    let profile = text(&path.join("nvidia/current_vgpu_type")).unwrap_or_default();
    !physical && !profile.is_empty() && profile != "0"
}

/// The permitted ones among the devices, by resource. A unit is a group, since a group has one node that one guest
/// holds; the guest is told of the first device in it.
pub fn permitted(devices: &[PciDevice], permitted: &[PciHostDevice]) -> BTreeMap<String, Vec<Unit>> {
    let mut found: BTreeMap<String, Vec<Unit>> = BTreeMap::new();
    for rule in permitted.iter().filter(|rule| rule.external_resource_provider != Some(true)) {
        let wanted = rule.pci_vendor_selector.to_lowercase();
        for device in devices.iter().filter(|device| device.model == wanted) {
            let units = found.entry(rule.resource_name.clone()).or_default();
            if !units.iter().any(|unit| unit.id == device.group) {
                units.push(unit(device));
            }
        }
    }
    found
}

fn unit(device: &PciDevice) -> Unit {
    let mut nodes = vec!["/dev/vfio/vfio".to_owned(), format!("/dev/vfio/{}", device.group)];
    nodes.extend(device.nodes.iter().cloned());
    Unit { id: device.group.clone(), numa: device.numa, value: device.address.clone(), nodes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::testing::Tree;

    fn tree() -> Tree {
        let tree = Tree::new();
        let card = |address: &str, id: &str, driver: &str, group: &str, numa: &str| {
            let at = format!("bus/pci/devices/{address}");
            tree.file(&format!("{at}/uevent"), &format!("DRIVER={driver}\nPCI_CLASS=30000\nPCI_ID={id}\n"));
            tree.file(&format!("{at}/numa_node"), numa);
            tree.link(&format!("{at}/driver"), &format!("../../../../bus/pci/drivers/{driver}"));
            tree.link(&format!("{at}/iommu_group"), &format!("../../../kernel/iommu_groups/{group}"));
        };
        card("0000:65:00.0", "10DE:1EB8", "vfio-pci", "45", "1\n");
        card("0000:65:00.1", "10DE:1EB8", "vfio-pci", "45", "1\n");
        card("0000:66:00.0", "10DE:1EB8", "vfio-pci", "46", "-1\n");
        card("0000:67:00.0", "10DE:1EB8", "nouveau", "47", "0\n");
        card("0000:68:00.0", "10DE:2000", "nvidia", "48", "0\n");
        card("0000:69:00.0", "10DE:2000", "nvidia", "49", "0\n");
        card("0000:70:00.0", "8086:1572", "vfio-pci", "50", "0\n");
        tree.file("bus/pci/devices/0000:66:00.0/vfio-dev/vfio3/dev", "511:3\n");
        tree.file("bus/pci/devices/0000:68:00.0/nvidia/current_vgpu_type", "662\n");
        tree.file("bus/pci/devices/0000:69:00.0/nvidia/current_vgpu_type", "662\n");
        tree.file("bus/pci/devices/0000:69:00.0/sriov_totalvfs", "16\n");
        tree.file("bus/pci/devices/0000:71:00.0/uevent", "nothing of use");
        tree
    }

    fn rule(model: &str, resource: &str, external: bool) -> PciHostDevice {
        PciHostDevice {
            pci_vendor_selector: model.into(),
            resource_name: resource.into(),
            external_resource_provider: Some(external),
        }
    }

    #[test]
    fn finds_what_is_bound_for_guests() {
        let found = devices(tree().path());
        let told: Vec<_> =
            found.iter().map(|one| (one.address.as_str(), one.group.as_str(), one.numa)).collect();
        assert_eq!(
            told,
            [
                ("0000:65:00.0", "45", Some(1)),
                ("0000:65:00.1", "45", Some(1)),
                ("0000:66:00.0", "46", None),
                ("0000:68:00.0", "48", Some(0)),
                ("0000:70:00.0", "50", Some(0)),
            ]
        );
        assert_eq!(devices(Path::new("/nowhere")), []);
    }

    #[test]
    fn offers_what_is_permitted_once_for_each_group() {
        let rules = [
            rule("10de:1eb8", "nvidia.com/T4", false),
            rule("8086:1572", "intel.com/nic", true),
            rule("1234:5678", "example.com/none", false),
        ];
        let offered = permitted(&devices(tree().path()), &rules);
        assert_eq!(offered.keys().collect::<Vec<_>>(), ["nvidia.com/T4"]);
        let units = &offered["nvidia.com/T4"];
        let told: Vec<_> = units.iter().map(|unit| (unit.id.as_str(), unit.value.as_str())).collect();
        assert_eq!(told, [("45", "0000:65:00.0"), ("46", "0000:66:00.0")]);
        assert_eq!(units[1].nodes, ["/dev/vfio/vfio", "/dev/vfio/46", "/dev/vfio/devices/vfio3"]);
    }
}
