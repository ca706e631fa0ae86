//! What may not change while a snapshot or a restore of a machine is under way.

use std::borrow::Cow;

use kubevirt_api::vm::{RunStrategy, VirtualMachine, VirtualMachineSpec};
use kubevirt_api::vmi::volumes::Volume;

use super::volumes::same;
use crate::{Path, Problems};

/// Checks a change of a machine against what is being done to it.
pub(crate) fn check(new: &VirtualMachine, old: Option<&VirtualMachine>, problems: &mut Problems) {
    let (Some(old), Some(status)) = (old, &new.status) else { return };
    let path = Path::new("spec");
    if let Some(snapshot) = &status.snapshot_in_progress {
        if !same(volumes(old), volumes(new)) {
            problems.not_supported(
                &path,
                format!("volumes cannot change until snapshot {snapshot:?} is complete"),
            );
        }
        if !says_same(&old.spec, &new.spec) {
            problems.not_supported(
                &path,
                format!("the machine cannot be started or stopped until snapshot {snapshot:?} is complete"),
            );
        }
    }
    if let Some(restore) = &status.restore_in_progress
        && run_strategy(&old.spec) != run_strategy(&new.spec)
    {
        problems.not_supported(
            &path,
            format!("the machine cannot be started or stopped until restore {restore:?} is complete"),
        );
    }
}

fn volumes(vm: &VirtualMachine) -> &[Volume] {
    vm.spec.template.spec.as_ref().and_then(|vmi| vmi.volumes.as_deref()).unwrap_or_default()
}

/// Whether both use the same of the two fields, and with the same value.
fn says_same(old: &VirtualMachineSpec, new: &VirtualMachineSpec) -> bool {
    match (old.running, new.running) {
        (Some(old), Some(new)) => old == new,
        _ => old.run_strategy.is_some() && old.run_strategy == new.run_strategy,
    }
}

/// What the specification comes to, in whichever field it says it; nothing where it contradicts itself.
fn run_strategy(spec: &VirtualMachineSpec) -> Option<Cow<'_, RunStrategy>> {
    match (spec.running, &spec.run_strategy) {
        (Some(_), Some(_)) => None,
        (Some(true), None) => Some(Cow::Owned(RunStrategy::Always)),
        (None, Some(strategy)) => Some(Cow::Borrowed(strategy)),
        (Some(false) | None, None) => Some(Cow::Owned(RunStrategy::Halted)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{assert_fields, patched, read};

    fn assert_cases(status: &Value, cases: &[(&str, Value, Value, &[&str])]) {
        let base =
            json!({ "spec": { "template": { "spec": { "domain": { "devices": {} } } } }, "status": status });
        for (case, old, new, expected) in cases {
            let (old, new) =
                (patched(&base, &json!({ "spec": old })), patched(&base, &json!({ "spec": new })));
            let mut problems = Problems::default();
            check(&read(new), Some(&read(old)), &mut problems);
            assert_fields(case, &problems, expected);
        }
    }

    fn volumes_of(names: &[&str]) -> Value {
        let volumes: Vec<Value> =
            names.iter().map(|name| json!({ "name": name, "emptyDisk": { "capacity": "1Gi" } })).collect();
        json!({ "running": false, "template": { "spec": { "volumes": volumes } } })
    }

    #[test]
    fn during_a_snapshot() {
        let spec = &["spec"][..];
        assert_cases(
            &json!({ "snapshotInProgress": "s" }),
            &[
                ("nothing", json!({ "running": true }), json!({ "running": true }), &[]),
                ("stopped", json!({ "running": true }), json!({ "running": false }), spec),
                ("strategy", json!({ "runStrategy": "Always" }), json!({ "runStrategy": "Manual" }), spec),
                (
                    "same strategy",
                    json!({ "runStrategy": "Always" }),
                    json!({ "runStrategy": "Always" }),
                    &[],
                ),
                ("other field", json!({ "running": true }), json!({ "runStrategy": "Always" }), spec),
                ("same volumes", volumes_of(&["a", "b"]), volumes_of(&["a", "b"]), &[]),
                ("no volumes", volumes_of(&[]), json!({ "running": false }), &[]),
                ("one more", volumes_of(&["a"]), volumes_of(&["a", "b"]), spec),
                ("one less", volumes_of(&["a", "b"]), volumes_of(&["b"]), spec),
                ("other order", volumes_of(&["a", "b"]), volumes_of(&["b", "a"]), spec),
                ("both", volumes_of(&["a"]), json!({ "running": true }), &["spec", "spec"]),
                (
                    "something else",
                    json!({ "running": true }),
                    json!({ "running": true, "template": { "spec": { "hostname": "x" } } }),
                    &[],
                ),
            ],
        );
    }

    #[test]
    fn during_a_restore() {
        let spec = &["spec"][..];
        assert_cases(
            &json!({ "restoreInProgress": "r" }),
            &[
                ("nothing", json!({ "running": false }), json!({ "running": false }), &[]),
                ("started", json!({ "running": false }), json!({ "running": true }), spec),
                ("strategy", json!({ "runStrategy": "Halted" }), json!({ "runStrategy": "Always" }), spec),
                (
                    "the same in other words",
                    json!({ "running": false }),
                    json!({ "runStrategy": "Halted" }),
                    &[],
                ),
                ("volumes", volumes_of(&["a"]), volumes_of(&["b"]), &[]),
            ],
        );
    }

    #[test]
    fn at_any_other_time() {
        assert_cases(
            &json!({}),
            &[("started", json!({ "running": false }), json!({ "running": true }), &[])],
        );
        let new = read(json!({ "spec": { "template": {} }, "status": { "snapshotInProgress": "s" } }));
        let mut problems = Problems::default();
        check(&new, None, &mut problems);
        assert_fields("created", &problems, &[]);
    }
}
