//! Networks whose devices are claimed from the cluster.

use std::collections::{HashMap, HashSet};

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::network::Interface;

use super::INTERFACES;
use crate::{Context, Gate, Path, Problems};

/// Checks that claimed networks are allowed, that their claims exist and that none is used twice.
pub fn check(cx: &Context<'_>, path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let networks = spec.networks.as_deref().unwrap_or_default();
    if !networks.iter().any(|network| network.resource_claim.is_some()) {
        return;
    }
    let list = path.at("networks");
    if !cx.config.enabled(Gate::NetworkDevicesWithDra) {
        problems
            .invalid(&list, "a network uses resourceClaim, but feature gate NetworkDevicesWithDRA is off");
        return;
    }
    if networks.iter().any(|network| network.multus.is_some()) {
        problems.invalid(&list, "networks of Multus and networks with a resourceClaim cannot be mixed");
    }

    let claims: HashSet<&str> =
        spec.resource_claims.iter().flatten().map(|claim| claim.name.as_str()).collect();
    let interfaces = first_by_name(spec.domain.devices.interfaces.as_deref().unwrap_or_default());
    let mut used = HashSet::new();
    for (index, network) in networks.iter().enumerate() {
        let Some(source) = &network.resource_claim else { continue };
        let interface = interfaces.get(network.name.as_str());
        if interface.is_some_and(|interface| interface.sriov.is_none() && interface.binding.is_none()) {
            problems.invalid(
                &path.at(INTERFACES),
                format!(
                    "interface {:?} joins a claimed network and needs sriov or a binding plugin",
                    network.name
                ),
            );
        }
        let path = list.index(index);
        let claim = source.claim_name.as_deref().unwrap_or_default();
        let request = source.request_name.as_deref().unwrap_or_default();
        if claim.is_empty() {
            problems.required(&path.at("resourceClaim.claimName"), "name the entry of resourceClaims to use");
        }
        if request.is_empty() {
            problems.required(&path.at("resourceClaim.requestName"), "name the request of the claim to use");
        }
        if claim.is_empty() || request.is_empty() {
            continue;
        }
        if !claims.contains(claim) {
            problems.not_found(
                &path.at("resourceClaim.claimName"),
                format!("there is no claim {claim:?} under resourceClaims"),
            );
        }
        if !used.insert((claim, request)) {
            problems.duplicate(
                &path,
                format!("another network uses request {request:?} of claim {claim:?} already"),
            );
        }
    }
}

fn first_by_name(interfaces: &[Interface]) -> HashMap<&str, &Interface> {
    let pairs = interfaces.iter().rev();
    pairs.map(|interface| (interface.name.as_str(), interface)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{refused, refused_in};
    use crate::testing::World;

    fn claimed(name: &str, claim: &str, request: &str) -> Value {
        json!({ "name": name, "resourceClaim": { "claimName": claim, "requestName": request } })
    }

    fn with(networks: Value, interfaces: Value) -> Value {
        json!({
            "networks": networks,
            "resourceClaims": [{ "name": "nics", "resourceClaimTemplateName": "nics" }],
            "domain": { "devices": { "interfaces": interfaces } },
        })
    }

    #[test]
    fn claimed_networks_need_their_gate() {
        let patch = with(json!([claimed("a", "", "")]), json!([{ "name": "a", "sriov": {} }]));
        refused("gate off", patch, &["spec.networks"]);
    }

    #[test]
    fn a_claimed_network_has_a_claim_of_its_own_and_a_fitting_interface() {
        let sriov = |name: &str| json!({ "name": name, "sriov": {} });
        let claim = "spec.networks[0].resourceClaim.claimName";
        let cases = [
            ("one", with(json!([claimed("a", "nics", "fast")]), json!([sriov("a")])), &[][..]),
            (
                "a plugin",
                with(
                    json!([claimed("a", "nics", "fast")]),
                    json!([{ "name": "a", "binding": { "name": "x" } }]),
                ),
                &[],
            ),
            (
                "beside the pod network",
                with(
                    json!([claimed("a", "nics", "fast"), { "name": "b", "pod": {} }]),
                    json!([sriov("a"), { "name": "b", "masquerade": {} }]),
                ),
                &[],
            ),
            (
                "two requests",
                with(
                    json!([claimed("a", "nics", "fast"), claimed("b", "nics", "slow")]),
                    json!([sriov("a"), sriov("b")]),
                ),
                &[],
            ),
            (
                "a request twice",
                with(
                    json!([claimed("a", "nics", "fast"), claimed("b", "nics", "fast")]),
                    json!([sriov("a"), sriov("b")]),
                ),
                &["spec.networks[1]"],
            ),
            (
                "with Multus",
                with(
                    json!([claimed("a", "nics", "fast"), { "name": "b", "multus": { "networkName": "lan" } }]),
                    json!([sriov("a"), { "name": "b", "bridge": {} }]),
                ),
                &["spec.networks"],
            ),
            (
                "a bridge",
                with(json!([claimed("a", "nics", "fast")]), json!([{ "name": "a", "bridge": {} }])),
                &["spec.domain.devices.interfaces"],
            ),
            ("an unknown claim", with(json!([claimed("a", "gpus", "fast")]), json!([sriov("a")])), &[claim]),
            ("no claim", with(json!([claimed("a", "", "fast")]), json!([sriov("a")])), &[claim]),
            (
                "no request",
                with(json!([claimed("a", "nics", "")]), json!([sriov("a")])),
                &["spec.networks[0].resourceClaim.requestName"],
            ),
            (
                "neither",
                with(json!([{ "name": "a", "resourceClaim": {} }]), json!([sriov("a")])),
                &[claim, "spec.networks[0].resourceClaim.requestName"],
            ),
        ];
        for (case, patch, expected) in cases {
            refused_in(&World::default().with_gates(&["NetworkDevicesWithDRA"]), case, patch, expected);
        }
    }
}
