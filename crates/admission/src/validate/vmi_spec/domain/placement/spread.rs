//! Spreading over zones, nodes or other topologies.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;

use crate::validate::labels;
use crate::{Path, Problems};

const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];

/// Everything that is wrong.
pub(super) fn check(field: &Path<'_>, constraints: &[TopologySpreadConstraint], problems: &mut Problems) {
    for (index, constraint) in constraints.iter().enumerate() {
        let at = field.index(index);
        if constraint.max_skew <= 0 {
            let message = format!("{} is not greater than 0", constraint.max_skew);
            problems.invalid(&at.at("maxSkew"), message);
        }
        labels::check_key(&at.at("topologyKey"), &constraint.topology_key, problems);
        let action = constraint.when_unsatisfiable.as_str();
        if !ACTIONS.contains(&action) {
            let message = format!("{action:?} is not known; use {}", ACTIONS.join(" or "));
            problems.invalid(&at.at("whenUnsatisfiable"), message);
        }
        // The selector is reported without its index, as users of the original know it.
        if let Some(selector) = &constraint.label_selector {
            labels::check(&field.at("labelSelector"), selector, problems);
        }
    }
    check_repeated(field, constraints, problems);
}

/// The earlier one of two constraints of a kind is the one that is reported.
fn check_repeated(field: &Path<'_>, constraints: &[TopologySpreadConstraint], problems: &mut Problems) {
    let mut later = HashSet::new();
    for (index, constraint) in constraints.iter().enumerate().rev() {
        let (key, action) = (constraint.topology_key.as_str(), constraint.when_unsatisfiable.as_str());
        if !later.insert((key, action)) {
            let message = format!("another constraint has the topology key {key:?} with {action} too");
            problems.invalid(&field.index(index).at("{topologyKey, whenUnsatisfiable}"), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::testing::run;
    use crate::testing::{World, patched};

    #[test]
    fn spreading() {
        let plain = json!({ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" });
        let one = |patch: Value| json!({ "topologySpreadConstraints": [patched(&plain, &patch)] });
        let two = |patch: Value| json!({ "topologySpreadConstraints": [plain, patched(&plain, &patch)] });
        let at = "spec.topologySpreadConstraints[0]";
        let repeated = format!("{at}.{{topologyKey, whenUnsatisfiable}}");
        run(
            &World::default(),
            &[
                ("plain", one(json!({})), &[]),
                ("anyway", one(json!({ "whenUnsatisfiable": "ScheduleAnyway" })), &[]),
                ("no skew", one(json!({ "maxSkew": 0 })), &["spec.topologySpreadConstraints[0].maxSkew"]),
                (
                    "no key",
                    one(json!({ "topologyKey": "" })),
                    &["spec.topologySpreadConstraints[0].topologyKey"],
                ),
                (
                    "bad key",
                    one(json!({ "topologyKey": "a b" })),
                    &["spec.topologySpreadConstraints[0].topologyKey"],
                ),
                (
                    "unknown action",
                    one(json!({ "whenUnsatisfiable": "Panic" })),
                    &["spec.topologySpreadConstraints[0].whenUnsatisfiable"],
                ),
                ("selector", one(json!({ "labelSelector": { "matchLabels": { "app": "web" } } })), &[]),
                (
                    "bad selector",
                    one(json!({ "labelSelector": { "matchLabels": { "app": "-" } } })),
                    &["spec.topologySpreadConstraints.labelSelector.matchLabels"],
                ),
                ("other key", two(json!({ "topologyKey": "rack" })), &[]),
                ("other action", two(json!({ "whenUnsatisfiable": "ScheduleAnyway" })), &[]),
                ("twice", two(json!({ "maxSkew": 2 })), &[&repeated]),
            ],
        );
    }
}
