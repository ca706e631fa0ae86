//! Rules for `VirtualMachineInstanceMigration`.

use kubevirt_api::condition;
use kubevirt_api::migration::{MigrationPhase, VirtualMachineInstanceMigration};
use kubevirt_api::names::accounts;
use kubevirt_api::names::conditions::vmi::LIVE_MIGRATABLE;
use kubevirt_api::names::labels::MIGRATION_VMI_NAME;
use kubevirt_api::names::reasons::vmi::DISKS_NOT_LIVE_MIGRATABLE;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;

use super::names;
use super::same::same;
use crate::{Context, Gate, Path, Problems};

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
    if spec.priority.is_some() && !cx.by_account(accounts::CONTROLLER) {
        let message = "only virt-controller sets the priority of migrations";
        problems.forbidden(&Path::new("spec.migrationPriority"), message);
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
        let message = format!("the migrationID of sendTo, {sent:?}, and of receive, {received:?}, differ");
        problems.invalid(&Path::WHOLE, message);
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
        let message = format!("the name {name:?} is too long for a label, so its migrations cannot be found");
        problems.invalid(&Path::WHOLE, message);
    }
    let mut migrations = cx.objects.migrations(namespace).into_iter();
    if let Some(other) = migrations.find(|other| instance_of(other) == Some(name) && !is_final(other)) {
        let other = other.metadata.name.as_deref().unwrap_or_default();
        let message = format!("in-flight migration detected. {other:?} of instance {name:?} is not over yet");
        problems.invalid(&Path::WHOLE, message);
    }
}

/// Whether an instance has come to its end.
fn is_over(vmi: &VirtualMachineInstance) -> bool {
    let phase = vmi.status.as_ref().and_then(|status| status.phase.as_ref());
    matches!(phase, Some(VmiPhase::Succeeded | VmiPhase::Failed))
}

/// Whether a migration has come to its end.
fn is_final(migration: &VirtualMachineInstanceMigration) -> bool {
    let phase = migration.status.as_ref().and_then(|status| status.phase.as_ref());
    matches!(phase, Some(MigrationPhase::Succeeded | MigrationPhase::Failed))
}

/// What an instance says against being moved, if it says anything.
fn why_not_migratable(vmi: &VirtualMachineInstance, new: &VirtualMachineInstanceMigration) -> Option<String> {
    let conditions = vmi.status.as_ref()?.conditions.as_deref();
    let no = condition::find(conditions, LIVE_MIGRATABLE).filter(|condition| condition.status == "False")?;
    let reason = no.reason.as_deref().unwrap_or_default();
    // Between clusters the disks are copied along.
    let copies_disks = new.spec.send_to.is_some() != new.spec.receive.is_some();
    if copies_disks && reason == DISKS_NOT_LIVE_MIGRATABLE {
        return None;
    }
    Some(format!("{reason} ({})", no.message.as_deref().unwrap_or_default()))
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
    let before = instance_of(old);
    if !is_final(new) && before.is_some() && before != instance_of(new) {
        let message = format!("the label {MIGRATION_VMI_NAME} stays as it is until the migration is over");
        problems.not_supported(&Path::WHOLE, message);
    }
}

/// The instance that a migration is labelled with.
fn instance_of(migration: &VirtualMachineInstanceMigration) -> Option<&str> {
    migration.metadata.labels.as_ref()?.get(MIGRATION_VMI_NAME).map(String::as_str)
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
