//! Devices from resource claims: the claims themselves, and the GPUs and host devices that use them.

use std::collections::{BTreeMap, HashSet};

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::host_devices::{Gpu, HostDevice, ResourceClaim};

use crate::validate::names::{DNS_LABEL, DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain};
use crate::{Context, Gate, Path, Problems};

/// What a claim is asked for: its name and the request in it.
type Request<'a> = (&'a str, &'a str);

/// A GPU or a host device, as far as claims are concerned.
struct Device<'a> {
    resource: &'a str,
    claim: Option<&'a str>,
    request: Option<&'a str>,
}

impl Device<'_> {
    /// Whether anything of a claim is named, be it an empty name.
    fn names_claim(&self) -> bool {
        self.claim.is_some() || self.request.is_some()
    }

    fn is_from_claim(&self) -> bool {
        self.resource.is_empty() && self.names_claim()
    }
}

impl<'a> From<&'a Gpu> for Device<'a> {
    fn from(gpu: &'a Gpu) -> Self {
        Self {
            resource: gpu.device_name.as_deref().unwrap_or_default(),
            claim: gpu.claim_name.as_deref(),
            request: gpu.request_name.as_deref(),
        }
    }
}

impl<'a> From<&'a HostDevice> for Device<'a> {
    fn from(device: &'a HostDevice) -> Self {
        Self {
            resource: device.device_name.as_deref().unwrap_or_default(),
            claim: device.claim_name.as_deref(),
            request: device.request_name.as_deref(),
        }
    }
}

/// Everything that is wrong.
pub(super) fn check(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let claims = spec.resource_claims.as_deref().unwrap_or_default();
    check_claims(&path.at("resourceClaims"), claims, problems);

    let devices = &spec.domain.devices;
    let gpus: Vec<Device<'_>> = devices.gpus.iter().flatten().map(Device::from).collect();
    let hosts: Vec<Device<'_>> = devices.host_devices.iter().flatten().map(Device::from).collect();
    let at_gpus = path.at("domain.devices.gpus");
    let at_hosts = path.at("domain.devices.hostDevices");
    let at_networks = path.at("networks");

    let from_claims = gpus.iter().filter(|gpu| gpu.is_from_claim()).count();
    let mixed = from_claims > 0 && from_claims < gpus.len();
    let mut by_gpus = BTreeMap::new();
    if mixed {
        let message = "GPUs come either all from claims or all from device plugins";
        problems.invalid(&at_gpus, message);
    } else {
        by_gpus = check_devices(cx, &at_gpus, &gpus, Gate::GpusWithDra, problems);
    }
    let by_hosts = check_devices(cx, &at_hosts, &hosts, Gate::HostDevicesWithDra, problems);
    let by_networks = network_requests(cx, spec);

    let known: HashSet<&str> = claims.iter().map(|claim| claim.name.as_str()).collect();
    let used = by_gpus.keys().chain(by_hosts.keys()).map(|(claim, _)| *claim);
    if let Some(claim) = used.into_iter().find(|claim| !known.contains(claim)) {
        let message = format!("a device uses the claim {claim:?}, which is not listed here");
        problems.invalid(&path.at("resourceClaims"), message);
    }

    let mut taken = HashSet::new();
    for (field, requests) in [(&at_gpus, by_gpus), (&at_hosts, by_hosts), (&at_networks, by_networks)] {
        for ((claim, request), index) in requests {
            if !taken.insert((claim, request)) {
                let message = format!("request {request:?} of claim {claim:?} is used by another device too");
                problems.duplicate(&field.index(index), message);
            }
        }
    }
}

fn check_claims(field: &Path<'_>, claims: &[ResourceClaim], problems: &mut Problems) {
    let mut names = HashSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let field = field.index(index);
        let name = claim.name.as_str();
        if name.is_empty() {
            problems.required(&field.at("name"), "a claim needs a name that devices refer to it by");
        } else if !names.insert(name) {
            problems.duplicate(&field.at("name"), format!("another claim is named {name:?} too"));
        } else if !is_dns_label(name) {
            problems.invalid(&field.at("name"), format!("{name:?} is not a DNS label: {DNS_LABEL}"));
        }
        let (existing, template) = (&claim.resource_claim_name, &claim.resource_claim_template_name);
        if existing.is_some() == template.is_some() {
            problems.invalid(&field, "set either resourceClaimName or resourceClaimTemplateName");
        }
        for (at, name) in [("resourceClaimName", existing), ("resourceClaimTemplateName", template)] {
            if let Some(name) = name.as_deref().filter(|name| !is_dns_subdomain(name)) {
                problems.invalid(&field.at(at), format!("{name:?} cannot name an object: {DNS_SUBDOMAIN}"));
            }
        }
    }
}

/// Checks devices of one kind; what they ask of claims, each with the first device that does.
fn check_devices<'a>(
    cx: &Context<'_>,
    field: &Path<'_>,
    devices: &[Device<'a>],
    gate: Gate,
    problems: &mut Problems,
) -> BTreeMap<Request<'a>, usize> {
    for (index, device) in devices.iter().enumerate().filter(|(_, device)| !device.is_from_claim()) {
        if device.resource.is_empty() {
            let message = format!("device {index} names neither a deviceName nor a claim");
            problems.required(field, message);
        } else if device.names_claim() {
            let message = format!("device {index} names both a deviceName and a claim; remove one");
            problems.invalid(field, message);
        }
    }
    let mut requests = BTreeMap::new();
    let from_claims = || devices.iter().enumerate().filter(|(_, device)| device.is_from_claim());
    if from_claims().next().is_some() && !cx.config.enabled(gate) {
        let message = format!("devices from claims need the feature gate {}, which is off", gate.name());
        problems.invalid(field, message);
        return requests;
    }
    for (index, device) in from_claims() {
        let field = field.index(index);
        let claim = device.claim.unwrap_or_default();
        let request = device.request.unwrap_or_default();
        for (name, value) in [("claimName", claim), ("requestName", request)] {
            if value.is_empty() {
                problems.required(&field.at(name), "a device from a claim needs claimName and requestName");
            }
        }
        if claim.is_empty() || request.is_empty() {
            continue;
        }
        if requests.contains_key(&(claim, request)) {
            let message = format!("request {request:?} of claim {claim:?} is used by another device too");
            problems.duplicate(&field, message);
        }
        requests.entry((claim, request)).or_insert(index);
    }
    requests
}

fn network_requests<'a>(
    cx: &Context<'_>,
    spec: &'a VirtualMachineInstanceSpec,
) -> BTreeMap<Request<'a>, usize> {
    let mut requests = BTreeMap::new();
    if !cx.config.enabled(Gate::NetworkDevicesWithDra) {
        return requests;
    }
    for (index, network) in spec.networks.iter().flatten().enumerate() {
        let source = network.resource_claim.as_ref();
        let claim = source.and_then(|source| source.claim_name.as_deref()).unwrap_or_default();
        let request = source.and_then(|source| source.request_name.as_deref()).unwrap_or_default();
        if !claim.is_empty() && !request.is_empty() {
            requests.entry((claim, request)).or_insert(index);
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{reasons, run};
    use crate::Reason;
    use crate::testing::World;

    fn claims(claims: Value) -> Value {
        json!({ "resourceClaims": claims })
    }

    #[test]
    fn claims_are_named_and_have_one_source() {
        let of = |name: &str| json!({ "name": name, "resourceClaimName": "x" });
        run(
            &World::default(),
            &[
                ("claim", claims(json!([of("a"), { "name": "b", "resourceClaimTemplateName": "x" }])), &[]),
                ("nameless", claims(json!([of("")])), &["spec.resourceClaims[0].name"]),
                ("twice", claims(json!([of("a"), of("a")])), &["spec.resourceClaims[1].name"]),
                ("bad name", claims(json!([of("a.b")])), &["spec.resourceClaims[0].name"]),
                ("no source", claims(json!([{ "name": "a" }])), &["spec.resourceClaims[0]"]),
                (
                    "two sources",
                    claims(
                        json!([{ "name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y" }]),
                    ),
                    &["spec.resourceClaims[0]"],
                ),
                (
                    "bad source",
                    claims(json!([{ "name": "a", "resourceClaimName": "X" }])),
                    &["spec.resourceClaims[0].resourceClaimName"],
                ),
                (
                    "bad template",
                    claims(json!([{ "name": "a", "resourceClaimTemplateName": "" }])),
                    &["spec.resourceClaims[0].resourceClaimTemplateName"],
                ),
            ],
        );
        let world = World::default();
        assert_eq!(reasons(&world, &claims(json!([of("")]))), [Reason::Required]);
        assert_eq!(reasons(&world, &claims(json!([of("a"), of("a")]))), [Reason::Duplicate]);
    }

    #[test]
    fn gpus_come_from_claims_or_from_plugins() {
        let with = |gpus: Value| {
            json!({
                "domain": { "devices": { "gpus": gpus } },
                "resourceClaims": [{ "name": "c", "resourceClaimName": "x" }],
            })
        };
        let plugin = json!({ "name": "p", "deviceName": "example.com/gpu" });
        let claim =
            |name: &str, request: &str| json!({ "name": "g", "claimName": name, "requestName": request });
        let at = "spec.domain.devices.gpus";
        run(
            &World::default(),
            &[
                ("plugin", with(json!([plugin])), &[]),
                ("claim", with(json!([claim("c", "r")])), &[]),
                ("mixed", with(json!([plugin, claim("c", "r")])), &[at]),
                ("neither", with(json!([{ "name": "g" }])), &[at]),
                (
                    "both",
                    with(json!([{ "name": "g", "deviceName": "d", "claimName": "c", "requestName": "r" }])),
                    &[at],
                ),
                ("no claim name", with(json!([claim("", "r")])), &["spec.domain.devices.gpus[0].claimName"]),
                (
                    "no request name",
                    with(json!([{ "name": "g", "claimName": "c" }])),
                    &["spec.domain.devices.gpus[0].requestName"],
                ),
                ("unlisted claim", with(json!([claim("d", "r")])), &["spec.resourceClaims"]),
                (
                    "same request",
                    with(json!([claim("c", "r"), claim("c", "r")])),
                    &["spec.domain.devices.gpus[1]"],
                ),
                ("other request", with(json!([claim("c", "r"), claim("c", "s")])), &[]),
            ],
        );
        let off = World::default().with_configuration(
            json!({ "developerConfiguration": { "disabledFeatureGates": ["GPUsWithDRA"] } }),
        );
        run(&off, &[("gate off", with(json!([claim("c", "r")])), &[at])]);
    }

    #[test]
    fn host_devices_and_networks_share_the_claims() {
        let device = |name: &str| json!({ "name": "h", "claimName": name, "requestName": "r" });
        let with = |devices: Value, gpus: Value, networks: Value| {
            json!({
                "domain": { "devices": { "hostDevices": devices, "gpus": gpus } },
                "networks": networks,
                "resourceClaims": [{ "name": "c", "resourceClaimName": "x" }],
            })
        };
        let none = json!([]);
        let network = json!([{ "name": "n", "resourceClaim": { "claimName": "c", "requestName": "r" } }]);
        let plugin = json!({ "name": "p", "deviceName": "example.com/device" });
        let at = "spec.domain.devices.hostDevices";
        run(
            &World::default().with_gates(&["HostDevices", "NetworkDevicesWithDRA"]),
            &[
                ("claim", with(json!([device("c")]), none.clone(), none.clone()), &[]),
                ("mixed", with(json!([device("c"), plugin]), none.clone(), none.clone()), &[]),
                ("neither", with(json!([{ "name": "h" }]), none.clone(), none.clone()), &[at]),
                (
                    "unlisted",
                    with(json!([device("d")]), none.clone(), none.clone()),
                    &["spec.resourceClaims"],
                ),
                (
                    "also a gpu",
                    with(json!([device("c")]), json!([device("c")]), none.clone()),
                    &["spec.domain.devices.hostDevices[0]"],
                ),
                (
                    "also a network",
                    with(json!([device("c")]), none.clone(), network.clone()),
                    &["spec.networks[0]"],
                ),
                ("only a network", with(none.clone(), none.clone(), network.clone()), &[]),
            ],
        );
        run(
            &World::default().with_gates(&["HostDevices"]),
            &[("network gate off", with(json!([device("c")]), none, network), &[])],
        );
    }
}
