//! Requests and limits: readable quantities, none below zero, and no request above its limit.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::quantity::{Amount, QuantityExt};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::domain::DomainSpec;

use crate::mutate::vmi::resources::{limit, request};
use crate::{Path, Problems};

/// What an instance asks of its node; nothing where a quantity is absent or unreadable.
pub(super) struct Asked {
    pub cpu_request: Amount,
    pub cpu_limit: Amount,
    pub memory_request: Amount,
    pub memory_limit: Amount,
}

impl Asked {
    pub(super) fn of(domain: &DomainSpec) -> Self {
        let resources = domain.resources.as_ref();
        let amount =
            |quantity: Option<&Quantity>| quantity.and_then(|it| it.amount().ok()).unwrap_or_default();
        Self {
            cpu_request: amount(request(resources, "cpu")),
            cpu_limit: amount(limit(resources, "cpu")),
            memory_request: amount(request(resources, "memory")),
            memory_limit: amount(limit(resources, "memory")),
        }
    }
}

/// Whether some memory is requested, be it in a quantity that cannot be read.
pub(super) fn memory_is_requested(domain: &DomainSpec) -> bool {
    is_given(request(domain.resources.as_ref(), "memory"))
}

/// Whether memory is limited, be it by a quantity that cannot be read.
pub(super) fn memory_is_limited(domain: &DomainSpec) -> bool {
    is_given(limit(domain.resources.as_ref(), "memory"))
}

fn is_given(quantity: Option<&Quantity>) -> bool {
    quantity.is_some_and(|quantity| quantity.amount() != Ok(Amount::zero()))
}

/// Adds a problem if the quantity cannot be read.
pub(super) fn check_readable(path: &Path<'_>, quantity: Option<&Quantity>, problems: &mut Problems) {
    if let Some(Err(reason)) = quantity.map(QuantityExt::amount) {
        problems.invalid(path, format!("{reason}; write a number such as 2, 500m or 1Gi"));
    }
}

/// Everything that is wrong.
pub(super) fn check(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let Some(resources) = &spec.domain.resources else { return };
    let at_requests = path.at("domain.resources.requests");
    let at_limits = path.at("domain.resources.limits");
    for (list, at) in [(&resources.requests, &at_requests), (&resources.limits, &at_limits)] {
        for (name, quantity) in list.iter().flatten() {
            check_readable(&at.at(name), Some(quantity), problems);
        }
    }

    let asked = Asked::of(&spec.domain);
    for (name, request, limit) in
        [("cpu", asked.cpu_request, asked.cpu_limit), ("memory", asked.memory_request, asked.memory_limit)]
    {
        for (amount, at) in [(request, &at_requests), (limit, &at_limits)] {
            if amount.is_negative() {
                problems.invalid(&at.at(name), format!("{name} cannot be less than 0"));
            }
        }
        // CPU counts in thousandths, memory in bytes; a part of either counts as a whole one.
        let exceeds = match name {
            "cpu" => request.milli_value() > limit.milli_value(),
            _ => request.value() > limit.value(),
        };
        if limit > Amount::zero() && exceeds {
            let message = format!("more {name} is requested than the limit allows; raise the limit");
            problems.invalid(&at_requests.at(name), message);
        }
    }
    let smallest = Amount::from_int(1_000_000);
    if asked.memory_request > Amount::zero() && asked.memory_request < smallest {
        let message = "less than 1M of memory is requested; no guest runs in that";
        problems.invalid(&at_requests.at("memory"), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::run_domain;
    use crate::testing::World;

    fn asked(requests: &Value, limits: &Value) -> Value {
        json!({ "resources": { "requests": requests, "limits": limits } })
    }

    #[test]
    fn requests_and_limits_are_readable_and_in_order() {
        let cpu_request = "spec.domain.resources.requests.cpu";
        let cpu_limit = "spec.domain.resources.limits.cpu";
        let memory_request = "spec.domain.resources.requests.memory";
        let memory_limit = "spec.domain.resources.limits.memory";
        let none = json!({});
        run_domain(
            &World::default(),
            &[
                ("cpu", asked(&json!({ "cpu": "500m" }), &json!({ "cpu": "1" })), &[]),
                ("equal cpu", asked(&json!({ "cpu": "1000m" }), &json!({ "cpu": "1" })), &[]),
                ("no cpu limit", asked(&json!({ "cpu": "2" }), &json!({ "cpu": "0" })), &[]),
                (
                    "cpu above limit",
                    asked(&json!({ "cpu": "1100m" }), &json!({ "cpu": "1" })),
                    &[cpu_request],
                ),
                ("negative cpu", asked(&json!({ "cpu": "-1" }), &none), &[cpu_request]),
                ("negative cpu limit", asked(&none, &json!({ "cpu": "-200m" })), &[cpu_limit]),
                ("unreadable cpu", asked(&json!({ "cpu": "lots" }), &none), &[cpu_request]),
                (
                    "unreadable other",
                    asked(&json!({ "example.com/x": "?" }), &none),
                    &["spec.domain.resources.requests.example.com/x"],
                ),
                ("memory", asked(&json!({ "memory": "64Mi" }), &json!({ "memory": "64Mi" })), &[]),
                (
                    "memory above limit",
                    asked(&json!({ "memory": "65Mi" }), &json!({ "memory": "64Mi" })),
                    &[memory_request],
                ),
                ("negative memory", asked(&json!({ "memory": "-64Mi" }), &none), &[memory_request]),
                ("negative memory limit", asked(&none, &json!({ "memory": "-64Mi" })), &[memory_limit]),
                ("unreadable memory limit", asked(&none, &json!({ "memory": "64MiB" })), &[memory_limit]),
                ("smallest memory", asked(&json!({ "memory": "1M" }), &none), &[]),
                ("tiny memory", asked(&json!({ "memory": "999k" }), &none), &[memory_request]),
                ("no memory", asked(&json!({ "memory": "0" }), &none), &[]),
                (
                    "several at once",
                    asked(&json!({ "memory": "1k", "cpu": "-1" }), &json!({ "memory": "x" })),
                    &[memory_request, cpu_request, memory_limit],
                ),
            ],
        );
    }
}
