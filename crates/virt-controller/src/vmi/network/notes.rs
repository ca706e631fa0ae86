//! What the annotations of a running pod say about its networks.

use k8s_openapi::api::core::v1::Pod;
use kubevirt_admission::ClusterConfig;
use kubevirt_api::kubevirt::network::NetworkBindingDownwardApiType;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::network::{Interface, InterfaceState};
use serde_json::{Map, Value, json};

use super::{Attached, primary, secondary};
use crate::vmi::pod;

/// Which devices the networks are, for those that the guest's side must know: nothing if there are none.
pub fn device_info(vmi: &VirtualMachineInstance, pod: &Pod, config: &ClusterConfig) -> Option<String> {
    let attached = Attached::to(pod);
    let networks = vmi.spec.networks.as_deref().unwrap_or_default();
    let mut named = secondary(networks, &attached);
    named.extend(primary(networks).map(|network| (network, kubevirt_network::names::PRIMARY.to_owned())));
    named.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    let interfaces = vmi.spec.domain.devices.interfaces.as_deref().unwrap_or_default();
    let is_told = |name: &str| interfaces.iter().any(|it| it.name == name && needs_device_info(it, config));
    let told = named.iter().filter(|(network, _)| is_told(&network.name));
    let found = told.filter_map(|(network, pod_name)| {
        attached.iter().find(|it| it.interface == *pod_name).map(|it| entry(&network.name, it))
    });
    let found: Vec<Value> = found.collect();
    (!found.is_empty()).then(|| json!({ "interfaces": found }).to_string())
}

fn entry(network: &str, attached: &Attached) -> Value {
    let mut entry = Map::from_iter([("network".to_owned(), network.into())]);
    if let Some(device) = &attached.device_info {
        entry.insert("deviceInfo".into(), device.clone());
    }
    if !attached.mac.is_empty() {
        entry.insert("mac".into(), attached.mac.as_str().into());
    }
    if let Some(mtu) = attached.mtu.filter(|mtu| *mtu != 0) {
        entry.insert("mtu".into(), mtu.into());
    }
    Value::Object(entry)
}

fn needs_device_info(interface: &Interface, config: &ClusterConfig) -> bool {
    let plugin = interface.binding.as_ref().and_then(|binding| config.network_bindings()?.get(&binding.name));
    let asks = plugin.and_then(|plugin| plugin.downward_api.as_ref());
    interface.sriov.is_some() || asks == Some(&NetworkBindingDownwardApiType::DeviceInfo)
}

/// The networks that Multus should attach to the running pod, if interfaces were plugged or unplugged.
pub fn selection(vmi: &VirtualMachineInstance, config: &ClusterConfig) -> Option<String> {
    let interfaces = vmi.spec.domain.devices.interfaces.as_deref().unwrap_or_default();
    let statuses = vmi.status.as_ref().and_then(|status| status.interfaces.as_deref()).unwrap_or_default();
    let is_known = |it: &Interface| statuses.iter().any(|status| status.name.as_deref() == Some(&it.name));
    let is_absent = |it: &Interface| it.state == Some(InterfaceState::Absent);
    // A device of the host comes only with another pod.
    let is_left_out = |it: &Interface| is_absent(it) || (it.sriov.is_some() && !is_known(it));
    let unplugged = interfaces.iter().any(is_absent);
    let plugged = interfaces.iter().any(|it| !is_left_out(it) && !is_known(it));
    if !plugged && !unplugged {
        return None;
    }
    let mut wanted = vmi.clone();
    let kept: Vec<Interface> = interfaces.iter().filter(|it| !is_left_out(it)).cloned().collect();
    wanted.spec.networks.iter_mut().for_each(|networks| {
        networks.retain(|network| kept.iter().any(|interface| interface.name == network.name));
    });
    wanted.spec.domain.devices.interfaces = Some(kept);
    pod::selection(&wanted, config)
}
