//! The pod network, for instances that say nothing of networks.

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::network::{Interface, InterfaceBridge, InterfaceMasquerade, Network, PodNetwork};

use crate::{ClusterConfig, Path, Problems};

/// The name of the network and the interface that are added.
const DEFAULT: &str = "default";

/// Joins the pod network with the binding that the cluster prefers, unless the instance wants none or has its own.
pub fn add_default(config: &ClusterConfig, spec: &mut VirtualMachineInstanceSpec) -> Problems {
    let mut problems = Problems::default();
    let devices = &mut spec.domain.devices;
    let has_networks = spec.networks.as_ref().is_some_and(|networks| !networks.is_empty());
    let has_interfaces = devices.interfaces.as_ref().is_some_and(|interfaces| !interfaces.is_empty());
    if devices.autoattach_pod_interface == Some(false) || has_networks || has_interfaces {
        return problems;
    }
    let mut interface = Interface { name: DEFAULT.to_owned(), ..Interface::default() };
    match config.default_network_interface() {
        "bridge" if !config.bridge_on_pod_network() => {
            problems.invalid(
                &Path::WHOLE,
                "the cluster's default interface is a bridge, which it does not permit on the pod network: \
                 list an interface with masquerade, or set network.defaultNetworkInterface of KubeVirt",
            );
            return problems;
        }
        "bridge" => interface.bridge = Some(InterfaceBridge {}),
        "masquerade" => interface.masquerade = Some(InterfaceMasquerade {}),
        other => {
            problems.invalid(
                &Path::WHOLE,
                format!(
                    "the cluster's default interface {other:?} cannot be used: list an interface with \
                     masquerade, or set network.defaultNetworkInterface of KubeVirt to bridge or masquerade"
                ),
            );
            return problems;
        }
    }
    devices.interfaces = Some(vec![interface]);
    spec.networks = Some(vec![Network {
        name: DEFAULT.to_owned(),
        pod: Some(PodNetwork::default()),
        ..Network::default()
    }]);
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, patched, read};

    #[test]
    fn the_pod_network_is_joined_as_the_cluster_prefers() {
        let pod = json!([{ "name": "default", "pod": {} }]);
        let joined = |binding: &str| json!({ "networks": pod, "domain": { "devices": { "interfaces": [{ "name": "default", binding: {} }] } } });
        let none = json!({});
        let off = json!({ "domain": { "devices": { "autoattachPodInterface": false } } });
        let on = json!({ "domain": { "devices": { "autoattachPodInterface": true } } });
        let lone = json!({ "networks": [{ "name": "x", "pod": {} }] });
        let nic = json!({ "domain": { "devices": { "interfaces": [{ "name": "x", "bridge": {} }] } } });
        let empty = json!({ "networks": [], "domain": { "devices": { "interfaces": [] } } });
        let prefers = |binding: &str| json!({ "network": { "defaultNetworkInterface": binding } });
        let no_bridge = json!({ "network": { "permitBridgeInterfaceOnPodNetwork": false } });
        let cases: &[(&Value, &Value, Value, &[&str])] = &[
            (&none, &none, joined("bridge"), &[]),
            (&none, &on, joined("bridge"), &[]),
            (&none, &empty, joined("bridge"), &[]),
            (&prefers("masquerade"), &none, joined("masquerade"), &[]),
            (&none, &off, none.clone(), &[]),
            (&none, &lone, none.clone(), &[]),
            (&none, &nic, none.clone(), &[]),
            (&no_bridge, &none, none.clone(), &[""]),
            (&no_bridge, &lone, none.clone(), &[]),
            (&prefers("slirp"), &none, none.clone(), &[""]),
            (&prefers("slirp"), &off, none.clone(), &[]),
        ];
        for (configuration, patch, added, problems) in cases {
            let before = patched(&json!({ "domain": { "devices": {} } }), patch);
            let mut spec: VirtualMachineInstanceSpec = read(before.clone());
            let world = World::default().with_configuration((*configuration).clone());
            let found = add_default(&world.config, &mut spec);
            assert_fields(&patch.to_string(), &found, problems);
            assert_eq!(serde_json::to_value(spec).unwrap(), patched(&before, added), "{patch}");
        }
    }
}
