//! Small readings from the kernel's tree of devices.

use std::fs;
use std::path::Path;

/// The names in a folder, in order; none if there is no such folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The text of a file, without blanks around it.
pub fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The last part of what a link points to.
pub fn link_name(path: &Path) -> Option<String> {
    fs::read_link(path).ok()?.file_name()?.to_str().map(str::to_owned)
}

/// The value of a line `KEY=value` of a device's description.
pub fn described<'a>(uevent: &'a str, key: &str) -> Option<&'a str> {
    uevent.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::trim)
}

/// The NUMA node of a PCI device; the kernel says -1 if it is near to none.
pub fn numa_node(sysfs: &Path, address: &str) -> Option<i64> {
    let text = text(&sysfs.join("bus/pci/devices").join(address).join("numa_node"))?;
    text.parse().ok().filter(|node| *node >= 0)
}
