//! Rules for `VirtualMachinePool`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubevirt_api::pool::{VirtualMachinePool, VirtualMachinePoolSpec};

use super::same::same;
use super::vmi_spec::domain::discontinued;
use super::{labels, vm};
use crate::{Context, Path, Problems};

/// Everything that is wrong with a pool.
pub fn check(cx: &Context<'_>, new: &VirtualMachinePool, old: Option<&VirtualMachinePool>) -> Problems {
    let mut problems = Problems::default();
    let path = Path::new("spec");
    let template = &new.spec.virtual_machine_template;

    match &template.spec {
        Some(spec) => {
            let vmi = spec.template.spec.clone().unwrap_or_default();
            vm::check_spec(cx, &path.at("virtualMachineTemplate.spec"), spec, &vmi, &mut problems);
            if old.is_none() {
                discontinued::check(cx, &vmi, &mut problems);
            }
        }
        None => problems.required(
            &path.at("virtualMachineTemplate.spec.template"),
            "is missing: it describes the instances of the pool's machines",
        ),
    }
    check_selector(&path.at("selector"), &new.spec, &mut problems);
    if let Some(limit) = &new.spec.max_unavailable {
        check_max_unavailable(&path.at("maxUnavailable"), limit, &mut problems);
    }
    check_strategies(&path, &new.spec, &mut problems);
    if old.is_some_and(|old| !same(&old.spec.selector, &new.spec.selector)) {
        problems
            .invalid(&path.at("selector"), "cannot be changed once the pool exists; make a new pool instead");
    }
    problems
}

fn check_selector(path: &Path<'_>, spec: &VirtualMachinePoolSpec, problems: &mut Problems) {
    let metadata = spec.virtual_machine_template.metadata.as_ref();
    match labels::matches(&spec.selector, metadata.and_then(|metadata| metadata.labels.as_ref())) {
        Ok(true) => {}
        Ok(false) => problems.invalid(
            path,
            "selector does not match labels of spec.virtualMachineTemplate.metadata; \
             the pool would never find its own machines",
        ),
        Err(problem) => problems.invalid(path, problem),
    }
}

fn check_max_unavailable(path: &Path<'_>, limit: &IntOrString, problems: &mut Problems) {
    match limit {
        IntOrString::Int(count) if *count <= 0 => {
            problems.invalid(path, format!("is {count}, but at least 1 machine must be allowed to be down"));
        }
        IntOrString::Int(_) => {}
        IntOrString::String(text) => {
            let percentage = text.strip_suffix('%').and_then(|number| number.parse::<i64>().ok());
            if !percentage.is_some_and(|percentage| (1..=100).contains(&percentage)) {
                problems
                    .invalid(path, format!("{text:?} is neither a count nor a percentage from 1% to 100%"));
            }
        }
    }
}

/// Each of the two strategies is one of three.
fn check_strategies(path: &Path<'_>, spec: &VirtualMachinePoolSpec, problems: &mut Problems) {
    let update = spec.update_strategy.as_ref().map(|strategy| {
        [strategy.unmanaged.is_some(), strategy.opportunistic.is_some(), strategy.proactive.is_some()]
    });
    let scale_in = spec.scale_in_strategy.as_ref().map(|strategy| {
        [strategy.unmanaged.is_some(), strategy.opportunistic.is_some(), strategy.proactive.is_some()]
    });
    for (field, set) in [("updateStrategy", update), ("scaleInStrategy", scale_in)] {
        if set.is_some_and(|set| set.iter().filter(|set| **set).count() > 1) {
            problems.invalid(&path.at(field), "set only one of unmanaged, opportunistic and proactive");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::World;

    fn base() -> Value {
        json!({
            "metadata": { "name": "pool", "namespace": "default" },
            "spec": {
                "selector": { "matchLabels": { "pool": "a" } },
                "virtualMachineTemplate": {
                    "metadata": { "labels": { "pool": "a" } },
                    "spec": {
                        "runStrategy": "Always",
                        "template": { "spec": {
                            "architecture": "amd64",
                            "domain": { "memory": { "guest": "1Gi" }, "machine": { "type": "q35" }, "devices": {} },
                        } },
                    },
                },
            },
        })
    }

    #[test]
    fn rules_of_a_new_pool() {
        let limit = |value: Value| json!({ "spec": { "maxUnavailable": value } });
        let down = &["spec.maxUnavailable"][..];
        let cases = [
            ("as it is", json!({}), &[][..]),
            (
                "no machine",
                json!({ "spec": { "virtualMachineTemplate": { "spec": null } } }),
                &["spec.virtualMachineTemplate.spec.template"],
            ),
            (
                "no run strategy",
                json!({ "spec": { "virtualMachineTemplate": { "spec": { "runStrategy": null } } } }),
                &["spec.virtualMachineTemplate.spec.running"],
            ),
            (
                "both ways to run, and an unknown one",
                json!({ "spec": { "virtualMachineTemplate": { "spec": { "running": true, "runStrategy": "Now" } } } }),
                &["spec.virtualMachineTemplate.spec.running", "spec.virtualMachineTemplate.spec.runStrategy"],
            ),
            (
                "reserved label on the instances",
                json!({ "spec": { "virtualMachineTemplate": { "spec": { "template": {
                    "metadata": { "labels": { "kubevirt.io/created-by": "me" } },
                } } } } }),
                &["spec.virtualMachineTemplate.spec.template.metadata.labels"],
            ),
            (
                "more sockets than it can have",
                json!({ "spec": { "virtualMachineTemplate": { "spec": { "template": { "spec": {
                    "domain": { "cpu": { "sockets": 4, "maxSockets": 2 } },
                } } } } } }),
                &["spec.virtualMachineTemplate.spec.template.spec.domain.cpu.sockets"],
            ),
            (
                "other labels",
                json!({ "spec": { "selector": { "matchLabels": { "pool": "b" } } } }),
                &["spec.selector"],
            ),
            (
                "bad selector",
                json!({ "spec": { "selector": { "matchLabels": { "-": "b" } } } }),
                &["spec.selector"],
            ),
            ("1 down", limit(json!(1)), &[]),
            ("0 down", limit(json!(0)), down),
            ("-1 down", limit(json!(-1)), down),
            ("1% down", limit(json!("1%")), &[]),
            ("100% down", limit(json!("100%")), &[]),
            ("0% down", limit(json!("0%")), down),
            ("101% down", limit(json!("101%")), down),
            ("no number", limit(json!("many%")), down),
            ("only a sign", limit(json!("%")), down),
            ("number as text", limit(json!("5")), down),
            ("one update strategy", json!({ "spec": { "updateStrategy": { "proactive": {} } } }), &[]),
            (
                "two update strategies",
                json!({ "spec": { "updateStrategy": { "proactive": {}, "unmanaged": {} } } }),
                &["spec.updateStrategy"],
            ),
            ("one scale-in strategy", json!({ "spec": { "scaleInStrategy": { "opportunistic": {} } } }), &[]),
            (
                "three scale-in strategies",
                json!({ "spec": { "scaleInStrategy": { "proactive": {}, "unmanaged": {}, "opportunistic": {} } } }),
                &["spec.scaleInStrategy"],
            ),
        ];
        World::default().assert_new(check, &base(), &cases);
    }

    #[test]
    fn the_selector_is_fixed() {
        let cases = [
            ("same", json!({ "spec": { "selector": { "matchExpressions": [] }, "replicas": 5 } }), &[][..]),
            ("other", json!({ "spec": { "selector": { "matchLabels": null } } }), &["spec.selector"]),
        ];
        World::default().updating().assert_changed(check, &base(), &cases);
    }
}
