//! How an interface is bound to its network.

use kubevirt_api::vmi::network::Interface;

use super::Nic;
use crate::{Context, Gate, Path, Problems};

/// The address that the bridge of a masqueraded interface has inside the pod.
const MASQUERADE_BRIDGE_MAC: &str = "02:00:00:00:00:00";

/// Checks that there is one binding and that it suits the network.
pub fn check(cx: &Context<'_>, nic: &Nic<'_>, problems: &mut Problems) {
    let (interface, path) = (nic.interface, &nic.path);
    let name = &interface.name;
    if bindings(interface) != 1 {
        problems.invalid(
            path,
            format!(
                "interface {name:?} needs exactly one of bridge, masquerade, sriov, passtBinding and binding; it has {}",
                bindings(interface)
            ),
        );
    }
    if interface.masquerade.is_some() {
        needs_pod_network("masquerade", nic, problems);
        if interface.mac_address.as_deref() == Some(MASQUERADE_BRIDGE_MAC) {
            problems.invalid(
                &path.at("macAddress"),
                format!(
                    "{MASQUERADE_BRIDGE_MAC} belongs to the bridge in the pod: choose another MAC address"
                ),
            );
        }
    }
    if interface.bridge.is_some() && nic.on_pod_network() && !cx.config.bridge_on_pod_network() {
        problems.invalid(
            &path.at("name"),
            "this cluster does not permit a bridge on the pod network \
             (network.permitBridgeInterfaceOnPodNetwork): use masquerade",
        );
    }
    if interface.passt_binding.is_some() {
        if !cx.config.enabled(Gate::PasstBinding) {
            problems.invalid(
                &path.at("name"),
                format!("interface {name:?} uses passtBinding, but feature gate PasstBinding is off"),
            );
        }
        needs_pod_network("passtBinding", nic, problems);
    }
}

/// Refuses the bindings that are gone, each with what takes its place.
pub fn check_discontinued(path: &Path<'_>, interface: &Interface, problems: &mut Problems) {
    let gone = [
        ("slirp", interface.slirp.is_some(), "masquerade or passtBinding"),
        ("passt", interface.passt.is_some(), "passtBinding"),
        ("macvtap", interface.macvtap.is_some(), "a binding plugin"),
    ];
    for (field, used, instead) in gone {
        if used {
            problems.invalid(&path.at(field), format!("binding {field} ended with v1.3: use {instead}"));
        }
    }
}

fn needs_pod_network(binding: &str, nic: &Nic<'_>, problems: &mut Problems) {
    if !nic.on_pod_network() {
        problems.invalid(
            &nic.path.at("name"),
            format!("interface {:?} uses {binding}, which works on the pod network only", nic.interface.name),
        );
    }
}

fn bindings(interface: &Interface) -> usize {
    [
        interface.bridge.is_some(),
        interface.masquerade.is_some(),
        interface.sriov.is_some(),
        interface.passt_binding.is_some(),
        interface.binding.is_some(),
    ]
    .into_iter()
    .filter(|set| *set)
    .count()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::check_creation;
    use super::super::testing::{refused, refused_in, spec, with_interface};
    use crate::testing::{World, assert_fields};
    use crate::{Path, Problems};

    const NIC: &str = "spec.domain.devices.interfaces[0]";
    const NAME: &str = "spec.domain.devices.interfaces[0].name";

    fn on_lan(nic: Value) -> Value {
        json!({
            "networks": [{ "name": "lan", "multus": { "networkName": "lan" } }],
            "domain": { "devices": { "interfaces": [nic] } },
        })
    }

    #[test]
    fn an_interface_has_one_binding() {
        for (case, patch, expected) in [
            ("masquerade", json!({}), &[][..]),
            ("bridge", json!({ "masquerade": null, "bridge": {} }), &[]),
            ("passt", json!({ "masquerade": null, "passtBinding": {} }), &[]),
            ("plugin", json!({ "masquerade": null, "binding": { "name": "x" } }), &[]),
            ("none", json!({ "masquerade": null }), &[NIC]),
            ("two", json!({ "bridge": {} }), &[NIC]),
            ("method and plugin", json!({ "binding": { "name": "x" } }), &[NIC]),
            ("one that is gone", json!({ "masquerade": null, "slirp": {} }), &[NIC]),
        ] {
            refused(case, with_interface(&patch), expected);
        }
    }

    #[test]
    fn a_binding_suits_its_network() {
        for (case, patch, expected) in [
            ("bridge", on_lan(json!({ "name": "lan", "bridge": {} })), &[][..]),
            ("sriov", on_lan(json!({ "name": "lan", "sriov": {} })), &[]),
            ("masquerade", on_lan(json!({ "name": "lan", "masquerade": {} })), &[NAME]),
            ("passt", on_lan(json!({ "name": "lan", "passtBinding": {} })), &[NAME]),
        ] {
            refused(case, patch, expected);
        }
    }

    #[test]
    fn masquerade_leaves_the_address_of_its_bridge_alone() {
        let mac = "spec.domain.devices.interfaces[0].macAddress";
        let patch =
            |binding: &str| json!({ "masquerade": null, "macAddress": "02:00:00:00:00:00", binding: {} });
        refused("masquerade", with_interface(&patch("masquerade")), &[mac]);
        refused("bridge", with_interface(&patch("bridge")), &[]);
    }

    #[test]
    fn the_cluster_may_forbid_bridges_on_the_pod_network() {
        let world = || {
            World::default()
                .with_configuration(json!({ "network": { "permitBridgeInterfaceOnPodNetwork": false } }))
        };
        let bridge = with_interface(&json!({ "masquerade": null, "bridge": {} }));
        refused_in(&world(), "pod", bridge, &[NAME]);
        refused_in(&world(), "lan", on_lan(json!({ "name": "lan", "bridge": {} })), &[]);
        refused_in(&world(), "masquerade", json!({}), &[]);
    }

    #[test]
    fn passt_can_be_turned_off() {
        let world = World::default().with_configuration(
            json!({ "developerConfiguration": { "disabledFeatureGates": ["PasstBinding"] } }),
        );
        refused_in(
            &world,
            "pod",
            with_interface(&json!({ "masquerade": null, "passtBinding": {} })),
            &[NAME],
        );
        refused_in(&world, "lan", on_lan(json!({ "name": "lan", "passtBinding": {} })), &[NAME, NAME]);
    }

    #[test]
    fn bindings_that_are_gone_are_refused_in_new_objects() {
        for (field, expected) in [
            ("slirp", &["spec.domain.devices.interfaces[0].slirp"][..]),
            ("passt", &["spec.domain.devices.interfaces[0].passt"]),
            ("macvtap", &["spec.domain.devices.interfaces[0].macvtap"]),
            ("masquerade", &[]),
        ] {
            let mut problems = Problems::default();
            let spec = spec(with_interface(&json!({ field: {} })));
            check_creation(&Path::new("spec"), &spec, &mut problems);
            assert_fields(field, &problems, expected);
        }
    }
}
