//! Network cards and virtual functions that come and go, and their cables.

use super::{Change, Plan};
use crate::domain::host_device::{HostDevice, HostDeviceRole};
use crate::domain::network::{Interface, NetBackend};

/// Whether a host device can come and go while the machine runs: guests fail over from virtual functions.
pub(super) fn is_movable(device: &HostDevice) -> bool {
    device.role == HostDeviceRole::Sriov
}

/// Takes out cards that are wanted no more.
pub(super) fn detach(plan: &mut Plan<'_>) {
    for interface in plan.after.interfaces.clone() {
        if !plan.wanted.interfaces.iter().any(|wanted| wanted.name == interface.name) {
            plan.room.leave(interface.address);
            plan.push(Change::DetachInterface(Box::new(interface)));
        }
    }
    for device in plan.after.host_devices.clone() {
        if find(&plan.wanted.host_devices, &device).is_some() {
            continue;
        }
        if !is_movable(&device) {
            let what = format!("hostDevices.{}", device.name);
            plan.needs_restart(what, "only virtual functions can be removed while the machine runs");
            continue;
        }
        if let Some(address) = device.address {
            plan.room.leave(address);
        }
        plan.push(Change::DetachHostDevice(Box::new(device)));
    }
}

/// Puts in cards that are new.
pub(super) fn attach(plan: &mut Plan<'_>) {
    for interface in &plan.wanted.interfaces {
        if plan.after.interfaces.iter().any(|running| running.name == interface.name) {
            continue;
        }
        match placed(plan, interface) {
            Ok(interface) => plan.push(Change::AttachInterface(Box::new(interface))),
            Err(reason) => plan.needs_restart(format!("interfaces.{}", interface.name), reason),
        }
    }
    for device in &plan.wanted.host_devices {
        if find(&plan.after.host_devices, device).is_some() {
            continue;
        }
        let fixed = device.address.is_some_and(|address| plan.wanted.pci.fixed.contains(&address));
        let place = device.address.filter(|_| is_movable(device));
        match place.and_then(|address| plan.room.take(address, fixed)) {
            Some(address) => {
                let device = HostDevice { address: Some(address), ..device.clone() };
                plan.push(Change::AttachHostDevice(Box::new(device)));
            }
            None => {
                let reason = match is_movable(device) {
                    true => "there is no free place for it",
                    false => "only virtual functions can be added while the machine runs",
                };
                plan.needs_restart(format!("hostDevices.{}", device.name), reason);
            }
        }
    }
}

/// Plugs in and pulls out cables.
pub(super) fn links(plan: &mut Plan<'_>) {
    for wanted in &plan.wanted.interfaces {
        let mut running = plan.after.interfaces.iter();
        if running.any(|running| running.name == wanted.name && running.link_up != wanted.link_up) {
            plan.push(Change::SetLink { interface: wanted.name.clone(), up: wanted.link_up });
        }
    }
}

/// The device of that name and role.
pub(super) fn find<'a>(devices: &'a [HostDevice], like: &HostDevice) -> Option<&'a HostDevice> {
    devices.iter().find(|device| device.id() == like.id())
}

/// A new card in a place that the machine has for it.
fn placed(plan: &mut Plan<'_>, interface: &Interface) -> Result<Interface, &'static str> {
    let user_space = matches!(interface.backend, NetBackend::VhostUser { .. });
    if user_space && !plan.after.memory.backing.shared {
        return Err("its switch needs memory that the machine does not share");
    }
    let fixed = plan.wanted.pci.fixed.contains(&interface.address);
    let address = plan.room.take(interface.address, fixed).ok_or("there is no free place for it")?;
    Ok(Interface { address, ..interface.clone() })
}
