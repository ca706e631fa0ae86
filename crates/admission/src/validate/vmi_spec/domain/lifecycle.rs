//! How an instance starts, what a drain does to it, and what a reboot of its guest does.

use kubevirt_api::vmi::{EvictionStrategy, StartStrategy, VirtualMachineInstanceSpec};

use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong.
pub(super) fn check(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    match &spec.start_strategy {
        Some(StartStrategy::Paused) if spec.liveness_probe.is_some() => {
            let message = "a paused guest answers no liveness probe; remove livenessProbe or startStrategy";
            problems.invalid(&path.at("startStrategy"), message);
        }
        Some(StartStrategy::Paused) | None => {}
        Some(StartStrategy::Other(other)) => {
            problems.invalid(&path.at("startStrategy"), format!("{other:?} is not known; use Paused"));
        }
    }
    let of_cluster =
        cx.config.configuration().eviction_strategy.as_ref().filter(|strategy| !strategy.is_empty());
    let strategy = spec.eviction_strategy.as_ref().or(of_cluster).map(EvictionStrategy::as_str);
    if let Some(strategy) = strategy.filter(|strategy| !EvictionStrategy::KNOWN.contains(strategy)) {
        let known = EvictionStrategy::KNOWN.join(", ");
        let message = format!("eviction strategy {strategy:?} is not known; use one of {known}");
        problems.invalid(&path.at("evictionStrategy"), message);
    }
    if spec.domain.reboot_policy.is_some() && !cx.config.enabled(Gate::RebootPolicy) {
        let message = "needs the feature gate RebootPolicy, which is off";
        problems.invalid(&path.at("domain.rebootPolicy"), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::run;
    use crate::testing::World;

    #[test]
    fn starting_draining_and_rebooting() {
        let probe = json!({ "guestAgentPing": {} });
        let reboot = json!({ "domain": { "rebootPolicy": "Terminate" } });
        run(
            &World::default(),
            &[
                ("paused", json!({ "startStrategy": "Paused" }), &[]),
                ("unknown start", json!({ "startStrategy": "Slowly" }), &["spec.startStrategy"]),
                ("empty start", json!({ "startStrategy": "" }), &["spec.startStrategy"]),
                (
                    "paused with liveness",
                    json!({ "startStrategy": "Paused", "livenessProbe": probe }),
                    &["spec.startStrategy"],
                ),
                ("paused with readiness", json!({ "startStrategy": "Paused", "readinessProbe": probe }), &[]),
                ("none", json!({ "evictionStrategy": "None" }), &[]),
                ("migrate", json!({ "evictionStrategy": "LiveMigrate" }), &[]),
                ("migrate if possible", json!({ "evictionStrategy": "LiveMigrateIfPossible" }), &[]),
                ("external", json!({ "evictionStrategy": "External" }), &[]),
                ("unknown eviction", json!({ "evictionStrategy": "Run" }), &["spec.evictionStrategy"]),
                ("empty eviction", json!({ "evictionStrategy": "" }), &["spec.evictionStrategy"]),
                ("reboot", reboot.clone(), &[]),
            ],
        );
        let world = World::default().with_configuration(json!({
            "evictionStrategy": "Run",
            "developerConfiguration": { "disabledFeatureGates": ["RebootPolicy"] },
        }));
        run(
            &world,
            &[
                ("unknown default", json!({}), &["spec.evictionStrategy"]),
                ("own strategy", json!({ "evictionStrategy": "None" }), &[]),
                (
                    "reboot is off",
                    json!({ "evictionStrategy": "None", "domain": { "rebootPolicy": "Reboot" } }),
                    &["spec.domain.rebootPolicy"],
                ),
            ],
        );
    }
}
