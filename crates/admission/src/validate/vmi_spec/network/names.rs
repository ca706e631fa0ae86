//! The names by which interfaces and networks find each other.

use std::collections::HashSet;

use kubevirt_api::vmi::network::{Interface, Network};

use super::INTERFACES;
use crate::{Path, Problems};

/// Checks that every network has one interface and every interface has one network.
pub fn check(path: &Path<'_>, networks: &[Network], interfaces: &[Interface], problems: &mut Problems) {
    let of_interfaces: HashSet<&str> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
    let of_networks: HashSet<&str> = networks.iter().map(|network| network.name.as_str()).collect();

    let list = path.at("networks");
    let mut seen = HashSet::with_capacity(networks.len());
    for (index, Network { name, .. }) in networks.iter().enumerate() {
        let field = list.index(index);
        if !of_interfaces.contains(name.as_str()) {
            problems.required(
                &field.at("name"),
                format!("no interface joins network {name:?}: add one of that name or remove the network"),
            );
        }
        if !seen.insert(name.as_str()) {
            problems.duplicate(&field.at("name"), format!("another network is named {name:?} already"));
        }
    }

    let list = path.at(INTERFACES);
    let mut seen = HashSet::with_capacity(interfaces.len());
    for (index, Interface { name, .. }) in interfaces.iter().enumerate() {
        let field = list.index(index);
        if !of_networks.contains(name.as_str()) {
            problems.invalid(
                &field.at("name"),
                format!("there is no network {name:?}: add it under networks or name another one"),
            );
        }
        if !seen.insert(name.as_str()) {
            problems
                .duplicate(&field.at("name"), format!("another interface joins network {name:?} already"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::refused;

    #[test]
    fn interfaces_and_networks_come_in_pairs() {
        let lan = |name: &str| json!({ "name": name, "multus": { "networkName": "lan" } });
        let nic = |name: &str| json!({ "name": name, "bridge": {} });
        let cases = [
            ("nothing", json!([]), json!([]), &[][..]),
            ("a pair", json!([lan("a")]), json!([nic("a")]), &[]),
            ("pairs in any order", json!([lan("a"), lan("b")]), json!([nic("b"), nic("a")]), &[]),
            ("a lone network", json!([lan("a")]), json!([]), &["spec.networks[0].name"]),
            ("a lone interface", json!([]), json!([nic("a")]), &["spec.domain.devices.interfaces[0].name"]),
            (
                "names that differ in case",
                json!([lan("a")]),
                json!([nic("A")]),
                &["spec.networks[0].name", "spec.domain.devices.interfaces[0].name"],
            ),
            ("a network twice", json!([lan("a"), lan("a")]), json!([nic("a")]), &["spec.networks[1].name"]),
            (
                "an interface twice",
                json!([lan("a")]),
                json!([nic("a"), nic("a")]),
                &["spec.domain.devices.interfaces[1].name"],
            ),
        ];
        for (case, networks, interfaces, expected) in cases {
            let patch =
                json!({ "networks": networks, "domain": { "devices": { "interfaces": interfaces } } });
            refused(case, patch, expected);
        }
    }
}
