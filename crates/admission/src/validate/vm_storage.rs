//! What storage has to say to a change of a virtual machine: its data volumes, its snapshots, its restores.
//!
//! Whether the user may clone the source of a data volume from another namespace is a question to the cluster:
//! whoever calls these rules asks it.

use kubevirt_api::vm::{RunStrategy, VirtualMachine, VirtualMachineSpec};
use kubevirt_api::vmi::volumes::Volume;

use super::same::same;
use crate::{Context, Operation, Path, Problems};

/// Everything that is wrong with a VM, new or changed, that storage knows of.
pub fn check(cx: &Context<'_>, new: &VirtualMachine, old: Option<&VirtualMachine>) -> Problems {
    let mut problems = Problems::default();
    check_namespaces(cx, new, old, &mut problems);
    problems.append(check_status(cx, new, old));
    problems
}

/// Everything that is wrong with a change of a VM while a snapshot is taken of it or it is restored.
///
/// It holds for writes of the VM and of its status alike.
pub fn check_status(cx: &Context<'_>, new: &VirtualMachine, old: Option<&VirtualMachine>) -> Problems {
    let mut problems = Problems::default();
    let (Some(status), Some(old)) = (&new.status, old.filter(|_| cx.request.operation == Operation::Update))
    else {
        return problems;
    };
    let spec = Path::new("spec");
    if let Some(snapshot) = &status.snapshot_in_progress {
        if !same(&volumes_of(old), &volumes_of(new)) {
            let message = format!("volumes cannot change until the snapshot {snapshot:?} is complete");
            problems.not_supported(&spec, message);
        }
        if !runs_the_same(&old.spec, &new.spec) {
            let message =
                format!("the VM cannot be started or stopped until the snapshot {snapshot:?} is complete");
            problems.not_supported(&spec, message);
        }
    }
    if let Some(restore) = &status.restore_in_progress
        && run_strategy(&old.spec) != run_strategy(&new.spec)
    {
        let message = format!("Cannot update VM runStrategy until restore {restore:?} completes");
        problems.not_supported(&spec, message);
    }
    problems
}

/// The data volumes of a VM are made in its own namespace.
fn check_namespaces(
    cx: &Context<'_>,
    new: &VirtualMachine,
    old: Option<&VirtualMachine>,
    problems: &mut Problems,
) {
    let templates = new.spec.data_volume_templates.as_deref().unwrap_or_default();
    // What was let in before is let be.
    if old.is_some_and(|old| same(&old.spec.data_volume_templates, &new.spec.data_volume_templates)) {
        return;
    }
    let own = new.metadata.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    let own = own.unwrap_or(&cx.request.namespace);
    let list = Path::new("spec.dataVolumeTemplates");
    for (index, template) in templates.iter().enumerate() {
        let namespace = template.metadata.as_ref().and_then(|metadata| metadata.namespace.as_deref());
        if let Some(other) = namespace.filter(|namespace| !namespace.is_empty() && *namespace != own) {
            let message =
                format!("the data volume is for the namespace {other:?}, the VM is in {own:?}: leave it out");
            problems.invalid(&list.index(index), message);
        }
    }
}

fn volumes_of(vm: &VirtualMachine) -> Option<&Vec<Volume>> {
    vm.spec.template.spec.as_ref()?.volumes.as_ref()
}

/// Whether two specifications say in the same words whether the VM runs.
fn runs_the_same(old: &VirtualMachineSpec, new: &VirtualMachineSpec) -> bool {
    match ((old.running, new.running), (&old.run_strategy, &new.run_strategy)) {
        ((Some(old), Some(new)), _) => old == new,
        (_, (Some(old), Some(new))) => old == new,
        _ => false,
    }
}

/// The strategy that a specification asks for, or none if it asks for two.
fn run_strategy(spec: &VirtualMachineSpec) -> Option<RunStrategy> {
    match (spec.running, &spec.run_strategy) {
        (Some(_), Some(_)) => None,
        (Some(true), None) => Some(RunStrategy::Always),
        (Some(false) | None, None) => Some(RunStrategy::Halted),
        (None, Some(strategy)) => Some(strategy.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Reason;
    use crate::testing::{World, assert_fields, patched, read};

    fn base() -> Value {
        json!({
            "metadata": {"name": "vm", "namespace": "default"},
            "spec": {
                "runStrategy": "Always",
                "template": {"spec": {
                    "domain": {"devices": {}},
                    "volumes": [{"name": "a", "dataVolume": {"name": "d"}}],
                }},
            },
        })
    }

    fn found(world: &World, new: &Value, old: Option<&Value>) -> Problems {
        let old: Option<VirtualMachine> = old.cloned().map(read);
        world.run(|cx| check(cx, &read(new.clone()), old.as_ref()))
    }

    #[test]
    fn data_volumes_are_in_the_namespace_of_their_vm() {
        let machine = |namespaces: &[&str]| {
            let templates: Vec<Value> = namespaces
                .iter()
                .map(|namespace| json!({"metadata": {"namespace": namespace}, "spec": {}}))
                .collect();
            patched(&base(), &json!({"spec": {"dataVolumeTemplates": templates}}))
        };
        let world = World::default();
        assert_fields("none", &found(&world, &base(), None), &[]);
        assert_fields("its own", &found(&world, &machine(&["default", ""]), None), &[]);
        let field = "spec.dataVolumeTemplates[1]";
        assert_fields("another", &found(&world, &machine(&["default", "other"]), None), &[field]);
        let mut nowhere = machine(&["default", "other"]);
        nowhere["metadata"]["namespace"] = "".into();
        assert_fields("the request's", &found(&world, &nowhere, None), &[field]);
        let updating = World::default().updating();
        let other = machine(&["other"]);
        assert_fields("as before", &found(&updating, &other, Some(&other)), &[]);
        assert_fields("new", &found(&updating, &other, Some(&base())), &["spec.dataVolumeTemplates[0]"]);
    }

    #[test]
    fn a_vm_keeps_still_for_a_snapshot_and_a_restore() {
        let volumes = json!({"spec": {"template": {"spec": {"volumes": []}}}});
        let reworded = json!({"spec": {"template": {"spec": {"volumes": [
            {"name": "a", "dataVolume": {"name": "d", "hotpluggable": false}},
        ]}}}});
        let halted = json!({"spec": {"runStrategy": "Halted"}});
        let running = json!({"spec": {"runStrategy": null, "running": true}});
        let both = json!({"spec": {"runStrategy": "Halted", "template": {"spec": {"volumes": []}}}});
        let labels = json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}});
        // What changes, and how many problems that makes during a snapshot and during a restore.
        let cases = [
            ("nothing", json!({}), 0, 0),
            ("a label", labels, 0, 0),
            ("the volumes", volumes, 1, 0),
            ("the volumes in other words", reworded, 0, 0),
            ("the run strategy", halted, 1, 1),
            ("the run strategy in other words", running, 1, 0),
            ("volumes and run strategy", both, 2, 1),
        ];
        let world = World::default().updating();
        let snapshot = json!({"status": {"snapshotInProgress": "s"}});
        let restore = json!({"status": {"restoreInProgress": "r"}});
        for (case, change, in_snapshot, in_restore) in cases {
            let new = patched(&base(), &change);
            assert_fields(case, &found(&world, &new, Some(&base())), &[]);
            let new_in = |status: &Value| patched(&new, status);
            assert_fields(
                case,
                &found(&world, &new_in(&snapshot), Some(&base())),
                &vec!["spec"; in_snapshot],
            );
            assert_fields(case, &found(&world, &new_in(&restore), Some(&base())), &vec!["spec"; in_restore]);
            assert_fields(case, &found(&World::default(), &new_in(&snapshot), None), &[]);
        }
    }

    #[test]
    fn what_waits_is_not_supported() {
        let new = patched(
            &base(),
            &json!({"spec": {"runStrategy": "Halted"}, "status": {"restoreInProgress": "r"}}),
        );
        let problems = found(&World::default().updating(), &new, Some(&base()));
        assert!(problems.iter().all(|problem| problem.reason == Reason::NotSupported));
    }

    #[test]
    fn running_counts_as_a_run_strategy() {
        let spec = |running: Option<bool>, strategy: Option<&str>| VirtualMachineSpec {
            running,
            run_strategy: strategy.map(RunStrategy::from),
            ..VirtualMachineSpec::default()
        };
        assert_eq!(run_strategy(&spec(Some(true), None)), Some(RunStrategy::Always));
        assert_eq!(run_strategy(&spec(Some(false), None)), Some(RunStrategy::Halted));
        assert_eq!(run_strategy(&spec(None, None)), Some(RunStrategy::Halted));
        assert_eq!(run_strategy(&spec(None, Some("Manual"))), Some(RunStrategy::Manual));
        assert_eq!(run_strategy(&spec(Some(true), Some("Manual"))), None);
        assert!(runs_the_same(&spec(Some(true), None), &spec(Some(true), None)));
        assert!(!runs_the_same(&spec(Some(true), None), &spec(Some(false), None)));
        assert!(!runs_the_same(&spec(None, None), &spec(None, None)));
    }
}
