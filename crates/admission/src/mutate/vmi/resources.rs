//! The CPU that a launcher asks the node for.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::quantity::{Amount, QuantityExt};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::memory::ResourceRequirements;

use crate::ClusterConfig;

/// What the cluster asks for if its administrator does not say; then nothing is written into instances.
const USUAL_CPU_REQUEST: Amount = Amount::from_milli(100);

/// Takes the CPU request from the limit, or else from the cluster if it has a setting of its own.
pub fn set(config: &ClusterConfig, spec: &mut VirtualMachineInstanceSpec) {
    let resources = spec.domain.resources.as_ref();
    if let Some(limit) = nonzero(limit(resources, "cpu"))
        && request(resources, "cpu").is_none_or(is_zero)
    {
        let limit = limit.clone();
        request_cpu(spec, limit);
        return;
    }
    let own =
        config.cpu_request().filter(|quantity| quantity.amount().is_ok_and(|own| own != USUAL_CPU_REQUEST));
    let dedicated = spec.domain.cpu.as_ref().is_some_and(|cpu| cpu.dedicated_cpu_placement == Some(true));
    if let Some(own) = own
        && request(resources, "cpu").is_none()
        && !dedicated
    {
        request_cpu(spec, own.clone());
    }
}

fn request_cpu(spec: &mut VirtualMachineInstanceSpec, quantity: Quantity) {
    let resources = spec.domain.resources.get_or_insert_default();
    resources.requests.get_or_insert_default().insert("cpu".to_owned(), quantity);
}

/// What is requested of a resource.
pub fn request<'a>(resources: Option<&'a ResourceRequirements>, name: &str) -> Option<&'a Quantity> {
    resources?.requests.as_ref()?.get(name)
}

/// The limit of a resource.
pub fn limit<'a>(resources: Option<&'a ResourceRequirements>, name: &str) -> Option<&'a Quantity> {
    resources?.limits.as_ref()?.get(name)
}

fn is_zero(quantity: &Quantity) -> bool {
    quantity.amount().is_ok_and(Amount::is_zero)
}

/// The quantity unless it is zero or cannot be read.
pub fn nonzero(quantity: Option<&Quantity>) -> Option<&Quantity> {
    quantity.filter(|quantity| quantity.amount().is_ok_and(|amount| !amount.is_zero()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, read};

    #[test]
    fn the_cpu_request_follows_the_limit_or_the_cluster() {
        let resources = |limit: Value, request: Value| json!({ "limits": { "cpu": limit }, "requests": { "cpu": request } });
        let none = json!({});
        let limit = json!({ "limits": { "cpu": "2" } });
        let cases = [
            ("100m", &none, None),
            ("100m", &limit, Some("2")),
            ("100m", &resources(json!("2"), json!("1")), Some("1")),
            ("100m", &resources(json!("2"), json!("0")), Some("2")),
            ("100m", &resources(json!("2"), json!("some")), Some("some")),
            ("100m", &resources(json!("0"), json!("1")), Some("1")),
            ("100m", &json!({ "limits": { "cpu": "0" } }), None),
            ("100m", &json!({ "limits": { "cpu": "some" } }), None),
            ("0.1", &none, None),
            ("1", &none, Some("1")),
            ("1", &limit, Some("2")),
            ("1", &json!({ "requests": { "cpu": "3" } }), Some("3")),
            ("1", &json!({ "requests": { "memory": "3Gi" } }), Some("1")),
        ];
        for (cluster, resources, expected) in cases {
            let world = World::default().with_configuration(json!({ "cpuRequest": cluster }));
            let mut spec: VirtualMachineInstanceSpec =
                read(json!({ "domain": { "devices": {}, "resources": resources } }));
            set(&world.config, &mut spec);
            let found = request(spec.domain.resources.as_ref(), "cpu").map(|found| found.0.as_str());
            assert_eq!(found, expected, "{cluster} {resources}");
        }
    }
}
