//! Devices in a launcher's container: who owns them, and whether its control group lets it use them.

use std::io;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_host::device_rules::{self, Rule};
use kubevirt_host::inside::{Inside, Kind};

use super::user;
use crate::isolation::Place;
use crate::prepare::{PrepareError, failed, hopeless};
use crate::volumes::{HOTPLUG_DISKS, is_block, statuses};

/// Devices that QEMU opens, where the container has them.
const KNOWN: [&str; 7] = ["kvm", "vhost-net", "net/tun", "vhost-vsock", "sev", "iommu", "userfaultfd"];
/// Those among them that carry the guest's packets.
const NETWORK: [&str; 2] = ["vhost-net", "net/tun"];
/// The device that all users of VFIO share.
const SHARED_VFIO: &str = "vfio";
/// Folders of the container's devices that belong to file systems of their own.
const OTHERS: [&str; 4] = ["pts", "shm", "mqueue", "hugepages"];
/// A folder of devices that is deeper is none that a container runtime made.
const DEEPEST: usize = 4;

/// Gives the devices of the container to the launcher's user. They are the container's own files: nobody else's
/// rights change.
pub(crate) fn give_devices(vmi: &VirtualMachineInstance, place: &Place) -> Result<(), PrepareError> {
    let error = |error: io::Error| failed(format_args!("cannot hand devices to the launcher: {error}"));
    let devices = place.root().beneath("dev").map_err(error)?;
    let user = user(vmi);
    for name in KNOWN {
        give(&devices, name, user).map_err(|problem| refused(name, &problem))?;
    }
    give_vfio(&devices, user).map_err(error)?;
    let mut rules = Vec::new();
    for status in statuses(vmi).iter().filter(|status| is_block(status) && status.hotplug_volume.is_none()) {
        if let Some(Kind::Block(device)) = give(&devices, &status.name, user).map_err(error)? {
            rules.push(Rule::block(device));
        }
    }
    allow_on_old_hosts(place, &rules).map_err(error)
}

/// A machine without its network is none, and a device that the system does not let go of now it never will.
fn refused(name: &str, error: &io::Error) -> PrepareError {
    let reason = format!("cannot hand the device {name} to the launcher: {error}");
    let for_good =
        matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
    if for_good && NETWORK.contains(&name) { hopeless(reason) } else { failed(reason) }
}

/// Gives a device away if it is there; anything else of that name stays as it is.
fn give(devices: &Inside, name: &str, user: u32) -> io::Result<Option<Kind>> {
    let device = match devices.beneath(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        device => device?,
    };
    let kind = device.kind()?;
    if matches!(kind, Kind::Block(_) | Kind::Char(_)) {
        device.give_to(user, user)?;
    }
    Ok(Some(kind))
}

fn give_vfio(devices: &Inside, user: u32) -> io::Result<()> {
    let folder = match devices.beneath("vfio") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        folder => folder?,
    };
    for group in folder.names()?.iter().filter_map(|name| name.to_str()) {
        if group == SHARED_VFIO {
            let shared = folder.beneath(group)?;
            if matches!(shared.kind()?, Kind::Char(_)) {
                shared.permit(0o666)?;
            }
        } else if folder.beneath(group)?.kind()? == Kind::Folder {
            let inner = folder.beneath(group)?;
            for name in inner.names()?.iter().filter_map(|name| name.to_str()) {
                give(&inner, name, user)?;
            }
        } else {
            give(&folder, group, user)?;
        }
    }
    Ok(())
}

/// The runtime allows the devices that it makes. Where a list says otherwise it is completed; where there is a
/// program it is left alone, for it cannot be read.
fn allow_on_old_hosts(place: &Place, rules: &[Rule]) -> io::Result<()> {
    use kubevirt_host::cgroup::Folder;
    if rules.is_empty() || !matches!(place.groups().folder("devices"), Some(Folder::V1(_))) {
        return Ok(());
    }
    device_rules::allow(place.groups(), rules, Vec::new).map(drop)
}

/// Lets the launcher use a device besides those that it has.
pub(crate) fn allow_device(place: &Place, rule: Rule) -> Result<(), PrepareError> {
    device_rules::allow(place.groups(), &[rule], || present(place))
        .map(drop)
        .map_err(|error| failed(format_args!("its device cannot be allowed: {error}")))
}

/// Takes the use of a device back.
pub(crate) fn deny_device(place: &Place, rule: Rule) -> Result<(), PrepareError> {
    device_rules::deny(place.groups(), &[rule], || present(place))
        .map(drop)
        .map_err(|error| failed(format_args!("the use of a device cannot be taken back: {error}")))
}

/// The devices that the container has files of: those of the runtime, and those that were plugged.
fn present(place: &Place) -> Vec<Rule> {
    let mut rules = Vec::new();
    if let Ok(devices) = place.root().beneath("dev") {
        collect(&devices, 0, &mut rules);
    }
    if let Ok(plugged) = place.empty_dir(HOTPLUG_DISKS) {
        collect(&plugged, DEEPEST, &mut rules);
    }
    rules
}

fn collect(folder: &Inside, depth: usize, rules: &mut Vec<Rule>) {
    for name in folder.names().unwrap_or_default() {
        let Ok(file) = folder.beneath(&name) else { continue };
        match file.kind() {
            Ok(Kind::Block(device)) => rules.push(Rule::block(device)),
            Ok(Kind::Char(device)) => rules.push(Rule::character(device)),
            Ok(Kind::Folder) if depth < DEEPEST && !OTHERS.iter().any(|other| name == *other) => {
                collect(&file, depth + 1, rules);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_of_the_network_that_is_refused_is_the_end() {
        use io::ErrorKind::{Interrupted, PermissionDenied, ReadOnlyFilesystem};
        for (name, kind, expected) in [
            ("net/tun", PermissionDenied, true),
            ("vhost-net", ReadOnlyFilesystem, true),
            ("net/tun", Interrupted, false),
            ("kvm", PermissionDenied, false),
        ] {
            let error = refused(name, &kind.into());
            assert_eq!(matches!(error, PrepareError::Hopeless(_)), expected, "{name} {kind:?}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
