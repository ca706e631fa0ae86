//! USB devices that are plugged into this node.

use std::collections::BTreeMap;
use std::path::Path;

use kubevirt_api::kubevirt::devices::{UsbHostDevice, UsbSelector};

use super::resource::Unit;
use super::sysfs::{described, names, text};

/// A plugged device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsbDevice {
    /// Its maker's number.
    pub vendor: u32,
    /// Its model's number.
    pub product: u32,
    /// The bus it is on.
    pub bus: u32,
    /// Its number on the bus.
    pub number: u32,
    /// Its device node.
    pub node: String,
}

/// The devices that are plugged, without the hubs that are part of a controller.
pub fn devices(sysfs: &Path) -> Vec<UsbDevice> {
    let folder = sysfs.join("bus/usb/devices");
    let names = names(&folder);
    let plugged = names.iter().filter(|name| !name.starts_with("usb"));
    plugged.filter_map(|name| device(&text(&folder.join(name).join("uevent"))?)).collect()
}

/// Reads a description; interfaces of devices have one too, but no node.
fn device(uevent: &str) -> Option<UsbDevice> {
    let mut product = described(uevent, "PRODUCT")?.split('/').map(|part| u32::from_str_radix(part, 16).ok());
    Some(UsbDevice {
        vendor: product.next()??,
        product: product.next()??,
        bus: described(uevent, "BUSNUM")?.parse().ok()?,
        number: described(uevent, "DEVNUM")?.parse().ok()?,
        node: format!("/dev/{}", described(uevent, "DEVNAME")?),
    })
}

/// The permitted ones among the devices, by resource. A unit has one device for each selector, and a device is in
/// one unit only, whichever rule comes first.
pub fn permitted(devices: &[UsbDevice], permitted: &[UsbHostDevice]) -> BTreeMap<String, Vec<Unit>> {
    let mut free: Vec<&UsbDevice> = devices.iter().collect();
    let mut found: BTreeMap<String, Vec<Unit>> = BTreeMap::new();
    for rule in permitted.iter().filter(|rule| rule.external_resource_provider != Some(true)) {
        let selectors = rule.selectors.as_deref().unwrap_or_default();
        while let Some(set) = take(&mut free, selectors) {
            found.entry(rule.resource_name.clone()).or_default().push(unit(&set));
        }
    }
    found
}

/// Takes a device for each selector, or none at all.
fn take<'a>(free: &mut Vec<&'a UsbDevice>, selectors: &[UsbSelector]) -> Option<Vec<&'a UsbDevice>> {
    let mut left = free.clone();
    let mut set = Vec::new();
    for selector in selectors {
        let wanted = (number(&selector.vendor)?, number(&selector.product)?);
        let place = left.iter().position(|device| (device.vendor, device.product) == wanted)?;
        set.push(left.remove(place));
    }
    // Without selectors there would be no end of empty sets.
    (!set.is_empty()).then(|| {
        *free = left;
        set
    })
}

fn number(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim(), 16).ok()
}

fn unit(set: &[&UsbDevice]) -> Unit {
    let join = |between: &str, separator: &str| {
        let all: Vec<_> =
            set.iter().map(|device| format!("{}{between}{}", device.bus, device.number)).collect();
        all.join(separator)
    };
    Unit {
        // Bus and number stay the same for as long as the device is plugged.
        id: join("-", "_"),
        numa: None,
        value: join(":", ","),
        nodes: set.iter().map(|device| device.node.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::testing::Tree;

    fn tree() -> Tree {
        let tree = Tree::new();
        let plug = |name: &str, product: &str, bus: u32, number: u32| {
            let uevent = format!(
                "DEVTYPE=usb_device\nPRODUCT={product}\nBUSNUM={bus:03}\nDEVNUM={number:03}\n\
                 DEVNAME=bus/usb/{bus:03}/{number:03}\n"
            );
            tree.file(&format!("bus/usb/devices/{name}/uevent"), &uevent);
        };
        plug("usb1", "1d6b/2/515", 1, 1);
        plug("1-1", "46f4/1/0", 1, 4);
        plug("1-2", "46f4/1/0", 1, 5);
        plug("1-3", "1209/b3a1/100", 1, 6);
        tree.file("bus/usb/devices/1-1:1.0/uevent", "DEVTYPE=usb_interface\nPRODUCT=46f4/1/0\n");
        tree
    }

    fn rule(resource: &str, selectors: &[(&str, &str)]) -> UsbHostDevice {
        let selectors = selectors
            .iter()
            .map(|(vendor, product)| UsbSelector { vendor: (*vendor).into(), product: (*product).into() });
        UsbHostDevice {
            resource_name: resource.into(),
            selectors: Some(selectors.collect()),
            external_resource_provider: None,
        }
    }

    #[test]
    fn finds_what_is_plugged() {
        let found = devices(tree().path());
        assert_eq!(found.len(), 3);
        assert_eq!(
            found[2],
            UsbDevice {
                vendor: 0x1209,
                product: 0xb3a1,
                bus: 1,
                number: 6,
                node: "/dev/bus/usb/001/006".into()
            }
        );
    }

    #[test]
    fn gives_each_device_to_one_unit() {
        let found = devices(tree().path());
        let told = |rules: &[UsbHostDevice]| -> Vec<(String, Vec<String>)> {
            let offered = permitted(&found, rules);
            offered
                .into_iter()
                .map(|(name, units)| (name, units.into_iter().map(|u| u.value).collect()))
                .collect()
        };
        let storage = rule("kubevirt.io/storage", &[("46f4", "0001")]);
        assert_eq!(
            told(std::slice::from_ref(&storage)),
            [("kubevirt.io/storage".into(), vec!["1:4".into(), "1:5".into()])]
        );
        let pair = rule("kubevirt.io/pair", &[("46f4", "0001"), ("1209", "B3A1")]);
        assert_eq!(
            told(&[pair.clone(), storage.clone()]),
            [
                ("kubevirt.io/pair".into(), vec!["1:4,1:6".into()]),
                ("kubevirt.io/storage".into(), vec!["1:5".into()])
            ]
        );
        for nothing in [rule("a/b", &[]), rule("a/b", &[("x", "1")]), rule("a/b", &[("1", "1")])] {
            assert_eq!(told(&[nothing]), []);
        }
        let external = UsbHostDevice { external_resource_provider: Some(true), ..storage };
        assert_eq!(told(&[external]), []);
        let unit = &permitted(&found, &[pair])["kubevirt.io/pair"][0];
        assert_eq!(unit.id, "1-4_1-6");
        assert_eq!(unit.nodes, ["/dev/bus/usb/001/004", "/dev/bus/usb/001/006"]);
    }
}
