//! Backups of virtual machines, and the trackers that make them incremental.

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use kubevirt_api::backup::{BackupMode, VirtualMachineBackup, VirtualMachineBackupTracker};
use kubevirt_api::names::conditions::backup as conditions;
use kubevirt_api::names::groups;

use super::same::same;
use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong with a backup.
pub fn check_backup(
    cx: &Context<'_>,
    new: &VirtualMachineBackup,
    old: Option<&VirtualMachineBackup>,
) -> Problems {
    let mut problems = Problems::default();
    let spec = Path::new("spec");
    match old {
        Some(old) if !same(&new.spec, &old.spec) => {
            problems.invalid(&spec, "a backup cannot be changed: make another");
        }
        Some(_) => {}
        None => {
            check_gate(cx, &mut problems);
            check_alone(cx, new, &mut problems);
        }
    }
    if is_empty(new.spec.pvc_name.as_ref()) {
        problems.invalid(&spec, "the claim for the backup is missing: set pvcName");
    }
    if new.spec.mode == Some(BackupMode::Pull) && is_empty(new.spec.token_secret_ref.as_ref()) {
        problems.invalid(&spec, "the mode Pull needs a secret with a token: set tokenSecretRef");
    }
    let of_vm = [(groups::KUBEVIRT, "VirtualMachine"), (groups::BACKUP, "VirtualMachineBackupTracker")];
    check_source(&new.spec.source, &of_vm, &mut problems);
    problems
}

/// Everything that is wrong with a backup tracker.
pub fn check_tracker(
    cx: &Context<'_>,
    new: &VirtualMachineBackupTracker,
    old: Option<&VirtualMachineBackupTracker>,
) -> Problems {
    let mut problems = Problems::default();
    match old {
        Some(old) if !same(&new.spec, &old.spec) => {
            problems.invalid(&Path::new("spec"), "a backup tracker cannot be changed: make another");
        }
        Some(_) => {}
        None => check_gate(cx, &mut problems),
    }
    check_source(&new.spec.source, &[(groups::KUBEVIRT, "VirtualMachine")], &mut problems);
    problems
}

fn check_gate(cx: &Context<'_>, problems: &mut Problems) {
    if !cx.config.enabled(Gate::IncrementalBackup) {
        let gate = Gate::IncrementalBackup.name();
        problems.forbidden(&Path::WHOLE, format!("backups need the feature gate {gate}"));
    }
}

/// One backup of a source at a time.
fn check_alone(cx: &Context<'_>, new: &VirtualMachineBackup, problems: &mut Problems) {
    for other in cx.objects.backups(&cx.request.namespace) {
        let name = other.metadata.name.as_deref().unwrap_or_default();
        if new.metadata.name.as_deref() == Some(name) {
            problems.invalid(&Path::new("metadata.name"), format!("there is a backup {name:?} already"));
        } else if !is_over(&other) && same(&other.spec.source, &new.spec.source) {
            let message = format!("VirtualMachineBackup {name:?} in progress for source: wait or delete it");
            problems.invalid(&Path::new("spec.source"), message);
        }
    }
}

/// Whether a backup is complete or has failed.
fn is_over(backup: &VirtualMachineBackup) -> bool {
    let known = backup.status.as_ref().and_then(|status| status.conditions.as_deref());
    let over = |type_: &str| matches!(type_, conditions::COMPLETE | conditions::FAILED);
    known.unwrap_or_default().iter().any(|condition| over(&condition.type_) && condition.status == "True")
}

fn check_source(source: &TypedLocalObjectReference, allowed: &[(&str, &str)], problems: &mut Problems) {
    let path = Path::new("spec.source");
    let group = source.api_group.as_deref();
    if !allowed.iter().any(|allowed| (group, source.kind.as_str()) == (Some(allowed.0), allowed.1)) {
        let known: Vec<String> = allowed.iter().map(|(group, kind)| format!("{kind} of {group}")).collect();
        let (kind, known) = (&source.kind, known.join(", "));
        let message = match group {
            Some(group) => format!("{kind:?} of {group:?} cannot be backed up: only {known} can"),
            None => format!("the apiGroup is missing: only {known} can be backed up"),
        };
        problems.invalid(&path, message);
    }
    if source.name.is_empty() {
        problems.invalid(&path, "the name of the source is missing");
    }
}

fn is_empty(text: Option<&String>) -> bool {
    text.is_none_or(String::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Case, World, assert_fields, patched, read, shared};

    fn backup() -> Value {
        json!({
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "vm"}, "pvcName": "c"},
        })
    }

    fn tracker() -> Value {
        json!({
            "metadata": {"name": "t", "namespace": "default"},
            "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "vm"}},
        })
    }

    fn gated() -> World {
        World::default().with_gates(&["IncrementalBackup"])
    }

    #[test]
    fn a_backup_has_a_source_and_a_place() {
        let source: &[&str] = &["spec.source"];
        let spec: &[&str] = &["spec"];
        let by_tracker = json!({"apiGroup": "backup.kubevirt.io", "kind": "VirtualMachineBackupTracker"});
        let cases: Vec<Case<'_>> = vec![
            ("of a VM", json!({}), &[]),
            ("of a tracker", json!({"source": by_tracker}), &[]),
            ("no group", json!({"source": {"apiGroup": null}}), source),
            ("an empty group", json!({"source": {"apiGroup": ""}}), source),
            ("another group", json!({"source": {"apiGroup": "apps"}}), source),
            ("another kind", json!({"source": {"kind": "VirtualMachineInstance"}}), source),
            (
                "a tracker of the wrong group",
                json!({"source": {"kind": "VirtualMachineBackupTracker"}}),
                source,
            ),
            ("no name", json!({"source": {"name": ""}}), source),
            ("no claim", json!({"pvcName": null}), spec),
            ("an empty claim", json!({"pvcName": ""}), spec),
            ("pushed", json!({"mode": "Push"}), &[]),
            ("pulled", json!({"mode": "Pull", "tokenSecretRef": "t"}), &[]),
            ("pulled without a token", json!({"mode": "Pull"}), spec),
            ("pulled with an empty token", json!({"mode": "Pull", "tokenSecretRef": ""}), spec),
            ("several things", json!({"pvcName": null, "source": {"name": ""}}), &["spec", "spec.source"]),
        ];
        let cases: Vec<Case<'_>> =
            cases.into_iter().map(|(case, spec, expected)| (case, json!({"spec": spec}), expected)).collect();
        gated().assert_new(check_backup, &backup(), &cases);
        let off = World::default();
        assert_fields("without the gate", &off.run(|cx| check_backup(cx, &read(backup()), None)), &[""]);
        let old = read(backup());
        let updating = World::default().updating();
        assert_fields("kept", &updating.run(|cx| check_backup(cx, &read(backup()), Some(&old))), &[]);
        let other = read(patched(&backup(), &json!({"spec": {"pvcName": "x"}})));
        assert_fields("changed", &updating.run(|cx| check_backup(cx, &other, Some(&old))), &["spec"]);
    }

    #[test]
    fn a_source_is_backed_up_once_at_a_time() {
        let condition = |type_: &str, status: &str| {
            json!({"status": {"conditions": [
                {"type": type_, "status": status, "reason": "", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ]}})
        };
        let source: &[&str] = &["spec.source"];
        let cases = [
            ("just made", json!({}), source),
            ("under way", condition("Progressing", "True"), source),
            ("not complete", condition("Complete", "False"), source),
            ("complete", condition("Complete", "True"), &[]),
            ("failed", condition("Failed", "True"), &[]),
            ("of another", json!({"spec": {"source": {"name": "x"}}}), &[]),
            ("in another namespace", json!({"metadata": {"namespace": "x"}}), &[]),
            ("of the same name", json!({"metadata": {"name": "b"}}), &["metadata.name"]),
        ];
        for (case, patch, expected) in cases {
            let mut world = gated();
            let other = patched(&backup(), &json!({"metadata": {"name": "other"}}));
            world.objects.backups.push(shared(patched(&other, &patch)));
            assert_fields(case, &world.run(|cx| check_backup(cx, &read(backup()), None)), expected);
        }
    }

    #[test]
    fn a_tracker_is_of_a_vm() {
        let source: &[&str] = &["spec.source"];
        let cases: Vec<Case<'_>> = vec![
            ("of a VM", json!({}), &[]),
            ("no group", json!({"apiGroup": null}), source),
            ("another group", json!({"apiGroup": "backup.kubevirt.io"}), source),
            ("another kind", json!({"kind": "VirtualMachineBackupTracker"}), source),
            ("no name", json!({"name": ""}), source),
        ];
        let whole = |(case, source, expected)| (case, json!({"spec": {"source": source}}), expected);
        let cases: Vec<Case<'_>> = cases.into_iter().map(whole).collect();
        gated().assert_new(check_tracker, &tracker(), &cases);
        let off = World::default();
        assert_fields("without the gate", &off.run(|cx| check_tracker(cx, &read(tracker()), None)), &[""]);
        let old = read(tracker());
        let other = read(patched(&tracker(), &json!({"spec": {"source": {"name": "x"}}})));
        assert_fields("kept", &off.run(|cx| check_tracker(cx, &read(tracker()), Some(&old))), &[]);
        assert_fields("changed", &off.run(|cx| check_tracker(cx, &other, Some(&old))), &["spec"]);
    }
}
