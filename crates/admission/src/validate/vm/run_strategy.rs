//! When a machine runs: exactly one of `running` and `runStrategy`, with a known word.

use kubevirt_api::vm::{RunStrategy, VirtualMachineSpec};

use crate::{Context, Gate, Path, Problems};

/// Checks how the specification at `path` says when to run.
pub fn check(cx: &Context<'_>, path: &Path<'_>, spec: &VirtualMachineSpec, problems: &mut Problems) {
    match (spec.running, &spec.run_strategy) {
        (Some(_), Some(_)) => problems
            .invalid(&path.at("running"), "excludes runStrategy; leave running away, which is deprecated"),
        (None, None) => {
            problems.invalid(&path.at("running"), "neither it nor runStrategy is set; set runStrategy");
        }
        _ => {}
    }
    let Some(strategy) = &spec.run_strategy else { return };
    let field = path.at("runStrategy");
    if !strategy.is_known() {
        let known = RunStrategy::KNOWN.join(", ");
        problems.invalid(&field, format!("{:?} is not one of {known}", strategy.as_str()));
    } else if *strategy == RunStrategy::WaitAsReceiver && !cx.config.enabled(Gate::DecentralizedLiveMigration)
    {
        let gate = Gate::DecentralizedLiveMigration.name();
        problems.invalid(&field, format!("{strategy} needs the feature gate {gate}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{World, assert_fields, patched, read};

    #[test]
    fn one_way_to_say_when_to_run() {
        let cases = [
            ("running", json!({ "running": true }), &[][..]),
            ("not running", json!({ "running": false }), &[]),
            ("always", json!({ "runStrategy": "Always" }), &[]),
            ("halted", json!({ "runStrategy": "Halted" }), &[]),
            ("manual", json!({ "runStrategy": "Manual" }), &[]),
            ("on failure", json!({ "runStrategy": "RerunOnFailure" }), &[]),
            ("once", json!({ "runStrategy": "Once" }), &[]),
            ("receiver without the gate", json!({ "runStrategy": "WaitAsReceiver" }), &["spec.runStrategy"]),
            ("unknown", json!({ "runStrategy": "always" }), &["spec.runStrategy"]),
            ("empty", json!({ "runStrategy": "" }), &["spec.runStrategy"]),
            ("neither", json!({}), &["spec.running"]),
            ("both", json!({ "running": true, "runStrategy": "Always" }), &["spec.running"]),
            (
                "both and unknown",
                json!({ "running": true, "runStrategy": "x" }),
                &["spec.running", "spec.runStrategy"],
            ),
        ];
        let found = |world: World, spec| {
            let spec = read(patched(&json!({ "template": {} }), &spec));
            let mut problems = Problems::default();
            world.run(|cx| check(cx, &Path::new("spec"), &spec, &mut problems));
            problems
        };
        for (case, spec, expected) in cases {
            assert_fields(case, &found(World::default(), spec), expected);
        }
        let gated = World::default().with_gates(&["DecentralizedLiveMigration"]);
        assert_fields("receiver", &found(gated, json!({ "runStrategy": "WaitAsReceiver" })), &[]);
    }
}
