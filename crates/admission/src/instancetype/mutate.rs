//! Completes a VM's references and takes from its preference what has to be stored with the VM.

use kubevirt_api::preference::VirtualMachinePreferenceSpec;
use kubevirt_api::vm::VirtualMachine;

use super::reference::{Matcher, Role};
use super::{find, infer};
use crate::{Context, Operation, Path, Problems};

/// Checks and infers the references of a VM, then fills in architecture, machine type and storage classes from
/// its preference.
pub fn apply(cx: &Context<'_>, vm: &mut VirtualMachine, old: Option<&VirtualMachine>) -> Problems {
    let mut problems = Problems::default();
    for role in Role::ALL {
        check(role, vm, &mut problems);
        if let Some(old) = old.filter(|_| cx.request.operation == Operation::Update) {
            check_change(role, vm, old, &mut problems);
        }
    }
    if !problems.is_empty() {
        return problems;
    }
    for role in Role::ALL {
        problems.append(infer::infer(cx.objects, vm, role));
    }
    if !problems.is_empty() {
        return problems;
    }
    // A preference that does not exist yet is no reason to refuse the VM: it cannot start until it does.
    if let Ok(Some(preference)) = find::preference(cx.objects, vm) {
        prefer(vm, &preference);
    }
    problems
}

/// What a reference may say.
fn check(role: Role, vm: &VirtualMachine, problems: &mut Problems) {
    let Some(matcher) = role.matcher(vm) else { return };
    let field = Path::new(role.field());
    let Matcher { name, kind, infer_from_volume, failure_policy, .. } = matcher;
    if name.is_empty() && infer_from_volume.is_empty() {
        let message = format!("give the name of the {}, or a volume to infer it from", role.what());
        problems.not_found(&field, message);
    }
    if !infer_from_volume.is_empty() {
        for (part, text) in [("name", name), ("kind", kind)] {
            if !text.is_empty() {
                let message =
                    format!("{text:?} is to be inferred from the volume {infer_from_volume:?}: leave it out");
                problems.not_supported(&field.at(part), message);
            }
        }
    }
    if let Some(policy) = failure_policy.filter(|policy| !policy.is_known()) {
        let message = format!("{:?} is not a failure policy: use Reject or Ignore", policy.as_str());
        problems.invalid(&field.at("inferFromVolumeFailurePolicy"), message);
    }
}

/// What may become of a reference that was there before.
fn check_change(role: Role, vm: &VirtualMachine, old: &VirtualMachine, problems: &mut Problems) {
    let (Some(new), Some(old)) = (role.matcher(vm), role.matcher(old)) else { return };
    let pinned = !new.revision_name.is_empty() && new.revision_name == old.revision_name;
    if pinned && new.name != old.name {
        let message = format!(
            "the revision {:?} keeps the {} {:?}, but the name is now {:?}: clear the revision along with the change",
            new.revision_name,
            role.what(),
            old.name,
            new.name,
        );
        problems.invalid(&Path::new(role.field()).at("revisionName"), message);
    }
}

/// Fills in what is decided when a VM is stored, not when it starts.
fn prefer(vm: &mut VirtualMachine, preference: &VirtualMachinePreferenceSpec) {
    let filled = |text: Option<&String>| text.filter(|text| !text.is_empty()).cloned();
    if let Some(architecture) = filled(preference.preferred_architecture.as_ref()) {
        let own = &mut vm.spec.template.spec.get_or_insert_default().architecture;
        if filled(own.as_ref()).is_none() {
            *own = Some(architecture);
        }
    }
    let machine = preference.machine.as_ref().and_then(|machine| machine.preferred_machine_type.as_ref());
    if let Some(machine) = filled(machine) {
        let domain = &mut vm.spec.template.spec.get_or_insert_default().domain;
        let own = &mut domain.machine.get_or_insert_default().type_;
        if filled(own.as_ref()).is_none() {
            *own = Some(machine);
        }
    }
    let class = preference.volumes.as_ref().and_then(|v| v.preferred_storage_class_name.as_ref());
    if let Some(class) = filled(class) {
        for template in vm.spec.data_volume_templates.iter_mut().flatten() {
            // An empty class is a choice too: no class at all.
            let claim = template.spec.pvc.as_mut().map(|claim| &mut claim.storage_class_name);
            let storage = template.spec.storage.as_mut().map(|storage| &mut storage.storage_class_name);
            for own in claim.into_iter().chain(storage) {
                own.get_or_insert_with(|| class.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, patched, read, shared};

    fn base() -> Value {
        json!({
            "metadata": { "name": "vm", "namespace": "default" },
            "spec": { "template": { "spec": { "domain": { "devices": {} } } } },
        })
    }

    fn vm(spec: &Value) -> VirtualMachine {
        read(patched(&base(), &json!({ "spec": spec })))
    }

    #[test]
    fn a_reference_names_an_object_or_a_volume_and_not_both() {
        let cases = [
            ("none", json!(null), vec![]),
            ("named", json!({ "name": "a" }), vec![]),
            ("named with kind", json!({ "name": "a", "kind": "b" }), vec![]),
            ("empty", json!({}), vec![""]),
            ("empty texts", json!({ "name": "", "inferFromVolume": "" }), vec![""]),
            ("only a kind", json!({ "kind": "b" }), vec![""]),
            ("both", json!({ "name": "a", "inferFromVolume": "v" }), vec![".name"]),
            ("kind and volume", json!({ "kind": "b", "inferFromVolume": "v" }), vec![".kind"]),
            ("all", json!({ "name": "a", "kind": "b", "inferFromVolume": "v" }), vec![".name", ".kind"]),
            ("volume", json!({ "inferFromVolume": "v" }), vec![".inferFromVolume"]),
            ("policy", json!({ "name": "a", "inferFromVolumeFailurePolicy": "Ignore" }), vec![]),
            (
                "no such policy",
                json!({ "name": "a", "inferFromVolumeFailurePolicy": "Retry" }),
                vec![".inferFromVolumeFailurePolicy"],
            ),
            (
                "empty policy",
                json!({ "name": "a", "inferFromVolumeFailurePolicy": "" }),
                vec![".inferFromVolumeFailurePolicy"],
            ),
        ];
        for (name, matcher, expected) in cases {
            for (field, role) in [("instancetype", Role::Instancetype), ("preference", Role::Preference)] {
                let mut vm = vm(&json!({ field: matcher }));
                let expected: Vec<String> =
                    expected.iter().map(|end| format!("{}{end}", role.field())).collect();
                let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
                let problems = World::default().run(|cx| apply(cx, &mut vm, None));
                assert_fields(name, &problems, &expected);
            }
        }
    }

    #[test]
    fn a_new_name_needs_a_new_revision() {
        let matcher = |name: &str, revision: &str| json!({ "name": name, "revisionName": revision });
        let cases = [
            ("unchanged", matcher("a", "r"), matcher("a", "r"), false),
            ("renamed", matcher("a", "r"), matcher("b", "r"), true),
            ("renamed and cleared", matcher("a", "r"), matcher("b", ""), false),
            ("renamed with a new revision", matcher("a", "r"), matcher("b", "s"), false),
            ("renamed without revisions", matcher("a", ""), matcher("b", ""), false),
            ("pinned", matcher("a", ""), matcher("a", "r"), false),
            ("repinned", matcher("a", "r"), matcher("a", "s"), false),
            ("added", json!(null), matcher("a", "r"), false),
            ("removed", matcher("a", "r"), json!(null), false),
        ];
        for (name, old, new, refused) in cases {
            for (field, role) in [("instancetype", Role::Instancetype), ("preference", Role::Preference)] {
                let (old, mut new) = (vm(&json!({ field: old })), vm(&json!({ field: new })));
                let path = format!("{}.revisionName", role.field());
                let expected = if refused { vec![path.as_str()] } else { Vec::new() };
                let problems = World::default().updating().run(|cx| apply(cx, &mut new, Some(&old)));
                assert_fields(name, &problems, &expected);
            }
        }
    }

    fn world(preference: Value) -> World {
        let mut world = World::default();
        world.objects.cluster_preferences =
            vec![shared(json!({ "metadata": { "name": "p" }, "spec": preference }))];
        world
    }

    #[test]
    fn a_preference_fills_in_what_is_stored_with_the_vm() {
        let preference = json!({
            "preferredArchitecture": "arm64",
            "machine": { "preferredMachineType": "virt-9" },
            "volumes": { "preferredStorageClassName": "fast" },
        });
        let template = |spec: Value| json!({ "metadata": { "name": "d" }, "spec": spec });
        let templates = json!([
            template(json!({ "pvc": {} })),
            template(json!({ "storage": {} })),
            template(json!({ "pvc": { "storageClassName": "" } })),
            template(json!({ "storage": { "storageClassName": "slow" } })),
            template(json!({})),
        ]);
        let mut open = vm(&json!({ "preference": { "name": "p" }, "dataVolumeTemplates": templates }));
        assert_fields("open", &world(preference.clone()).run(|cx| apply(cx, &mut open, None)), &[]);
        let open = json!(open.spec);
        assert_eq!(open["template"]["spec"]["architecture"], "arm64");
        assert_eq!(open["template"]["spec"]["domain"]["machine"]["type"], "virt-9");
        let class = |index: usize| &open["dataVolumeTemplates"][index]["spec"];
        assert_eq!(class(0)["pvc"]["storageClassName"], "fast");
        assert_eq!(class(1)["storage"]["storageClassName"], "fast");
        assert_eq!(class(2)["pvc"]["storageClassName"], "");
        assert_eq!(class(3)["storage"]["storageClassName"], "slow");
        assert_eq!(class(4), &json!({}));

        let mut decided = vm(&json!({
            "preference": { "name": "p" },
            "template": { "spec": { "architecture": "amd64", "domain": { "machine": { "type": "q35" } } } },
        }));
        let before = decided.clone();
        world(preference.clone()).run(|cx| apply(cx, &mut decided, None));
        assert_eq!(decided, before);

        let mut empty = vm(&json!({ "preference": { "name": "p" }, "template": { "spec": null } }));
        world(preference).run(|cx| apply(cx, &mut empty, None));
        assert_eq!(empty.spec.template.spec.unwrap().architecture.as_deref(), Some("arm64"));
    }

    #[test]
    fn a_preference_that_is_silent_or_missing_changes_nothing() {
        let silent = json!({
            "preferredArchitecture": "", "machine": {}, "volumes": { "preferredStorageClassName": "" },
        });
        for name in ["p", "missing"] {
            let mut vm = vm(&json!({
                "preference": { "name": name },
                "dataVolumeTemplates": [{ "metadata": { "name": "d" }, "spec": { "pvc": {} } }],
            }));
            let before = vm.clone();
            assert_fields(name, &world(silent.clone()).run(|cx| apply(cx, &mut vm, None)), &[]);
            assert_eq!(vm, before, "{name}");
        }
    }

    #[test]
    fn inference_comes_before_the_preference_is_used() {
        let mut world = world(json!({ "preferredArchitecture": "s390x" }));
        world.objects.claims = vec![shared(json!({
            "metadata": {
                "name": "disk", "namespace": "default",
                "labels": { "instancetype.kubevirt.io/default-preference": "p" },
            },
        }))];
        let mut vm = vm(&json!({
            "preference": { "inferFromVolume": "root" },
            "template": { "spec": { "volumes": [
                { "name": "root", "persistentVolumeClaim": { "claimName": "disk" } },
            ] } },
        }));
        assert_fields("inferred", &world.run(|cx| apply(cx, &mut vm, None)), &[]);
        assert_eq!(vm.spec.template.spec.unwrap().architecture.as_deref(), Some("s390x"));
    }
}
