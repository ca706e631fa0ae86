//! Snapshots of virtual machines.

use kubevirt_api::names::groups;
use kubevirt_api::snapshot::VirtualMachineSnapshot;

use super::same::same;
use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong with a snapshot.
pub fn check(
    cx: &Context<'_>,
    new: &VirtualMachineSnapshot,
    old: Option<&VirtualMachineSnapshot>,
) -> Problems {
    let mut problems = Problems::default();
    if let Some(old) = old {
        if !same(&new.spec, &old.spec) {
            problems.invalid(&Path::new("spec"), "a snapshot cannot be changed: make another");
        }
        return problems;
    }
    if !cx.config.enabled(Gate::Snapshot) {
        let gate = Gate::Snapshot.name();
        problems.forbidden(&Path::WHOLE, format!("snapshots need the feature gate {gate}"));
    }
    let path = Path::new("spec.source");
    let source = &new.spec.source;
    match source.api_group.as_deref() {
        None => problems
            .not_found(&path.at("apiGroup"), format!("the group is missing: it is {}", groups::KUBEVIRT)),
        Some(groups::KUBEVIRT) if source.kind != "VirtualMachine" => {
            let message = format!("{:?} has no snapshots: only VirtualMachine has", source.kind);
            problems.invalid(&path.at("kind"), message);
        }
        Some(groups::KUBEVIRT) => {}
        Some(other) => {
            problems.invalid(
                &path.at("apiGroup"),
                format!("{other:?} has no snapshots: only {} has", groups::KUBEVIRT),
            );
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Reason;
    use crate::testing::{Case, World, assert_fields, patched, read};

    fn base() -> Value {
        json!({
            "metadata": {"name": "s", "namespace": "default"},
            "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "vm"}},
        })
    }

    #[test]
    fn a_snapshot_is_of_a_vm() {
        let cases: [Case<'_>; 6] = [
            ("of a VM", json!({}), &[]),
            ("no group", json!({"apiGroup": null}), &["spec.source.apiGroup"]),
            ("an empty group", json!({"apiGroup": ""}), &["spec.source.apiGroup"]),
            ("another group", json!({"apiGroup": "apps"}), &["spec.source.apiGroup"]),
            ("another kind", json!({"kind": "VirtualMachineInstance"}), &["spec.source.kind"]),
            (
                "another group and kind",
                json!({"apiGroup": "apps", "kind": "Deployment"}),
                &["spec.source.apiGroup"],
            ),
        ];
        let cases =
            cases.map(|(case, source, expected)| (case, json!({"spec": {"source": source}}), expected));
        World::default().assert_new(check, &base(), &cases);
        let off = World::default()
            .with_configuration(json!({"developerConfiguration": {"disabledFeatureGates": ["Snapshot"]}}));
        assert_fields("without the gate", &off.run(|cx| check(cx, &read(base()), None)), &[""]);
    }

    #[test]
    fn a_missing_group_is_not_found() {
        let new = read(patched(&base(), &json!({"spec": {"source": {"apiGroup": null}}})));
        let problems = World::default().run(|cx| check(cx, &new, None));
        assert!(problems.iter().all(|problem| problem.reason == Reason::NotFound));
    }

    #[test]
    fn a_snapshot_does_not_change() {
        let old = patched(&base(), &json!({"spec": {"failureDeadline": "60m"}}));
        let cases: [Case<'_>; 4] = [
            ("a label", json!({"metadata": {"labels": {"a": "b"}}}), &[]),
            ("the deadline in other words", json!({"spec": {"failureDeadline": "1h0m0s"}}), &[]),
            ("the deadline", json!({"spec": {"failureDeadline": "5m"}}), &["spec"]),
            ("the source", json!({"spec": {"source": {"name": "x"}}}), &["spec"]),
        ];
        World::default().updating().assert_changed(check, &old, &cases);
    }
}
