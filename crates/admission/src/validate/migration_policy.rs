//! Rules for `MigrationPolicy`.

use kubevirt_api::migration_policy::{MigrationPolicy, MigrationPolicySpec};
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vmi::migration_state::StallDetectorOptions;

use crate::{Context, Gate, Path, Problems};

/// How many decimal places a factor may have.
const DECIMALS: usize = 3;

/// Everything that is wrong with a migration policy.
pub fn check(cx: &Context<'_>, new: &MigrationPolicy, old: Option<&MigrationPolicy>) -> Problems {
    let mut problems = Problems::default();
    let path = Path::new("spec");
    let (spec, old) = (&new.spec, old.map(|old| &old.spec));
    let detection = cx.config.enabled(Gate::MigrationStallDetection);
    let needs_gate =
        || format!("can only be set with the feature gate {}", Gate::MigrationStallDetection.name());

    if let Some(timeout) = spec.completion_timeout_per_gi_b.filter(|timeout| *timeout < 0) {
        problems
            .invalid(&path.at("completionTimeoutPerGiB"), format!("is {timeout}, but must not be negative"));
    }
    if spec.max_downtime_ms.is_some()
        && spec.max_downtime_ms != old.and_then(|old| old.max_downtime_ms)
        && !detection
    {
        problems.invalid(&path.at("maxDowntimeMs"), needs_gate());
    }
    if let Some(detector) = stall_detector(spec) {
        let field = path.at("experimental.stallDetector");
        if old.and_then(stall_detector) != Some(detector) && !detection {
            problems.invalid(&field, needs_gate());
        }
        check_factors(&field, detector, &mut problems);
    }
    if let Some(bandwidth) = &spec.bandwidth_per_migration {
        let field = path.at("bandwidthPerMigration");
        match bandwidth.amount() {
            Ok(amount) if amount.is_negative() => {
                problems.invalid(&field, format!("is {}, but must not be negative", bandwidth.0));
            }
            Ok(_) => {}
            Err(error) => problems.invalid(&field, error.to_string()),
        }
    }
    problems
}

fn stall_detector(spec: &MigrationPolicySpec) -> Option<&StallDetectorOptions> {
    spec.experimental.as_ref()?.stall_detector.as_ref()
}

/// The range of a factor, which ends at the largest number where there is no other end.
struct Range {
    above_zero: bool,
    least: f64,
    most: f64,
}

fn check_factors(path: &Path<'_>, detector: &StallDetectorOptions, problems: &mut Problems) {
    let share = Range { above_zero: false, least: 0.0, most: 1.0 };
    let weight = Range { above_zero: true, ..share };
    let multiple = || Range { above_zero: false, least: 1.0, most: f64::MAX };
    let factors = [
        ("ewmaAlpha", &detector.ewma_alpha, weight),
        ("precopyPossibleFactor", &detector.precopy_possible_factor, multiple()),
        ("patienceWindowDecayFactor", &detector.patience_window_decay_factor, share),
        ("completionTimeoutFactor", &detector.completion_timeout_factor, multiple()),
    ];
    for (field, text, range) in factors {
        let Some(text) = text else { continue };
        if let Some(problem) = factor_problem(text, &range) {
            problems.invalid(&path.at(field), problem);
        }
    }
}

fn factor_problem(text: &str, range: &Range) -> Option<String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let Some(number) = number else {
        return Some(format!("{text:?} is not a decimal number"));
    };
    let rounded = format!("{number:.DECIMALS$}").parse::<f64>().unwrap_or(number);
    if (number - rounded).abs() > 1e-9 {
        return Some(format!("{text:?} has more than {DECIMALS} decimal places"));
    }
    if range.above_zero && number <= 0.0 {
        return Some(format!("is {number}, but must be greater than 0"));
    }
    if number < range.least {
        return Some(format!("is {number}, but must be at least {}", range.least));
    }
    (number > range.most).then(|| format!("is {number}, but must be at most {}", range.most))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, read};

    fn policy(spec: Value) -> MigrationPolicy {
        let mut spec = spec;
        spec["selectors"] = json!({});
        read(json!({ "metadata": { "name": "policy" }, "spec": spec }))
    }

    #[test]
    fn amounts_must_not_be_negative() {
        let cases = [
            ("empty", json!({}), &[][..]),
            ("no time", json!({ "completionTimeoutPerGiB": 0 }), &[]),
            ("negative time", json!({ "completionTimeoutPerGiB": -1 }), &["spec.completionTimeoutPerGiB"]),
            ("no bandwidth", json!({ "bandwidthPerMigration": "0" }), &[]),
            ("bandwidth", json!({ "bandwidthPerMigration": "64Mi" }), &[]),
            ("negative bandwidth", json!({ "bandwidthPerMigration": "-1" }), &["spec.bandwidthPerMigration"]),
            ("negative fraction", json!({ "bandwidthPerMigration": "-5m" }), &["spec.bandwidthPerMigration"]),
            ("no quantity", json!({ "bandwidthPerMigration": "fast" }), &["spec.bandwidthPerMigration"]),
            (
                "both",
                json!({ "bandwidthPerMigration": "-1", "completionTimeoutPerGiB": -1 }),
                &["spec.bandwidthPerMigration", "spec.completionTimeoutPerGiB"],
            ),
        ];
        for (case, spec, expected) in cases {
            assert_fields(case, &World::default().run(|cx| check(cx, &policy(spec), None)), expected);
        }
    }

    #[test]
    fn stall_detection_needs_its_gate_to_be_changed() {
        let downtime = policy(json!({ "maxDowntimeMs": 500 }));
        let detector = policy(json!({ "experimental": { "stallDetector": { "stallMargin": 5 } } }));
        let plain = policy(json!({}));
        let fields = [(&downtime, "spec.maxDowntimeMs"), (&detector, "spec.experimental.stallDetector")];
        for (new, field) in fields {
            let off = |old| World::default().run(|cx| check(cx, new, old));
            assert_fields("new", &off(None), &[field]);
            assert_fields("changed", &off(Some(&plain)), &[field]);
            assert_fields("as before", &off(Some(new)), &[]);
            let on = World::default().with_gates(&["MigrationStallDetection"]);
            assert_fields("gate is on", &on.run(|cx| check(cx, new, None)), &[]);
        }
        let removed = World::default().run(|cx| check(cx, &plain, Some(&detector)));
        assert_fields("removed", &removed, &[]);
    }

    #[test]
    fn factors_have_their_ranges() {
        let cases: [(&str, &[&str], &[&str]); 4] = [
            (
                "ewmaAlpha",
                &["0.4", "1", "0.001", " 0.5 "],
                &["0", "-1", "1.001", "0.0005", "", "x", "NaN", "inf"],
            ),
            ("precopyPossibleFactor", &["1", "1.5", "1000"], &["0.9", "0", "1.2345", "-2"]),
            ("patienceWindowDecayFactor", &["0", "0.5", "1", "1.0"], &["1.1", "-0.1", "0.12345"]),
            ("completionTimeoutFactor", &["1", "2", "2.125"], &["0.999", "1e400", "two"]),
        ];
        for (field, good, bad) in cases {
            let check = |text: &str| {
                let policy = policy(json!({ "experimental": { "stallDetector": { field: text } } }));
                World::default().with_gates(&["MigrationStallDetection"]).run(|cx| check(cx, &policy, None))
            };
            let path = format!("spec.experimental.stallDetector.{field}");
            for text in good {
                assert_fields(&format!("{field} {text:?}"), &check(text), &[]);
            }
            for text in bad {
                assert_fields(&format!("{field} {text:?}"), &check(text), &[&path]);
            }
        }
    }
}
