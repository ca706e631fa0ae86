//! The wanted state of an interface: up, down or absent.

use kubevirt_api::vmi::network::{InterfaceState, Network};

use super::Nic;
use crate::Problems;

/// Checks that the state is known and that the binding can take it.
pub fn check(nic: &Nic<'_>, default_network: Option<&Network>, problems: &mut Problems) {
    let Some(state) = nic.interface.state.as_ref().filter(|state| !state.is_empty()) else { return };
    let (name, path) = (&nic.interface.name, nic.path.at("state"));
    match state {
        InterfaceState::Up | InterfaceState::Down => {
            if nic.interface.sriov.is_some() {
                problems.invalid(
                    &path,
                    format!(
                        "the link of SR-IOV interface {name:?} cannot be set {state}: leave the state out"
                    ),
                );
            }
        }
        InterfaceState::Absent => {
            if nic.interface.bridge.is_none() {
                problems.invalid(
                    &path,
                    format!("interface {name:?} cannot be absent: only a bridge can be unplugged"),
                );
            }
            if default_network.is_some_and(|network| network.name == *name) {
                problems.invalid(
                    &path,
                    format!("interface {name:?} cannot be absent: it joins the default network of the pod"),
                );
            }
        }
        InterfaceState::Other(other) => problems.invalid(
            &path,
            format!(
                "interface {name:?} cannot have state {other:?}; choose one of {}",
                InterfaceState::KNOWN.join(", ")
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{refused, with_interface};

    const STATE: &str = "spec.domain.devices.interfaces[0].state";

    #[test]
    fn on_the_default_network_a_link_goes_up_and_down_but_not_away() {
        for (case, patch, expected) in [
            ("none", json!({ "state": "" }), &[][..]),
            ("up", json!({ "state": "up" }), &[]),
            ("down", json!({ "state": "down" }), &[]),
            ("unknown", json!({ "state": "sideways" }), &[STATE]),
            ("absent masquerade", json!({ "state": "absent" }), &[STATE, STATE]),
            ("absent bridge", json!({ "state": "absent", "masquerade": null, "bridge": {} }), &[STATE]),
        ] {
            refused(case, with_interface(&patch), expected);
        }
    }

    #[test]
    fn on_a_secondary_network_a_bridge_can_be_absent() {
        let lan = |default: bool, nic: Value| {
            json!({
                "networks": [{ "name": "lan", "multus": { "networkName": "lan", "default": default } }],
                "domain": { "devices": { "interfaces": [nic] } },
            })
        };
        for (case, patch, expected) in [
            ("bridge", lan(false, json!({ "name": "lan", "bridge": {}, "state": "absent" })), &[][..]),
            ("default", lan(true, json!({ "name": "lan", "bridge": {}, "state": "absent" })), &[STATE]),
            (
                "plugin",
                lan(false, json!({ "name": "lan", "binding": { "name": "x" }, "state": "absent" })),
                &[STATE],
            ),
            (
                "plugin down",
                lan(false, json!({ "name": "lan", "binding": { "name": "x" }, "state": "down" })),
                &[],
            ),
            ("sriov absent", lan(false, json!({ "name": "lan", "sriov": {}, "state": "absent" })), &[STATE]),
            ("sriov up", lan(false, json!({ "name": "lan", "sriov": {}, "state": "up" })), &[STATE]),
            ("sriov down", lan(false, json!({ "name": "lan", "sriov": {}, "state": "down" })), &[STATE]),
            ("sriov", lan(false, json!({ "name": "lan", "sriov": {} })), &[]),
        ] {
            refused(case, patch, expected);
        }
    }
}
