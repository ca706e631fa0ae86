//! How presets are laid under an instance, and where they contradict each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::preset::VirtualMachineInstancePreset;
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::clock::Clock;
use kubevirt_api::vmi::domain::DomainSpec;

type Requests = BTreeMap<String, Quantity>;

/// Fills in what the instance leaves open; whether anything of the preset now holds for the instance.
pub fn fill(preset: &DomainSpec, domain: &mut DomainSpec) -> bool {
    let mut holds = false;
    if let Some(requests) = requests(preset) {
        let own = &mut domain.resources.get_or_insert_default().requests;
        holds |= same_requests(own.get_or_insert_with(|| requests.clone()), requests);
    }
    if let Some(clock) = &preset.clock {
        let offset = || Clock { utc: clock.utc.clone(), timezone: clock.timezone.clone(), timer: None };
        let own = domain.clock.get_or_insert_with(offset);
        holds |= fill_one(&clock.timer, &mut own.timer) || own == clock;
    }
    holds |= fill_one(&preset.cpu, &mut domain.cpu);
    holds |= fill_one(&preset.firmware, &mut domain.firmware);
    holds |= fill_one(&preset.features, &mut domain.features);
    holds |= fill_one(&preset.devices.watchdog, &mut domain.devices.watchdog);
    holds |= fill_one(&preset.io_threads_policy, &mut domain.io_threads_policy);
    holds
}

fn fill_one<T: Clone + PartialEq>(preset: &Option<T>, own: &mut Option<T>) -> bool {
    preset.as_ref().is_some_and(|preset| own.get_or_insert_with(|| preset.clone()) == preset)
}

/// What presets do not agree on, a sentence for each preset that differs from an earlier one.
pub fn conflicts(presets: &[Arc<VirtualMachineInstancePreset>]) -> Vec<String> {
    let all: Vec<(&str, &DomainSpec)> = presets
        .iter()
        .filter_map(|preset| {
            Some((preset.metadata.name.as_deref().unwrap_or_default(), preset.spec.domain.as_ref()?))
        })
        .collect();
    let mut found = Vec::new();
    compare(&mut found, "cpu", &all, |domain| domain.cpu.as_ref());
    compare(&mut found, "firmware", &all, |domain| domain.firmware.as_ref());
    compare(&mut found, "features", &all, |domain| domain.features.as_ref());
    compare(&mut found, "devices.watchdog", &all, |domain| domain.devices.watchdog.as_ref());
    compare(&mut found, "ioThreadsPolicy", &all, |domain| domain.io_threads_policy.as_ref());
    compare(&mut found, "clock", &all, |domain| {
        domain.clock.as_ref().map(|clock| (&clock.utc, &clock.timezone))
    });
    compare(&mut found, "clock.timer", &all, |domain| domain.clock.as_ref()?.timer.as_ref());
    compare_requests(&mut found, &all);
    found
}

fn compare<'a, T: PartialEq>(
    found: &mut Vec<String>,
    field: &str,
    all: &[(&'a str, &'a DomainSpec)],
    part: impl Fn(&'a DomainSpec) -> Option<T>,
) {
    let mut parts = all.iter().filter_map(|(name, domain)| Some((name, part(domain)?)));
    let Some((first, value)) = parts.next() else { return };
    found.extend(parts.filter(|(_, other)| *other != value).map(|(name, _)| conflict(first, name, field)));
}

fn compare_requests(found: &mut Vec<String>, all: &[(&str, &DomainSpec)]) {
    let mut first: BTreeMap<&str, (&str, &Quantity)> = BTreeMap::new();
    for (name, domain) in all {
        for (resource, quantity) in requests(domain).into_iter().flatten() {
            let (holder, value) = first.entry(resource.as_str()).or_insert((name, quantity));
            if !same(value, quantity) {
                found.push(conflict(holder, name, &format!("resources.requests[{resource}]")));
            }
        }
    }
}

fn conflict(one: &str, other: &str, field: &str) -> String {
    format!(
        "presets {one:?} and {other:?} both match and differ in {field}: change one of them, or the labels of the instance"
    )
}

fn requests(domain: &DomainSpec) -> Option<&Requests> {
    domain.resources.as_ref()?.requests.as_ref().filter(|requests| !requests.is_empty())
}

fn same_requests(one: &Requests, other: &Requests) -> bool {
    let alike = |(resource, quantity): (&String, &Quantity)| {
        other.get(resource).is_some_and(|other| same(quantity, other))
    };
    one.len() == other.len() && one.iter().all(alike)
}

/// Whether two quantities are the same amount, however they are written.
fn same(one: &Quantity, other: &Quantity) -> bool {
    one == other || matches!((one.amount(), other.amount()), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{patched, read, shared};

    fn domain(patch: &Value) -> DomainSpec {
        read(patched(&json!({ "devices": {} }), patch))
    }

    #[test]
    fn a_preset_fills_in_whole_parts() {
        let timer = json!({ "timer": { "hpet": {} } });
        let zone = json!({ "timezone": "Europe/Berlin" });
        let both = patched(&zone, &timer);
        let requests = |memory: &str| json!({ "resources": { "requests": { "memory": memory } } });
        // The preset, the instance, what becomes of it, and whether the preset holds.
        let cases = [
            (json!({ "cpu": { "cores": 2 } }), json!({}), json!({ "cpu": { "cores": 2 } }), true),
            (
                json!({ "cpu": { "cores": 2 } }),
                json!({ "cpu": { "cores": 2 } }),
                json!({ "cpu": { "cores": 2 } }),
                true,
            ),
            (
                json!({ "cpu": { "cores": 2 } }),
                json!({ "cpu": { "threads": 2 } }),
                json!({ "cpu": { "threads": 2 } }),
                false,
            ),
            (
                json!({ "firmware": { "serial": "x" } }),
                json!({}),
                json!({ "firmware": { "serial": "x" } }),
                true,
            ),
            (json!({ "features": { "acpi": {} } }), json!({}), json!({ "features": { "acpi": {} } }), true),
            (json!({ "ioThreadsPolicy": "auto" }), json!({}), json!({ "ioThreadsPolicy": "auto" }), true),
            (
                json!({ "ioThreadsPolicy": "auto" }),
                json!({ "ioThreadsPolicy": "shared" }),
                json!({ "ioThreadsPolicy": "shared" }),
                false,
            ),
            (
                json!({ "devices": { "watchdog": { "name": "w" } } }),
                json!({}),
                json!({ "devices": { "watchdog": { "name": "w" } } }),
                true,
            ),
            (requests("1Gi"), json!({}), requests("1Gi"), true),
            (requests("1Gi"), requests("1024Mi"), requests("1024Mi"), true),
            (requests("1Gi"), requests("2Gi"), requests("2Gi"), false),
            (json!({ "clock": both }), json!({}), json!({ "clock": both }), true),
            (json!({ "clock": both }), json!({ "clock": zone }), json!({ "clock": both }), true),
            (
                json!({ "clock": zone }),
                json!({ "clock": { "timezone": "UTC" } }),
                json!({ "clock": { "timezone": "UTC" } }),
                false,
            ),
            (json!({ "machine": { "type": "q35" } }), json!({}), json!({}), false),
        ];
        for (preset, own, expected, holds) in cases {
            let mut own = domain(&own);
            assert_eq!(fill(&domain(&preset), &mut own), holds, "{preset}");
            assert_eq!(own, domain(&expected), "{preset}");
        }
    }

    #[test]
    fn presets_conflict_where_they_both_say_something_else() {
        let requests = |memory: &str| json!({ "resources": { "requests": { "memory": memory } } });
        let cases = [
            (json!({ "cpu": { "cores": 2 } }), json!({ "cpu": { "cores": 2 } }), 0),
            (json!({ "cpu": { "cores": 2 } }), json!({ "cpu": { "cores": 3 } }), 1),
            (json!({ "cpu": { "cores": 2 } }), json!({ "firmware": { "serial": "x" } }), 0),
            (json!({ "firmware": { "serial": "y" } }), json!({ "firmware": { "serial": "x" } }), 1),
            (json!({ "features": { "acpi": {} } }), json!({ "features": {} }), 1),
            (json!({ "ioThreadsPolicy": "auto" }), json!({ "ioThreadsPolicy": "shared" }), 1),
            (
                json!({ "devices": { "watchdog": { "name": "a" } } }),
                json!({ "devices": { "watchdog": { "name": "b" } } }),
                1,
            ),
            (requests("1Gi"), requests("1024Mi"), 0),
            (requests("1Gi"), requests("2Gi"), 1),
            (json!({ "clock": { "timezone": "A" } }), json!({ "clock": { "timezone": "B" } }), 1),
            (
                json!({ "clock": { "timer": { "kvm": {} } } }),
                json!({ "clock": { "timer": { "pit": {} } } }),
                1,
            ),
            (json!({ "clock": { "timer": { "kvm": {} } } }), json!({ "clock": {} }), 0),
            (json!({ "machine": { "type": "a" } }), json!({ "machine": { "type": "b" } }), 0),
        ];
        for (one, other, count) in cases {
            let preset = |name: &str, patch: &Value| {
                shared(
                    json!({ "metadata": { "name": name }, "spec": { "selector": {}, "domain": domain(patch) } }),
                )
            };
            let found = conflicts(&[preset("a", &one), preset("b", &other)]);
            assert_eq!(found.len(), count, "{one} {other}: {found:?}");
        }
    }
}
