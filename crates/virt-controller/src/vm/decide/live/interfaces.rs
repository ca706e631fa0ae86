//! Plugs, unplugs and links the network interfaces of a running instance.

use std::collections::BTreeSet;

use kubevirt_admission::validate::same::same;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::network::{Interface, InterfaceState, Network};
use kubevirt_api::vmi::status::InterfaceStatus;
use kubevirt_api::vmi::{VirtualMachineInstance, VirtualMachineInstanceSpec};

/// Brings changes over, and drops from both sides what the guest has let go of.
pub fn sync(vm: &mut VirtualMachine, vmi: Option<&mut VirtualMachineInstance>) {
    let Some(wanted) = vm.spec.template.spec.as_mut() else { return };
    let mut in_use: BTreeSet<String> = BTreeSet::new();
    if let Some(vmi) = vmi {
        let statuses =
            vmi.status.as_ref().and_then(|status| status.interfaces.as_deref()).unwrap_or_default();
        let attached: BTreeSet<String> = statuses.iter().filter_map(|status| status.name.clone()).collect();
        let ordinals = keeps_ordinals(&vmi.spec, statuses);
        plug(wanted, &mut vmi.spec, ordinals);
        retain(&mut vmi.spec, |interface| !is_absent(interface) || attached.contains(&interface.name));
        point_networks(wanted, &mut vmi.spec);
        in_use.extend(interfaces(&vmi.spec).iter().map(|interface| interface.name.clone()));
        in_use.extend(attached);
    }
    retain(wanted, |interface| !is_absent(interface) || in_use.contains(&interface.name));
}

fn interfaces(spec: &VirtualMachineInstanceSpec) -> &[Interface] {
    spec.domain.devices.interfaces.as_deref().unwrap_or_default()
}

fn networks(spec: &VirtualMachineInstanceSpec) -> &[Network] {
    spec.networks.as_deref().unwrap_or_default()
}

fn is_absent(interface: &Interface) -> bool {
    interface.state == Some(InterfaceState::Absent)
}

fn plug(wanted: &VirtualMachineInstanceSpec, spec: &mut VirtualMachineInstanceSpec, ordinals: bool) {
    for interface in interfaces(wanted) {
        let mut existing = spec.domain.devices.interfaces.iter_mut().flatten();
        match existing.find(|existing| existing.name == interface.name) {
            Some(existing) => {
                // Names by position would move to another interface if one before it went.
                let stays = is_absent(existing) || (ordinals && is_absent(interface));
                if !stays {
                    existing.state.clone_from(&interface.state);
                }
            }
            None if !is_absent(interface) && (interface.bridge.is_some() || interface.sriov.is_some()) => {
                let network = networks(wanted).iter().find(|network| network.name == interface.name);
                spec.networks.get_or_insert_default().extend(network.cloned());
                spec.domain.devices.interfaces.get_or_insert_default().push(interface.clone());
            }
            None => {}
        }
    }
}

/// Keeps these interfaces and their networks. Lists in which nothing changes are left as they are written.
fn retain(spec: &mut VirtualMachineInstanceSpec, keep: impl Fn(&Interface) -> bool) {
    let dropped = interfaces(spec).iter().filter(|interface| !keep(interface));
    let dropped: BTreeSet<String> = dropped.map(|interface| interface.name.clone()).collect();
    if dropped.is_empty() {
        return;
    }
    if let Some(all) = &mut spec.domain.devices.interfaces {
        all.retain(|interface| !dropped.contains(&interface.name));
    }
    if let Some(all) = &mut spec.networks {
        all.retain(|network| !dropped.contains(&network.name));
    }
}

/// A secondary network may be changed for another under a running guest.
fn point_networks(wanted: &VirtualMachineInstanceSpec, spec: &mut VirtualMachineInstanceSpec) {
    for network in spec.networks.iter_mut().flatten() {
        let wanted = networks(wanted).iter().find(|wanted| wanted.name == network.name);
        if let (Some(multus), Some(wanted)) =
            (&mut network.multus, wanted.and_then(|wanted| wanted.multus.as_ref()))
        {
            multus.network_name.clone_from(&wanted.network_name);
        }
    }
}

/// Whether the pod of an instance names its interfaces by position, `net1` and so on; so it does if unknown.
fn keeps_ordinals(spec: &VirtualMachineInstanceSpec, statuses: &[InterfaceStatus]) -> bool {
    let secondary: Vec<&Network> = networks(spec)
        .iter()
        .filter(|network| network.multus.as_ref().is_some_and(|multus| multus.default != Some(true)))
        .collect();
    let named = secondary.iter().find_map(|network| {
        let status = statuses.iter().find(|status| status.name.as_ref() == Some(&network.name))?;
        status.pod_interface_name.as_deref().filter(|name| !name.is_empty())
    });
    match named {
        Some(name) => {
            let number = name.strip_prefix("net").unwrap_or_default();
            !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
        }
        None => !secondary.is_empty(),
    }
}

/// Whether interfaces or networks changed in a way that a running guest cannot follow.
pub fn need_restart(wanted: &VirtualMachineInstanceSpec, running: &VirtualMachineInstanceSpec) -> bool {
    let has_pod = |spec| networks(spec).iter().any(|network: &Network| network.pod.is_some());
    if has_pod(wanted) && !has_pod(running) {
        return true;
    }
    let unlike = |running: &Interface| {
        let wanted = interfaces(wanted).iter().find(|wanted| wanted.name == running.name);
        !wanted.is_some_and(|wanted| same(&stateless(wanted), &stateless(running)))
    };
    let moved = |running: &Network| {
        let wanted = networks(wanted).iter().find(|wanted| wanted.name == running.name);
        !wanted.is_some_and(|wanted| same(&nameless(wanted), &nameless(running)))
    };
    interfaces(running).iter().any(unlike) || networks(running).iter().any(moved)
}

fn stateless(interface: &Interface) -> Interface {
    Interface { state: None, ..interface.clone() }
}

fn nameless(network: &Network) -> Network {
    let mut network = network.clone();
    if let Some(multus) = &mut network.multus {
        multus.network_name.clear();
    }
    network
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::vm::testing::{machine, read};

    /// Interfaces as `name` or `name=state`, each with a secondary network of its name.
    fn spec(interfaces: &str) -> Value {
        let each = || interfaces.split_whitespace().map(|one| one.split_once('=').unwrap_or((one, "")));
        let networks: Vec<Value> =
            each().map(|(name, _)| json!({ "name": name, "multus": { "networkName": name } })).collect();
        let state = |state: &str| Some(state.to_owned()).filter(|state| !state.is_empty());
        let interfaces: Vec<Value> =
            each().map(|(name, word)| json!({ "name": name, "bridge": {}, "state": state(word) })).collect();
        json!({ "domain": { "devices": { "interfaces": interfaces } }, "networks": networks })
    }

    fn text(spec: &VirtualMachineInstanceSpec) -> String {
        assert_eq!(interfaces(spec).len(), networks(spec).len());
        let one = |interface: &Interface| match &interface.state {
            Some(state) => format!("{}={state}", interface.name),
            None => interface.name.clone(),
        };
        interfaces(spec).iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn interfaces_are_plugged_linked_and_unplugged() {
        let hashed = |name: &str| json!({ "name": name, "podInterfaceName": "pod123" });
        let ordinal = |name: &str| json!({ "name": name, "podInterfaceName": "net1" });
        let cases = [
            ("nothing", "a", "a", json!([hashed("a")]), "a", "a"),
            ("plug", "a b", "a", json!([hashed("a")]), "a b", "a b"),
            ("link", "a=down", "a", json!([hashed("a")]), "a=down", "a=down"),
            ("unplug", "a=absent", "a", json!([hashed("a")]), "a=absent", "a=absent"),
            ("by position", "a=absent", "a", json!([ordinal("a")]), "a=absent", "a"),
            ("gone", "a=absent b", "a=absent b", json!([hashed("b")]), "b", "b"),
        ];
        for (case, wanted, running, statuses, vm_after, vmi_after) in cases {
            let mut vm = machine(json!({ "spec": { "template": { "spec": spec(wanted) } } }));
            let mut vmi: VirtualMachineInstance =
                read(json!({ "spec": spec(running), "status": { "interfaces": statuses } }));
            sync(&mut vm, Some(&mut vmi));
            assert_eq!(text(vm.spec.template.spec.as_ref().unwrap()), vm_after, "{case}");
            assert_eq!(text(&vmi.spec), vmi_after, "{case}");
        }
    }

    #[test]
    fn a_stopped_machine_drops_what_it_was_to_unplug() {
        let mut vm = machine(json!({ "spec": { "template": { "spec": spec("a=absent b") } } }));
        sync(&mut vm, None);
        assert_eq!(text(vm.spec.template.spec.as_ref().unwrap()), "b");
    }

    #[test]
    fn another_secondary_network_can_take_the_place_of_one() {
        let mut other = spec("a");
        other["networks"][0]["multus"]["networkName"] = json!("other");
        assert!(!need_restart(&read(other.clone()), &read(spec("a"))));
        let mut vm = machine(json!({ "spec": { "template": { "spec": other } } }));
        let mut vmi: VirtualMachineInstance = read(json!({ "spec": spec("a") }));
        sync(&mut vm, Some(&mut vmi));
        assert_eq!(vmi.spec.networks.unwrap()[0].multus.as_ref().unwrap().network_name, "other");
    }
}
