//! Settings of the installation that contradict each other, or that need a feature to be on.

use kubevirt_api::kubevirt::configuration::{
    DeveloperConfiguration, KubeVirtConfiguration, RoleAggregationStrategy, SeccompConfiguration,
};

use super::tls;
use crate::{Gate, Path, Problems};

/// Checks the settings; some only where they have changed, so that an installation from before can live on.
pub fn check(new: &KubeVirtConfiguration, old: &KubeVirtConfiguration, problems: &mut Problems) {
    if let Some(ratio) = &new.additional_guest_memory_overhead_ratio {
        check_overhead_ratio(ratio, problems);
    }
    check_gated(new, old, problems);
    if let Some(tls) =
        new.tls_configuration.as_ref().filter(|tls| Some(*tls) != old.tls_configuration.as_ref())
    {
        tls::check(tls, problems);
    }
    if let Some(seccomp) = &new.seccomp_configuration
        && Some(seccomp) != old.seccomp_configuration.as_ref()
    {
        check_seccomp(seccomp, problems);
    }
    if gates_changed(new, old)
        && let Some(developer) = &new.developer_configuration
    {
        check_feature_gates(developer, problems);
    }
}

/// Whether the lists of feature gates are others than before; taking the section away changes nothing to check.
pub fn gates_changed(new: &KubeVirtConfiguration, old: &KubeVirtConfiguration) -> bool {
    let lists = |developer: &DeveloperConfiguration| {
        let list = |gates: &Option<Vec<String>>| gates.clone().unwrap_or_default();
        (list(&developer.feature_gates), list(&developer.disabled_feature_gates))
    };
    match (&new.developer_configuration, &old.developer_configuration) {
        (Some(new), Some(old)) => lists(new) != lists(old),
        (new, old) => new.is_some() && old.is_none(),
    }
}

fn check_overhead_ratio(text: &str, problems: &mut Problems) {
    match text.parse::<f64>().ok().filter(|ratio| ratio.is_finite()) {
        None => problems.not_supported(
            &Path::WHOLE,
            format!("spec.configuration.additionalGuestMemoryOverheadRatio {text:?} is not a decimal number"),
        ),
        Some(ratio) if ratio < 1.0 => problems.not_supported(
            &Path::WHOLE,
            format!("spec.configuration.additionalGuestMemoryOverheadRatio {text:?} is less than 1.0"),
        ),
        Some(_) => {}
    }
}

/// Settings behind gates, which count as the same change sets them.
fn check_gated(new: &KubeVirtConfiguration, old: &KubeVirtConfiguration, problems: &mut Problems) {
    let templates = new.virt_template_deployment.as_ref().and_then(|deployment| deployment.enabled);
    let roles = new.role_aggregation_strategy.as_ref();
    let downtime = new.migrations.as_ref().and_then(|migrations| migrations.max_downtime_ms);
    let old_downtime = old.migrations.as_ref().and_then(|migrations| migrations.max_downtime_ms);
    let settings = [
        (templates == Some(true), "virtTemplateDeployment.enabled", Gate::Template),
        (
            roles.is_some_and(|roles| *roles != RoleAggregationStrategy::AggregateToDefault),
            "roleAggregationStrategy",
            Gate::OptOutRoleAggregation,
        ),
        (
            downtime.is_some() && downtime != old_downtime,
            "migrationConfiguration.maxDowntimeMs",
            Gate::MigrationStallDetection,
        ),
    ];
    let path = Path::new("spec.configuration");
    for (set, field, gate) in settings {
        if set && !gate.enabled(new.developer_configuration.as_ref()) {
            problems.invalid(&path.at(field), format!("needs the feature gate {}", gate.name()));
        }
    }
}

fn check_seccomp(seccomp: &SeccompConfiguration, problems: &mut Problems) {
    let Some(profile) = &seccomp.virtual_machine_instance_profile else { return };
    let path =
        Path::new("spec.configuration.seccompConfiguration.virtualMachineInstanceProfile.customProfile");
    let Some(custom) = &profile.custom_profile else {
        problems.invalid(&path, "is missing: set localhostProfile or runtimeDefaultProfile in it");
        return;
    };
    if custom.localhost_profile.is_some() && custom.runtime_default_profile == Some(true) {
        for (field, other) in
            [("localhostProfile", "runtimeDefaultProfile"), ("runtimeDefaultProfile", "localhostProfile")]
        {
            problems.invalid(&path.at(field), format!("excludes {other}"));
        }
    }
}

fn check_feature_gates(developer: &DeveloperConfiguration, problems: &mut Problems) {
    let disabled = developer.disabled_feature_gates.as_deref().unwrap_or_default();
    for gate in developer.feature_gates.iter().flatten().filter(|gate| disabled.contains(gate)) {
        problems.forbidden(
            &Path::new("spec.configuration.developerConfiguration.featureGates"),
            format!("{gate} is in disabledFeatureGates too; a gate is either on or off"),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{assert_fields, read};

    fn assert_cases(old: &Value, cases: &[(&str, Value, &[&str])]) {
        for (case, new, expected) in cases {
            let mut problems = Problems::default();
            check(&read(new.clone()), &read(old.clone()), &mut problems);
            assert_fields(case, &problems, expected);
        }
    }

    #[test]
    fn the_overhead_ratio_is_a_number_from_one() {
        let ratio = |text: &str| json!({ "additionalGuestMemoryOverheadRatio": text });
        assert_cases(
            &json!({}),
            &[
                ("one", ratio("1"), &[]),
                ("more", ratio("1.75"), &[]),
                ("less", ratio("0.99"), &[""]),
                ("negative", ratio("-2"), &[""]),
                ("no number", ratio("a lot"), &[""]),
                ("empty", ratio(""), &[""]),
            ],
        );
    }

    #[test]
    fn settings_behind_gates() {
        let off = |gate: &str| json!({ "disabledFeatureGates": [gate] });
        let templates = |enabled: bool, developer: Value| json!({ "virtTemplateDeployment": { "enabled": enabled }, "developerConfiguration": developer });
        let roles = |strategy: &str, developer: Value| json!({ "roleAggregationStrategy": strategy, "developerConfiguration": developer });
        let downtime = json!({ "migrations": { "maxDowntimeMs": 500 } });
        let roles_field = &["spec.configuration.roleAggregationStrategy"][..];
        let downtime_field = &["spec.configuration.migrationConfiguration.maxDowntimeMs"][..];
        assert_cases(
            &json!({}),
            &[
                ("templates", templates(true, json!({})), &[]),
                (
                    "gate is off",
                    templates(true, off("Template")),
                    &["spec.configuration.virtTemplateDeployment.enabled"],
                ),
                ("no templates", templates(false, off("Template")), &[]),
                ("manual", roles("Manual", json!({})), &[]),
                ("manual, gate is off", roles("Manual", off("OptOutRoleAggregation")), roles_field),
                ("default", roles("AggregateToDefault", off("OptOutRoleAggregation")), &[]),
                ("downtime", downtime.clone(), downtime_field),
                (
                    "downtime with its gate",
                    json!({
                        "migrations": { "maxDowntimeMs": 500 },
                        "developerConfiguration": { "featureGates": ["MigrationStallDetection"] },
                    }),
                    &[],
                ),
                ("no downtime", json!({ "migrations": {} }), &[]),
            ],
        );
        assert_cases(&downtime, &[("as before", downtime.clone(), &[])]);
        let before = json!({ "migrations": { "maxDowntimeMs": 900 } });
        assert_cases(&before, &[("changed", downtime, downtime_field), ("gone", json!({}), &[])]);
    }

    #[test]
    fn seccomp_profiles() {
        let profile =
            |value: Value| json!({ "seccompConfiguration": { "virtualMachineInstanceProfile": value } });
        let path = "spec.configuration.seccompConfiguration.virtualMachineInstanceProfile.customProfile";
        let (local, default) = (format!("{path}.localhostProfile"), format!("{path}.runtimeDefaultProfile"));
        let both =
            profile(json!({ "customProfile": { "localhostProfile": "a", "runtimeDefaultProfile": true } }));
        assert_cases(
            &json!({}),
            &[
                ("none", json!({ "seccompConfiguration": {} }), &[]),
                ("no profile", profile(json!({})), &[path]),
                ("local", profile(json!({ "customProfile": { "localhostProfile": "a" } })), &[]),
                ("default", profile(json!({ "customProfile": { "runtimeDefaultProfile": true } })), &[]),
                ("both", both.clone(), &[&local, &default]),
                (
                    "one off",
                    profile(
                        json!({ "customProfile": { "localhostProfile": "a", "runtimeDefaultProfile": false } }),
                    ),
                    &[],
                ),
            ],
        );
        assert_cases(&both, &[("as before", both.clone(), &[])]);
    }

    #[test]
    fn ciphers_are_checked_when_they_change() {
        let tls = json!({ "tlsConfiguration": { "ciphers": ["x"] } });
        assert_cases(&json!({}), &[("new", tls.clone(), &["spec.configuration.tlsConfiguration.ciphers"])]);
        assert_cases(&tls, &[("as before", tls.clone(), &[])]);
    }

    #[test]
    fn a_gate_is_on_or_off() {
        let gates = |on: &[&str], off: &[&str]| json!({ "developerConfiguration": { "featureGates": on, "disabledFeatureGates": off } });
        let field = "spec.configuration.developerConfiguration.featureGates";
        assert_cases(
            &json!({}),
            &[
                ("apart", gates(&["HostDisk"], &["Snapshot"]), &[]),
                ("both", gates(&["Snapshot", "HostDisk"], &["Snapshot"]), &[field]),
                ("two of them", gates(&["a", "b"], &["b", "a"]), &[field, field]),
                ("only on", gates(&["a"], &[]), &[]),
            ],
        );
        let both = gates(&["Snapshot"], &["Snapshot"]);
        assert_cases(&both, &[("as before", both.clone(), &[])]);
        assert_cases(&json!({ "developerConfiguration": {} }), &[("changed", both, &[field])]);
    }
}
