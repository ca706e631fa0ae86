//! Rules for `VirtualMachineInstanceMigration`.

use kubevirt_api::migration::{MigrationPhase, VirtualMachineInstanceMigration};
use kubevirt_api::names::conditions::vmi::LIVE_MIGRATABLE;
use kubevirt_api::names::labels::MIGRATION_VMI_NAME;
use kubevirt_api::names::reasons::vmi::DISKS_NOT_LIVE_MIGRATABLE;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;

use super::names;
use super::same::same;
use crate::{Context, Gate, Path, Problems, Reason};

/// How the service account of the one component ends that may set a priority.
const CONTROLLER_ACCOUNT: &str = "kubevirt-controller";

/// Everything that is wrong with a migration.
pub fn check(
    cx: &Context<'_>,
    new: &VirtualMachineInstanceMigration,
    old: Option<&VirtualMachineInstanceMigration>,
) -> Problems {
    let mut problems = Problems::default();
    match old {
        Some(old) => check_change(new, old, &mut problems),
        None => check_new(cx, new, &mut problems),
    }
    problems
}

fn check_new(cx: &Context<'_>, new: &VirtualMachineInstanceMigration, problems: &mut Problems) {
    let spec = &new.spec;
    match spec.vmi_name.as_deref().unwrap_or_default() {
        "" => problems.required(&Path::new("spec.vmiName"), "is missing: name the instance to move"),
        name => check_instance(cx, new, name, problems),
    }
    let by_controller = cx.by_own_component() && cx.request.user.name.ends_with(CONTROLLER_ACCOUNT);
    if spec.priority.is_some() && !by_controller {
        problems.forbidden(
            &Path::new("spec.migrationPriority"),
            "only virt-controller sets the priority of migrations",
        );
    }
    if (spec.send_to.is_some() || spec.receive.is_some())
        && !cx.config.enabled(Gate::DecentralizedLiveMigration)
    {
        let gate = Gate::DecentralizedLiveMigration.name();
        problems.not_supported(&Path::WHOLE, format!("sendTo and receive need the feature gate {gate}"));
    }
    if let (Some(send_to), Some(receive)) = (&spec.send_to, &spec.receive)
        && send_to.migration_id != receive.migration_id
    {
        let (sent, received) = (&send_to.migration_id, &receive.migration_id);
        problems.invalid(
            &Path::WHOLE,
            format!("the migrationID of sendTo, {sent:?}, and of receive, {received:?}, differ"),
        );
    }
}

/// The instance must be there, alive and movable, and nothing else may be moving it.
fn check_instance(
    cx: &Context<'_>,
    new: &VirtualMachineInstanceMigration,
    name: &str,
    problems: &mut Problems,
) {
    let namespace = cx.request.namespace.as_str();
    let Some(vmi) = cx.objects.vmi(namespace, name) else {
        problems.not_found(&Path::WHOLE, format!("there is no instance {name:?} in namespace {namespace:?}"));
        return;
    };
    if is_over(&vmi) {
        problems.invalid(&Path::WHOLE, format!("instance {name:?} has ended and cannot be moved"));
        return;
    }
    if let Some(why) = why_not_migratable(&vmi, new) {
        problems.invalid(&Path::WHOLE, format!("instance {name:?} cannot be moved: {why}"));
    }
    if !names::is_label_value(name) {
        problems.invalid(
            &Path::WHOLE,
            format!("the name {name:?} is too long for a label, so its migrations cannot be found"),
        );
    }
    let running = cx.objects.migrations(namespace).into_iter().find(|other| {
        let labels = other.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(MIGRATION_VMI_NAME)).is_some_and(|of| of == name)
            && !is_final(other)
    });
    if let Some(other) = running {
        let other = other.metadata.name.as_deref().unwrap_or_default();
        problems.invalid(&Path::WHOLE, format!("migration {other:?} of instance {name:?} is not over yet"));
    }
}

fn is_over(vmi: &VirtualMachineInstance) -> bool {
    let phase = vmi.status.as_ref().and_then(|status| status.phase.as_ref());
    matches!(phase, Some(VmiPhase::Succeeded | VmiPhase::Failed))
}

/// Whether a migration has come to its end.
fn is_final(migration: &VirtualMachineInstanceMigration) -> bool {
    let phase = migration.status.as_ref().and_then(|status| status.phase.as_ref());
    matches!(phase, Some(MigrationPhase::Succeeded | MigrationPhase::Failed))
}

fn why_not_migratable(vmi: &VirtualMachineInstance, new: &VirtualMachineInstanceMigration) -> Option<String> {
    // Between clusters the disks are copied along.
    let copies_disks = new.spec.send_to.is_some() != new.spec.receive.is_some();
    let conditions = vmi.status.as_ref()?.conditions.as_deref()?;
    let no = conditions.iter().find(|condition| {
        condition.type_ == LIVE_MIGRATABLE
            && condition.status == "False"
            && !(copies_disks && condition.reason.as_deref() == Some(DISKS_NOT_LIVE_MIGRATABLE))
    })?;
    let (reason, message) =
        (no.reason.as_deref().unwrap_or_default(), no.message.as_deref().unwrap_or_default());
    Some(format!("{reason} ({message})"))
}

fn check_change(
    new: &VirtualMachineInstanceMigration,
    old: &VirtualMachineInstanceMigration,
    problems: &mut Problems,
) {
    if !same(&new.spec, &old.spec) {
        problems
            .not_supported(&Path::WHOLE, "spec cannot be changed; delete the migration and make a new one");
    }
    let label = |migration: &VirtualMachineInstanceMigration| {
        migration.metadata.labels.as_ref().and_then(|labels| labels.get(MIGRATION_VMI_NAME)).cloned()
    };
    let before = label(old);
    if !is_final(new) && before.is_some() && before != label(new) {
        problems.add(
            Reason::NotSupported,
            &Path::WHOLE,
            format!("the label {MIGRATION_VMI_NAME} stays as it is until the migration is over"),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, patched, read, shared};

    fn base() -> Value {
        json!({ "metadata": { "name": "move", "namespace": "default" }, "spec": { "vmiName": "vm" } })
    }

    fn world(vmi_status: Value) -> World {
        let mut world = World::default();
        world.objects.vmis.push(shared(json!({
            "metadata": { "name": "vm", "namespace": "default" },
            "spec": { "domain": { "devices": {} } },
            "status": vmi_status,
        })));
        world
    }

    fn immovable(reason: &str) -> Value {
        json!({ "conditions": [{ "type": "LiveMigratable", "status": "False", "reason": reason }] })
    }

    #[test]
    fn the_instance_must_be_there_and_movable() {
        let cases = [
            ("running", json!({ "phase": "Running" }), json!({}), &[][..]),
            ("no such instance", json!({}), json!({ "spec": { "vmiName": "other" } }), &[""]),
            ("no name", json!({}), json!({ "spec": { "vmiName": null } }), &["spec.vmiName"]),
            ("empty name", json!({}), json!({ "spec": { "vmiName": "" } }), &["spec.vmiName"]),
            ("succeeded", json!({ "phase": "Succeeded" }), json!({}), &[""]),
            ("failed", json!({ "phase": "Failed" }), json!({}), &[""]),
            (
                "movable",
                json!({ "conditions": [{ "type": "LiveMigratable", "status": "True" }] }),
                json!({}),
                &[],
            ),
            ("immovable", immovable("HostDeviceNotLiveMigratable"), json!({}), &[""]),
            ("disks", immovable("DisksNotLiveMigratable"), json!({}), &[""]),
        ];
        for (case, status, patch, expected) in cases {
            let migration = read(patched(&base(), &patch));
            assert_fields(case, &world(status).run(|cx| check(cx, &migration, None)), expected);
        }
    }

    #[test]
    fn one_migration_at_a_time() {
        for (phase, expected) in
            [("Running", &[""][..]), ("Pending", &[""]), ("", &[""]), ("Succeeded", &[]), ("Failed", &[])]
        {
            let mut world = world(json!({ "phase": "Running" }));
            let other = |namespace: &str, name: &str| {
                shared(json!({
                    "metadata": { "name": name, "namespace": namespace, "labels": { "kubevirt.io/vmi-name": "vm" } },
                    "spec": { "vmiName": "vm" },
                    "status": { "phase": if namespace == "default" { phase } else { "Running" } },
                }))
            };
            world.objects.migrations = vec![other("elsewhere", "a"), other("default", "b")];
            assert_fields(phase, &world.run(|cx| check(cx, &read(base()), None)), expected);
        }
    }

    #[test]
    fn priorities_are_for_the_controller() {
        let migration = read(patched(&base(), &json!({ "spec": { "priority": "system-critical" } })));
        let by = |user: &str| world(json!({})).by(user).run(|cx| check(cx, &migration, None));
        let controller = "system:serviceaccount:kubevirt:kubevirt-controller";
        assert_fields("controller", &by(controller), &[]);
        assert_fields("user", &by("alice"), &["spec.migrationPriority"]);
        assert_fields(
            "handler",
            &by("system:serviceaccount:kubevirt:kubevirt-handler"),
            &["spec.migrationPriority"],
        );
        assert_fields(
            "elsewhere",
            &by("system:serviceaccount:x:kubevirt-controller"),
            &["spec.migrationPriority"],
        );
    }

    #[test]
    fn moves_between_clusters() {
        let send = |id: &str| json!({ "migrationID": id, "connectURL": "host:9185" });
        let receive = |id: &str| json!({ "migrationID": id });
        let gated = || world(immovable("DisksNotLiveMigratable"));
        let on = |world: World| world.with_gates(&["DecentralizedLiveMigration"]);
        let cases = [
            ("gate is off", gated(), json!({ "sendTo": send("1") }), &[""][..]),
            ("sends", on(gated()), json!({ "sendTo": send("1") }), &[]),
            ("receives", on(gated()), json!({ "receive": receive("1") }), &[]),
            ("other reason", on(world(immovable("X"))), json!({ "receive": receive("1") }), &[""]),
            ("both ends", on(world(json!({}))), json!({ "sendTo": send("1"), "receive": receive("1") }), &[]),
            (
                "two names",
                on(world(json!({}))),
                json!({ "sendTo": send("1"), "receive": receive("2") }),
                &[""],
            ),
            (
                "both ends copy nothing",
                on(gated()),
                json!({ "sendTo": send("1"), "receive": receive("1") }),
                &[""],
            ),
        ];
        for (case, world, patch, expected) in cases {
            let migration = read(patched(&base(), &json!({ "spec": patch })));
            assert_fields(case, &world.run(|cx| check(cx, &migration, None)), expected);
        }
    }

    #[test]
    fn a_migration_stays_as_it_was_made() {
        let old = json!({
            "metadata": { "name": "move", "labels": { "kubevirt.io/vmi-name": "vm", "x": "y" } },
            "spec": { "vmiName": "vm" },
        });
        let without_label = json!({ "metadata": { "labels": { "kubevirt.io/vmi-name": null } } });
        let cases = [
            ("same", json!({}), &[][..]),
            ("empty selector", json!({ "spec": { "addedNodeSelector": {} } }), &[]),
            ("other instance", json!({ "spec": { "vmiName": "b" } }), &[""]),
            ("selector", json!({ "spec": { "addedNodeSelector": { "a": "b" } } }), &[""]),
            ("priority", json!({ "spec": { "priority": "user-triggered" } }), &[""]),
            ("label gone", without_label.clone(), &[""]),
            ("labels gone", json!({ "metadata": { "labels": null } }), &[""]),
            ("label changed", json!({ "metadata": { "labels": { "kubevirt.io/vmi-name": "b" } } }), &[""]),
            ("other label", json!({ "metadata": { "labels": { "x": "z" } } }), &[]),
            (
                "label gone at the end",
                patched(&without_label, &json!({ "status": { "phase": "Failed" } })),
                &[],
            ),
            ("both", json!({ "metadata": { "labels": null }, "spec": { "vmiName": "b" } }), &["", ""]),
        ];
        World::default().updating().assert_changed(check, &old, &cases);
    }
}
