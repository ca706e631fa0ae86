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
        && nonzero(request(resources, "cpu")).is_none()
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

/// The quantity unless it is zero or cannot be read.
pub fn nonzero(quantity: Option<&Quantity>) -> Option<&Quantity> {
    quantity.filter(|quantity| quantity.amount().is_ok_and(|amount| !amount.is_zero()))
}
