//! What a network is: the pod network, one of Multus, or a claimed device.

use kubevirt_api::vmi::network::Network;

use crate::{Path, Problems};

/// Checks that every network has one source and that at most one of them is the pod's default.
pub fn check(path: &Path<'_>, networks: &[Network], problems: &mut Problems) {
    check_defaults(path, networks, problems);
    let list = path.at("networks");
    for (index, network) in networks.iter().enumerate() {
        let path = list.index(index);
        match sources(network) {
            0 => problems.required(
                &path,
                format!("network {:?} has no source: set pod, multus or resourceClaim", network.name),
            ),
            1 => {}
            count => problems.required(
                &path,
                format!(
                    "network {:?} has {count} sources: keep one of pod, multus and resourceClaim",
                    network.name
                ),
            ),
        }
        if network.multus.as_ref().is_some_and(|multus| multus.network_name.is_empty()) {
            problems.required(
                &path,
                format!("network {:?} needs the name of its definition in multus.networkName", network.name),
            );
        }
    }
}

fn check_defaults(path: &Path<'_>, networks: &[Network], problems: &mut Problems) {
    let of_pod = networks.iter().filter(|network| network.pod.is_some()).count();
    let of_multus = networks.iter().filter(|network| is_multus_default(network)).count();
    if of_pod > 1 {
        problems.duplicate(
            &path.at("interfaces"),
            format!("{of_pod} networks are the pod network; there can be one at most"),
        );
    }
    if of_multus > 1 {
        problems.invalid(
            &path.at("networks"),
            format!("{of_multus} Multus networks are marked as the default; there can be one at most"),
        );
    }
    if of_pod > 0 && of_multus > 0 {
        problems.invalid(
            &path.at("networks"),
            "a default Multus network takes the place of the pod network: remove one of them",
        );
    }
}

/// Whether the pod's primary interface is on this network.
pub fn is_default(network: &Network) -> bool {
    network.pod.is_some() || is_multus_default(network)
}

fn is_multus_default(network: &Network) -> bool {
    network.multus.as_ref().is_some_and(|multus| multus.default == Some(true))
}

fn sources(network: &Network) -> usize {
    [network.pod.is_some(), network.multus.is_some(), network.resource_claim.is_some()]
        .into_iter()
        .filter(|set| *set)
        .count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::refused;

    #[test]
    fn every_network_has_one_source_and_the_pod_one_default() {
        let nad = |name: &str| json!({ "name": name, "multus": { "networkName": "lan" } });
        let default_nad =
            |name: &str| json!({ "name": name, "multus": { "networkName": "lan", "default": true } });
        let pod = |name: &str| json!({ "name": name, "pod": {} });
        let cases = [
            ("a pod network", json!([pod("a")]), &[][..]),
            ("a pod network beside Multus", json!([pod("a"), nad("b")]), &[]),
            ("only Multus", json!([nad("a"), nad("b")]), &[]),
            ("a default Multus network", json!([default_nad("a"), nad("b")]), &[]),
            ("two pod networks", json!([pod("a"), pod("b")]), &["spec.interfaces"]),
            ("two defaults", json!([default_nad("a"), default_nad("b")]), &["spec.networks"]),
            ("pod and default", json!([pod("a"), default_nad("b")]), &["spec.networks"]),
            ("no source", json!([{ "name": "a" }]), &["spec.networks[0]"]),
            (
                "two sources",
                json!([nad("a"), { "name": "b", "pod": {}, "multus": { "networkName": "lan" } }]),
                &["spec.networks[1]"],
            ),
            (
                "Multus without a name",
                json!([{ "name": "a", "multus": { "networkName": "" } }, { "name": "b", "multus": { "networkName": "" } }]),
                &["spec.networks[0]", "spec.networks[1]"],
            ),
        ];
        for (case, networks, expected) in cases {
            let names = networks.as_array().unwrap().iter();
            let interfaces: Vec<_> =
                names.map(|network| json!({ "name": network["name"], "bridge": {} })).collect();
            refused(
                case,
                json!({ "networks": networks, "domain": { "devices": { "interfaces": interfaces } } }),
                expected,
            );
        }
    }
}
