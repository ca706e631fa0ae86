//! What the status says of each interface.

use k8s_openapi::api::core::v1::Pod;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{InterfaceStatus, VirtualMachineInstanceStatus};
use kubevirt_network::names;

use super::{Attached, primary, secondary};

/// The word by which an interface says that Multus reported it.
pub const MULTUS: &str = "multus-status";
/// The word by which an interface says that the guest has it.
pub const DOMAIN: &str = "domain";

/// Brings the status of interfaces up to date with the pod. What the node reports of them stays.
pub fn update(vmi: &VirtualMachineInstance, pod: &Pod, status: &mut VirtualMachineInstanceStatus) {
    let attached = Attached::to(pod);
    let networks = vmi.spec.networks.as_deref().unwrap_or_default();
    let old = status.interfaces.take().unwrap_or_default();
    let known = |name: &str| old.iter().find(|interface| interface.name.as_deref() == Some(name));

    let mut new = Vec::new();
    if let Some(network) = primary(networks) {
        let own = attached.iter().find(|it| it.default && !it.interface.is_empty());
        let pod_name = own.map_or(names::PRIMARY, |it| it.interface.as_str()).to_owned();
        let one = known(&network.name).cloned().unwrap_or_else(|| named(&network.name));
        new.push(InterfaceStatus { pod_interface_name: Some(pod_name), ..one });
    }
    for (network, pod_name) in secondary(networks, &attached) {
        let is_attached = attached.iter().any(|it| it.interface == pod_name);
        let one = known(&network.name).cloned().or_else(|| is_attached.then(|| named(&network.name)));
        let Some(mut one) = one else { continue };
        one.info_source = with_source(one.info_source.as_deref(), is_attached);
        new.push(InterfaceStatus { pod_interface_name: Some(pod_name), ..one });
    }
    // The node looks after claimed devices, and after interfaces that only the guest knows.
    let managed = |interface: &InterfaceStatus| {
        let name = interface.name.as_deref().unwrap_or_default();
        networks.iter().any(|network| network.name == name && network.resource_claim.is_none())
    };
    new.extend(old.iter().filter(|interface| !managed(interface)).cloned());
    if !is_same(&old, &new) {
        status.interfaces = (!new.is_empty()).then_some(new);
    } else if !old.is_empty() {
        status.interfaces = Some(old);
    }
}

fn named(network: &str) -> InterfaceStatus {
    InterfaceStatus { name: Some(network.to_owned()), ..InterfaceStatus::default() }
}

/// The order is the node's; another order alone is no reason to write.
fn is_same(old: &[InterfaceStatus], new: &[InterfaceStatus]) -> bool {
    old.len() == new.len() && new.iter().all(|interface| old.contains(interface))
}

/// Adds or removes the word for Multus.
fn with_source(sources: Option<&str>, is_attached: bool) -> Option<String> {
    let mut words: Vec<&str> =
        sources.unwrap_or_default().split(", ").filter(|word| !word.is_empty()).collect();
    words.retain(|word| *word != MULTUS);
    if is_attached {
        words.push(MULTUS);
    }
    (!words.is_empty()).then(|| words.join(", "))
}

/// Whether an interface says that it has been reported by this source.
pub fn is_from(interface: &InterfaceStatus, source: &str) -> bool {
    let sources = interface.info_source.as_deref().unwrap_or_default();
    sources.split(',').any(|word| word.trim() == source)
}
