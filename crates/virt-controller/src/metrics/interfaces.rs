//! The network interfaces that a machine or instance is defined with.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::network::{Interface, Network};
use kubevirt_component::metrics::{Metric, Page};

/// What is told of a model that is left open.
const NO_MODEL: &str = "<none>";

/// Tells of the interfaces whose network is known.
pub fn tell(
    page: &mut Page,
    metric: &Metric,
    name: &str,
    namespace: &str,
    spec: &VirtualMachineInstanceSpec,
) {
    let interfaces = spec.domain.devices.interfaces.as_deref().unwrap_or_default();
    let networks = spec.networks.as_deref().unwrap_or_default();
    for (place, interface) in interfaces.iter().enumerate() {
        if interfaces[..place].iter().any(|earlier| earlier.name == interface.name) {
            continue;
        }
        let network = networks.iter().find(|network| network.name == interface.name);
        let Some(network) = network.and_then(network_name) else { continue };
        let (kind, binding) = binding(interface);
        let model = interface.model.as_deref().filter(|model| !model.is_empty()).unwrap_or(NO_MODEL);
        page.add(metric, &[name, namespace, &interface.name, kind, network, binding, model], 1.0);
    }
}

fn network_name(network: &Network) -> Option<&str> {
    match (&network.pod, &network.multus) {
        (Some(_), _) => Some("pod networking"),
        (None, Some(multus)) => Some(&multus.network_name),
        (None, None) => None,
    }
}

fn binding(interface: &Interface) -> (&'static str, &str) {
    if interface.masquerade.is_some() {
        ("core", "masquerade")
    } else if interface.bridge.is_some() {
        ("core", "bridge")
    } else if interface.sriov.is_some() {
        ("core", "sriov")
    } else if interface.passt_binding.is_some() {
        ("core", "passt")
    } else {
        interface.binding.as_ref().map_or(("", ""), |plugin| ("plugin", &plugin.name))
    }
}
