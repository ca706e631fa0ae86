//! What Multus and device plugins are asked for, for the networks of a VMI.

use kubevirt_admission::{ClusterConfig, Gate};
use kubevirt_api::kubevirt::network::{InterfaceBindingPlugin, NetworkBindingDownwardApiType};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::network::{Interface, Network};
use kubevirt_network::names;
use serde_json::{Map, Value, json};

use super::error::NoPod;
use super::surroundings::Surroundings;
use super::{instance, text};

/// The networks that Multus attaches beside the primary one, as its annotation lists them.
pub(in crate::vmi) fn selection(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> Option<String> {
    let namespace = vmi.metadata.namespace.as_deref().unwrap_or_default();
    let mut elements = Vec::new();
    for (interface, network) in instance::connections(vmi) {
        if let Some(multus) = network.multus.as_ref().filter(|multus| multus.default != Some(true)) {
            let mut element = located(namespace, &multus.network_name);
            if let Some(mac) = text(&interface.mac_address) {
                element.insert("mac".into(), mac.into());
            }
            element.insert("interface".into(), names::hashed(&network.name).into());
            elements.push(Value::Object(element));
        }
        if let Ok(Some(plugin)) = plugin(config, interface)
            && let Some(definition) = text(&plugin.network_attachment_definition)
        {
            let mut element = located(namespace, &definition);
            element.insert("cni-args".into(), json!({ "logicNetworkName": network.name }));
            elements.push(Value::Object(element));
        }
    }
    (!elements.is_empty()).then(|| Value::Array(elements).to_string())
}

/// The network that is the pod's primary one instead of the cluster's.
pub(super) fn primary(vmi: &VirtualMachineInstance) -> Option<&str> {
    let networks = vmi.spec.networks.iter().flatten().filter_map(|network| network.multus.as_ref());
    networks
        .into_iter()
        .find(|multus| multus.default == Some(true))
        .map(|multus| multus.network_name.as_str())
}

/// Resources of device plugins that networks need, one entry a network. Where something else adds them to pods, none.
pub(super) fn resources(
    vmi: &VirtualMachineInstance,
    around: &Surroundings<'_>,
) -> Result<Vec<String>, NoPod> {
    if around.config.enabled(Gate::ExternalNetResourceInjection) {
        return Ok(Vec::new());
    }
    let namespace = vmi.metadata.namespace.as_deref().unwrap_or_default();
    let mut found = Vec::new();
    for network in vmi.spec.networks.iter().flatten() {
        let Some(multus) = &network.multus else { continue };
        match around.network_resources.get(&network.name) {
            Some(resource) if resource.is_empty() => {}
            Some(resource) => found.push(resource.clone()),
            None => {
                let (namespace, name) = split(namespace, &multus.network_name);
                return Err(NoPod::MissingNetwork(format!("{namespace}/{name}")));
            }
        }
    }
    Ok(found)
}

/// Claims on devices that networks are.
pub(super) fn claimed(vmi: &VirtualMachineInstance) -> impl Iterator<Item = &Network> {
    vmi.spec.networks.iter().flatten().filter(|network| network.resource_claim.is_some())
}

/// Whether the guest's side must read which devices the networks are, from an annotation of the pod.
pub(super) fn needs_device_info(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> bool {
    instance::interfaces(vmi).any(|interface| {
        let plugin = plugin(config, interface).ok().flatten();
        let asks = plugin.and_then(|plugin| plugin.downward_api.clone());
        interface.sriov.is_some() || asks == Some(NetworkBindingDownwardApiType::DeviceInfo)
    })
}

/// The cluster has no such binding plugin.
#[derive(Debug, thiserror::Error)]
#[error("the cluster has no network binding plugin {0:?}")]
pub(super) struct MissingPlugin(String);

/// The binding plugin of an interface.
pub(super) fn plugin<'a>(
    config: &'a ClusterConfig,
    interface: &Interface,
) -> Result<Option<&'a InterfaceBindingPlugin>, MissingPlugin> {
    let Some(binding) = &interface.binding else { return Ok(None) };
    let found = config.network_bindings().and_then(|plugins| plugins.get(&binding.name));
    found.map(Some).ok_or_else(|| MissingPlugin(binding.name.clone()))
}

fn located(namespace: &str, definition: &str) -> Map<String, Value> {
    let (namespace, name) = split(namespace, definition);
    Map::from_iter([("name".to_owned(), name.into()), ("namespace".to_owned(), namespace.into())])
}

/// Namespace and name of a definition, which is in the VMI's namespace unless it says another.
fn split<'a>(namespace: &'a str, definition: &'a str) -> (&'a str, &'a str) {
    definition.split_once('/').unwrap_or((namespace, definition))
}
