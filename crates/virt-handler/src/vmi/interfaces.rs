//! The network interfaces of an instance, from what the domain, the pod and the guest say of them.

use std::net::IpAddr;

use kubevirt_api::names::values::info_source;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::network::Interface;
use kubevirt_api::vmi::status::InterfaceStatus;
use kubevirt_domain::Domain;
use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::report::InterfaceStatus as Told;
use kubevirt_network::Wiring;

/// So many interfaces that only the guest knows are listed; container hosts have thousands.
const GUEST_ONLY: usize = 10;

/// The interfaces, the one of the pod network first. As long as it is not known how they are wired up, what was told of
/// them stays.
pub fn interfaces(
    vmi: &VirtualMachineInstance,
    report: &DomainReport,
    wirings: Option<&[Wiring]>,
) -> Option<Vec<InterfaceStatus>> {
    let before = vmi.status.as_ref().and_then(|status| status.interfaces.as_deref()).unwrap_or_default();
    let (Some(domain), Some(wirings)) = (&report.spec, wirings) else {
        return vmi.status.as_ref().and_then(|status| status.interfaces.clone());
    };
    let mut all: Vec<InterfaceStatus> = of_domain(vmi, domain);
    for status in &mut all {
        of_pod(status, wirings);
    }
    of_guest(vmi, &report.status.interfaces, &mut all);
    first_the_pod_network(vmi, before, &mut all);
    of_multus(vmi, before, &mut all);
    for status in all.iter_mut().filter(|status| status.name.is_some()) {
        let old = before.iter().find(|old| old.name == status.name);
        let wired = wirings.iter().find(|wiring| Some(&wiring.network) == status.name.as_ref());
        let told = old.and_then(|old| old.pod_interface_name.clone());
        status.pod_interface_name = told.or_else(|| wired.map(|wiring| wiring.pod.name.clone()));
    }
    (!all.is_empty() || vmi.status.as_ref().is_some_and(|status| status.interfaces.is_some())).then_some(all)
}

fn spec<'a>(vmi: &'a VirtualMachineInstance, name: &str) -> Option<&'a Interface> {
    vmi.spec.domain.devices.interfaces.iter().flatten().find(|interface| interface.name == name)
}

fn of_domain(vmi: &VirtualMachineInstance, domain: &Domain) -> Vec<InterfaceStatus> {
    let plugged = domain.interfaces.iter().map(|interface| InterfaceStatus {
        name: Some(interface.name.clone()),
        mac: Some(interface.mac.clone()),
        info_source: Some(info_source::DOMAIN.to_owned()),
        queue_count: i32::try_from(interface.queues.max(1)).ok(),
        link_state: Some(if interface.link_up { "up" } else { "down" }.to_owned()),
        ..InterfaceStatus::default()
    });
    let passed = domain.host_devices.iter().filter_map(|device| {
        let interface = spec(vmi, &device.name).filter(|interface| interface.sriov.is_some())?;
        Some(InterfaceStatus {
            name: Some(interface.name.clone()),
            mac: interface.mac_address.clone(),
            info_source: Some(info_source::DOMAIN.to_owned()),
            ..InterfaceStatus::default()
        })
    });
    plugged.chain(passed).collect()
}

fn of_pod(status: &mut InterfaceStatus, wirings: &[Wiring]) {
    let wiring = wirings.iter().find(|wiring| Some(&wiring.network) == status.name.as_ref());
    if let Some(wiring) = wiring.filter(|wiring| !wiring.addresses.is_empty()) {
        set_addresses(status, wiring.addresses.iter().map(ToString::to_string).collect());
    }
}

fn set_addresses(status: &mut InterfaceStatus, addresses: Vec<String>) {
    status.ip_address = addresses.first().cloned();
    status.ip_addresses = (!addresses.is_empty()).then_some(addresses);
}

/// What the guest says of interfaces that we know, and those that it made itself.
fn of_guest(vmi: &VirtualMachineInstance, told: &[Told], all: &mut Vec<InterfaceStatus>) {
    let mut guest_only = Vec::new();
    for guest in told {
        let known = all.iter_mut().find(|status| same_mac(status.mac.as_deref(), &guest.mac));
        match known {
            Some(status) => {
                let masqueraded = status.name.as_deref().and_then(|name| spec(vmi, name));
                merge(status, guest, masqueraded.is_some_and(|interface| interface.masquerade.is_some()));
            }
            None if guest_only.len() < GUEST_ONLY => {
                let mut status = InterfaceStatus {
                    mac: Some(guest.mac.clone()),
                    interface_name: Some(guest.interface_name.clone()),
                    info_source: Some(info_source::GUEST_AGENT.to_owned()),
                    ..InterfaceStatus::default()
                };
                set_addresses(&mut status, guest.ips.clone());
                guest_only.push(status);
            }
            None => {}
        }
    }
    all.extend(guest_only);
}

fn same_mac(ours: Option<&str>, theirs: &str) -> bool {
    ours.is_some_and(|ours| ours.eq_ignore_ascii_case(theirs))
}

/// The pod's addresses are the ones that lead to the guest, so they stay; but a guest without any address of a
/// family cannot be reached by it.
fn merge(status: &mut InterfaceStatus, guest: &Told, masqueraded: bool) {
    let family = |addresses: &[String], six: bool| -> Vec<String> {
        addresses.iter().filter(|text| is_six(text) == Some(six)).cloned().collect()
    };
    // Behind masquerade, addresses of the link lead nowhere.
    let theirs: Vec<String> =
        guest.ips.iter().filter(|text| !(masqueraded && is_link_local(text))).cloned().collect();
    let ours = status.ip_addresses.clone().unwrap_or_default();
    let choose = |six: bool| {
        let (ours, theirs) = (family(&ours, six), family(&theirs, six));
        if ours.is_empty() || theirs.is_empty() { theirs } else { ours }
    };
    set_addresses(status, [choose(false), choose(true)].concat());
    status.interface_name = Some(guest.interface_name.clone()).filter(|name| !name.is_empty());
    if status.interface_name.is_some() {
        status.info_source = Some(format!("{}, {}", info_source::DOMAIN, info_source::GUEST_AGENT));
    }
}

fn is_six(text: &str) -> Option<bool> {
    text.parse::<IpAddr>().ok().map(|address| address.is_ipv6())
}

fn is_link_local(text: &str) -> bool {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_unicast_link_local(),
        Err(_) => false,
    }
}

/// The columns of `kubectl get` show the first.
fn first_the_pod_network(
    vmi: &VirtualMachineInstance,
    before: &[InterfaceStatus],
    all: &mut Vec<InterfaceStatus>,
) {
    let Some(pod) = vmi.spec.networks.iter().flatten().find(|network| network.pod.is_some()) else { return };
    let is_it = |status: &InterfaceStatus| status.name.as_ref() == Some(&pod.name);
    if let Some(place) = all.iter().position(is_it) {
        all[..=place].rotate_right(1);
    } else if before.iter().any(is_it) {
        all.insert(0, InterfaceStatus { name: Some(pod.name.clone()), ..InterfaceStatus::default() });
    }
}

/// What the controller read from the pod's annotation stays known.
fn of_multus(vmi: &VirtualMachineInstance, before: &[InterfaceStatus], all: &mut Vec<InterfaceStatus>) {
    let from_multus = |old: &&InterfaceStatus| {
        let sources = old.info_source.as_deref().unwrap_or_default();
        sources.split(',').any(|source| source.trim() == info_source::MULTUS_STATUS)
    };
    for old in before.iter().filter(from_multus) {
        let Some(name) = &old.name else { continue };
        match all.iter_mut().find(|status| status.name.as_ref() == Some(name)) {
            Some(status) => {
                let others = status.info_source.take().filter(|sources| !sources.is_empty());
                status.info_source = Some(match others {
                    Some(others) => format!("{others}, {}", info_source::MULTUS_STATUS),
                    None => info_source::MULTUS_STATUS.to_owned(),
                });
            }
            None if spec(vmi, name).is_some() => all.push(InterfaceStatus {
                name: Some(name.clone()),
                info_source: Some(info_source::MULTUS_STATUS.to_owned()),
                ..InterfaceStatus::default()
            }),
            None => {}
        }
    }
}

#[cfg(test)]
#[path = "interfaces_tests.rs"]
mod tests;
