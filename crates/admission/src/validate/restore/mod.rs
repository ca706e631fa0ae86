//! Restores of virtual machines from snapshots.

mod patches;

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use kubevirt_api::names::groups;
use kubevirt_api::restore::{VirtualMachineRestore, VirtualMachineRestoreSpec, VolumeRestorePolicy};
use kubevirt_api::snapshot::{VirtualMachineSnapshot, VolumeOwnershipPolicy};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use super::same::same;
use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong with a restore.
pub fn check(cx: &Context<'_>, new: &VirtualMachineRestore, old: Option<&VirtualMachineRestore>) -> Problems {
    let mut problems = Problems::default();
    if let Some(old) = old {
        if !same(&new.spec, &old.spec) {
            problems.invalid(&Path::new("spec"), "a restore cannot be changed: make another");
        }
        return problems;
    }
    if !cx.config.enabled(Gate::Snapshot) {
        let gate = Gate::Snapshot.name();
        problems.forbidden(&Path::WHOLE, format!("restores need the feature gate {gate}"));
    }
    if is_vm(&new.spec.target, &mut problems) {
        check_target(cx, new, &mut problems);
        check_overrides(&new.spec, &mut problems);
        check_policies(&new.spec, &mut problems);
    }
    for other in cx.objects.restores(&cx.request.namespace) {
        let complete = other.status.as_ref().and_then(|status| status.complete) == Some(true);
        if !complete && same(&other.spec.target, &new.spec.target) {
            let name = other.metadata.name.as_deref().unwrap_or_default();
            let message = format!("VirtualMachineRestore {name:?} in progress: wait or delete it");
            problems.invalid(&Path::new("spec.target"), message);
        }
    }
    problems
}

fn is_vm(target: &TypedLocalObjectReference, problems: &mut Problems) -> bool {
    let path = Path::new("spec.target");
    match target.api_group.as_deref() {
        None => problems
            .not_found(&path.at("apiGroup"), format!("the group is missing: it is {}", groups::KUBEVIRT)),
        Some(groups::KUBEVIRT) if target.kind == "VirtualMachine" => return true,
        Some(groups::KUBEVIRT) => {
            let message = format!("{:?} cannot be restored: only VirtualMachine can", target.kind);
            problems.invalid(&path.at("kind"), message);
        }
        Some(other) => {
            problems.invalid(
                &path.at("apiGroup"),
                format!("{other:?} cannot be restored: only {} can", groups::KUBEVIRT),
            );
        }
    }
    false
}

/// What is known once the snapshot is there; a restore may be older than its snapshot.
fn check_target(cx: &Context<'_>, restore: &VirtualMachineRestore, problems: &mut Problems) {
    let namespace = restore.metadata.namespace.as_deref().unwrap_or(&cx.request.namespace);
    let Some(snapshot) = cx.objects.snapshot(namespace, &restore.spec.virtual_machine_snapshot_name) else {
        return;
    };
    for patch in restore.spec.patches.iter().flatten() {
        patches::check(patch, problems);
    }
    let target = cx.objects.vm(namespace, &restore.spec.target.name);
    let source = snapshot.status.as_ref().and_then(|status| status.source_uid.as_deref());
    let other_vm = match &target {
        None => true,
        Some(target) => source.is_some_and(|source| target.metadata.uid.as_deref() != Some(source)),
    };
    if !other_vm {
        return;
    }
    match snapshotted_spec(cx, namespace, &snapshot) {
        Err(why) => problems.invalid(&Path::WHOLE, why),
        Ok(spec) if spec.as_ref().is_some_and(keeps_state) => {
            let message =
                "the VM of the snapshot has a persistent TPM or EFI, which only itself can be restored to";
            problems.invalid(&Path::new("spec"), message);
        }
        Ok(_) => {}
    }
}

/// The specification of instances that the VM had when the snapshot was taken.
fn snapshotted_spec(
    cx: &Context<'_>,
    namespace: &str,
    snapshot: &VirtualMachineSnapshot,
) -> Result<Option<VirtualMachineInstanceSpec>, &'static str> {
    let status = snapshot.status.as_ref();
    let content = status.and_then(|status| status.virtual_machine_snapshot_content_name.as_deref());
    let content = content.ok_or("the snapshot has no content yet: wait until it is ready")?;
    let content = cx.objects.snapshot_content(namespace, content);
    let content = content.ok_or("the content of the snapshot is gone: take another snapshot")?;
    let vm = content.spec.source.virtual_machine.as_ref();
    let vm = vm.ok_or("the snapshot is not one of a VM")?;
    Ok(vm.spec.as_ref().and_then(|spec| spec.template.spec.clone()))
}

/// Whether instances keep state of their own, beside their volumes, over their lives.
fn keeps_state(spec: &VirtualMachineInstanceSpec) -> bool {
    let tpm = spec.domain.devices.tpm.as_ref();
    let bootloader = spec.domain.firmware.as_ref().and_then(|firmware| firmware.bootloader.as_ref());
    let efi = bootloader.and_then(|bootloader| bootloader.efi.as_ref());
    tpm.is_some_and(|tpm| tpm.enabled != Some(false) && tpm.persistent == Some(true))
        || efi.is_some_and(|efi| efi.persistent == Some(true))
}

fn check_overrides(spec: &VirtualMachineRestoreSpec, problems: &mut Problems) {
    let list = Path::new("spec.volumeRestoreOverrides");
    for (index, over) in spec.volume_restore_overrides.iter().flatten().enumerate() {
        let at = list.index(index);
        if over.volume_name.as_deref().unwrap_or_default().is_empty() {
            problems.required(&at.at("volumeName"), "the name of the volume is missing");
        }
        let renamed = over.restore_name.as_deref().is_some_and(|name| !name.is_empty());
        if !renamed && over.labels.is_none() && over.annotations.is_none() {
            let message = "nothing is overridden: set restoreName, labels or annotations";
            problems.required(&at, message);
        }
    }
}

fn check_policies(spec: &VirtualMachineRestoreSpec, problems: &mut Problems) {
    if let Some(policy) = spec.volume_restore_policy.as_ref().filter(|policy| !policy.is_known()) {
        let known = VolumeRestorePolicy::KNOWN.join(", ");
        let message = format!("{:?} is none of {known}", policy.as_str());
        problems.invalid(&Path::new("spec.volumeRestorePolicy"), message);
    }
    if let Some(policy) = spec.volume_ownership_policy.as_ref().filter(|policy| !policy.is_known()) {
        let known = VolumeOwnershipPolicy::KNOWN.join(", ");
        let message = format!("{:?} is none of {known}", policy.as_str());
        problems.invalid(&Path::new("spec.volumeOwnershipPolicy"), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Reason;
    use crate::testing::{World, assert_fields, patched, read, shared};

    fn base() -> Value {
        json!({
            "metadata": {"name": "r", "namespace": "default"},
            "spec": {
                "target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "vm"},
                "virtualMachineSnapshotName": "s",
            },
        })
    }

    fn world(vm_uid: Option<&str>, content: &Value) -> World {
        let mut world = World::default();
        let metadata = |name: &str| json!({"name": name, "namespace": "default"});
        if let Some(uid) = vm_uid {
            let metadata = patched(&metadata("vm"), &json!({"uid": uid}));
            world.objects.vms.push(shared(json!({"metadata": metadata})));
        }
        world.objects.snapshots.push(shared(json!({
            "metadata": metadata("s"),
            "spec": {"source": {"kind": "VirtualMachine", "name": "vm"}},
            "status": {"sourceUID": "1", "virtualMachineSnapshotContentName": "c"},
        })));
        let source = json!({"virtualMachine": {"spec": {"template": {"spec": content}}}});
        world
            .objects
            .snapshot_contents
            .push(shared(json!({"metadata": metadata("c"), "spec": {"source": source}})));
        world
    }

    fn found(world: &World, patch: &Value) -> Problems {
        world.run(|cx| check(cx, &read(patched(&base(), patch)), None))
    }

    #[test]
    fn a_restore_has_a_vm_and_known_policies() {
        let plain = json!({"domain": {"devices": {}}});
        let cases: Vec<(&str, Value, &[&str])> = vec![
            ("plain", json!({}), &[]),
            ("no group", json!({"target": {"apiGroup": null}}), &["spec.target.apiGroup"]),
            ("another group", json!({"target": {"apiGroup": "apps"}}), &["spec.target.apiGroup"]),
            ("another kind", json!({"target": {"kind": "VirtualMachineInstance"}}), &["spec.target.kind"]),
            ("random names", json!({"volumeRestorePolicy": "RandomizeNames"}), &[]),
            ("in place", json!({"volumeRestorePolicy": "InPlace"}), &[]),
            ("prefixed", json!({"volumeRestorePolicy": "PrefixTargetName"}), &[]),
            ("an unknown policy", json!({"volumeRestorePolicy": "Backwards"}), &["spec.volumeRestorePolicy"]),
            ("an empty policy", json!({"volumeRestorePolicy": ""}), &["spec.volumeRestorePolicy"]),
            ("owned by the VM", json!({"volumeOwnershipPolicy": "Vm"}), &[]),
            ("owned by none", json!({"volumeOwnershipPolicy": "None"}), &[]),
            ("an unknown owner", json!({"volumeOwnershipPolicy": "Me"}), &["spec.volumeOwnershipPolicy"]),
            ("a new name", json!({"volumeRestoreOverrides": [{"volumeName": "v", "restoreName": "r"}]}), &[]),
            ("labels", json!({"volumeRestoreOverrides": [{"volumeName": "v", "labels": {}}]}), &[]),
            (
                "annotations",
                json!({"volumeRestoreOverrides": [{"volumeName": "v", "annotations": {"a": "b"}}]}),
                &[],
            ),
            (
                "an empty override",
                json!({"volumeRestoreOverrides": [{}]}),
                &["spec.volumeRestoreOverrides[0].volumeName", "spec.volumeRestoreOverrides[0]"],
            ),
            (
                "nothing new",
                json!({"volumeRestoreOverrides": [{"volumeName": "v", "restoreName": ""}]}),
                &["spec.volumeRestoreOverrides[0]"],
            ),
        ];
        for (case, spec, expected) in cases {
            assert_fields(case, &found(&world(Some("1"), &plain), &json!({"spec": spec})), expected);
        }
        let off = World::default()
            .with_configuration(json!({"developerConfiguration": {"disabledFeatureGates": ["Snapshot"]}}));
        assert_fields("without the gate", &found(&off, &json!({})), &[""]);
    }

    #[test]
    fn problems_have_their_reasons() {
        let spec = json!({"volumeRestoreOverrides": [{}], "target": {"apiGroup": "kubevirt.io"}});
        let problems = found(&World::default(), &json!({"spec": spec}));
        assert!(problems.iter().all(|problem| problem.reason == Reason::Required));
        let problems = found(&World::default(), &json!({"spec": {"target": {"apiGroup": null}}}));
        assert!(problems.iter().all(|problem| problem.reason == Reason::NotFound));
    }

    #[test]
    fn patches_are_looked_at_once_the_snapshot_is_there() {
        let plain = json!({"domain": {"devices": {}}});
        let name = json!({"spec": {"patches": [r#"{"op": "remove", "path": "/metadata/name"}"#]}});
        assert_fields("no snapshot", &found(&World::default(), &name), &[]);
        assert_fields("a snapshot", &found(&world(Some("1"), &plain), &name), &["spec.patches"]);
    }

    #[test]
    fn state_is_restored_to_its_own_vm() {
        let tpm = |tpm: Value| json!({"domain": {"devices": {"tpm": tpm}}});
        let efi = |efi: Value| json!({"domain": {"devices": {}, "firmware": {"bootloader": {"efi": efi}}}});
        let cases = [
            ("no state", json!({"domain": {"devices": {}}}), false),
            ("a TPM", tpm(json!({})), false),
            ("a persistent TPM", tpm(json!({"persistent": true})), true),
            ("a persistent TPM, off", tpm(json!({"persistent": true, "enabled": false})), false),
            ("EFI", efi(json!({"persistent": false})), false),
            ("persistent EFI", efi(json!({"persistent": true})), true),
        ];
        for (case, content, refused) in cases {
            let expected: &[&str] = if refused { &["spec"] } else { &[] };
            assert_fields(case, &found(&world(Some("1"), &content), &json!({})), &[]);
            assert_fields(case, &found(&world(Some("2"), &content), &json!({})), expected);
            assert_fields(case, &found(&world(None, &content), &json!({})), expected);
        }
    }

    #[test]
    fn a_snapshot_for_another_vm_has_content() {
        let status = |status: Value| {
            let mut world = World::default();
            world.objects.snapshots.push(shared(json!({
                "metadata": {"name": "s", "namespace": "default"},
                "spec": {"source": {"kind": "VirtualMachine", "name": "vm"}},
                "status": status,
            })));
            world
        };
        assert_fields("no snapshot", &found(&World::default(), &json!({})), &[]);
        assert_fields("no content yet", &found(&status(json!({})), &json!({})), &[""]);
        let gone = status(json!({"virtualMachineSnapshotContentName": "gone"}));
        assert_fields("no content any more", &found(&gone, &json!({})), &[""]);
    }

    #[test]
    fn a_target_is_restored_once_at_a_time() {
        let other = |patch: Value| {
            let mut world = World::default();
            let base = patched(&base(), &json!({"metadata": {"name": "other"}}));
            world.objects.restores.push(shared(patched(&base, &patch)));
            world
        };
        let field: &[&str] = &["spec.target"];
        let cases = [
            ("just made", json!({}), field),
            ("under way", json!({"status": {"complete": false}}), field),
            ("complete", json!({"status": {"complete": true}}), &[]),
            ("of another target", json!({"spec": {"target": {"name": "x"}}}), &[]),
            ("in another namespace", json!({"metadata": {"namespace": "x"}}), &[]),
        ];
        for (case, patch, expected) in cases {
            assert_fields(case, &found(&other(patch), &json!({})), expected);
        }
    }

    #[test]
    fn a_restore_does_not_change() {
        let old = read(base());
        let world = World::default().updating();
        let changed = |patch: Value| world.run(|cx| check(cx, &read(patched(&base(), &patch)), Some(&old)));
        assert_fields("a label", &changed(json!({"metadata": {"labels": {"a": "b"}}})), &[]);
        assert_fields("no patches", &changed(json!({"spec": {"patches": []}})), &[]);
        assert_fields("the target", &changed(json!({"spec": {"target": {"name": "x"}}})), &["spec"]);
    }
}
