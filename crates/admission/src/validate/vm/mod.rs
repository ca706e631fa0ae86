//! Rules for `VirtualMachine`.

mod live_update;
mod run_strategy;

use std::borrow::Cow;

use kubevirt_api::vm::{VirtualMachine, VirtualMachineSpec};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;

use super::vmi::metadata;
use super::vmi_spec::domain::{discontinued, grace};
use super::vmi_spec::network;
use super::vmi_spec::storage::volume_requests;
use super::{data_volume_template, vm_storage, vmi_spec};
use crate::mutate::vmi::default_instance_spec;
use crate::{Context, Path, Problems, instancetype};

/// Everything that is wrong with a virtual machine.
pub fn check(cx: &Context<'_>, new: &VirtualMachine, old: Option<&VirtualMachine>) -> Problems {
    let mut problems = Problems::default();
    // What is being deleted must be able to lose its finalizers, whatever else has become of it.
    if new.metadata.deletion_timestamp.is_some() {
        return problems;
    }
    if new.spec.running.is_some() {
        problems.warn("spec.running is deprecated; use spec.runStrategy instead");
    }
    match expanded(cx, new, &mut problems) {
        Ok(expanded) => {
            let vmi = expanded.template.spec.as_ref().map_or_else(Cow::default, Cow::Borrowed);
            if old.is_none() {
                discontinued::check(cx, &vmi, &mut problems);
                network::check_creation(&Path::new("spec"), &vmi, &mut problems);
            }
            check_spec(cx, &Path::new("spec"), &expanded, &vmi, &mut problems);
        }
        // Without knowing the instance there is only the rest to look at.
        Err(conflicts) => {
            problems.append(conflicts);
            run_strategy::check(cx, &Path::new("spec"), &new.spec, &mut problems);
        }
    }
    problems.append(vm_storage::check(cx, new, old));
    // These are tried on the template, so that its own problems would only come again.
    if problems.is_empty() {
        volume_requests::check(cx, new, &mut problems);
    }
    problems
}

/// The specification with its template as instances are made from it: with instance type, preference and defaults.
fn expanded(
    cx: &Context<'_>,
    vm: &VirtualMachine,
    problems: &mut Problems,
) -> Result<VirtualMachineSpec, Problems> {
    let mut checked = instancetype::check_vm(cx, vm)?;
    problems.append(default_instance_spec(cx.config, checked.template.spec.get_or_insert_default()));
    problems.append(checked.requirements());
    problems.append(checked.notes);
    Ok(VirtualMachineSpec { template: checked.template, ..vm.spec.clone() })
}

/// Everything that is wrong with the specification of a machine that stands at `path` and makes instances like
/// `vmi`: its template, with what the instance type and the defaults add.
pub(crate) fn check_spec(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineSpec,
    vmi: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    if let Some(metadata) = &spec.template.metadata {
        let path = path.at("template.metadata");
        metadata::check(cx, &path, metadata, problems);
        grace::check_annotations(cx, &path, metadata.annotations.as_ref(), vmi, problems);
    }
    problems.append(vmi_spec::check(cx, &path.at("template.spec"), vmi));
    data_volume_template::check(path, spec, problems);
    run_strategy::check(cx, path, spec, problems);
    live_update::check(cx, &path.at("template.spec.domain"), vmi, problems);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, patched, read};

    fn base() -> Value {
        json!({
            "metadata": { "name": "vm", "namespace": "default" },
            "spec": {
                "runStrategy": "Halted",
                "template": { "spec": {
                    "architecture": "amd64",
                    "domain": { "memory": { "guest": "1Gi" }, "machine": { "type": "q35" }, "devices": {} },
                } },
            },
        })
    }

    #[test]
    fn a_machine_is_checked_in_all_its_parts() {
        let cases = [
            ("as it is", json!({}), &[][..]),
            ("run strategy", json!({ "spec": { "runStrategy": "Sometimes" } }), &["spec.runStrategy"]),
            (
                "label and sockets",
                json!({ "spec": { "template": {
                    "metadata": { "labels": { "kubevirt.io/nodeName": "n" } },
                    "spec": { "domain": { "cpu": { "sockets": 3, "maxSockets": 2 } } },
                } } }),
                &["spec.template.metadata.labels", "spec.template.spec.domain.cpu.sockets"],
            ),
            ("volume requests", json!({ "status": { "volumeRequests": [{}] } }), &["Status.volumeRequests"]),
            (
                "volume requests behind another problem",
                json!({ "spec": { "runStrategy": null }, "status": { "volumeRequests": [{}] } }),
                &["spec.running"],
            ),
        ];
        World::default().assert_new(check, &base(), &cases);
    }

    #[test]
    fn the_first_machine_of_the_guide_is_taken_with_a_warning() {
        let vm = read(json!({
            "apiVersion": "kubevirt.io/v1alpha3",
            "kind": "VirtualMachine",
            "metadata": { "name": "testvm", "namespace": "default" },
            "spec": {
                "running": false,
                "template": {
                    "metadata": { "labels": { "kubevirt.io/size": "small", "kubevirt.io/domain": "testvm" } },
                    "spec": {
                        "architecture": "amd64",
                        "domain": {
                            "machine": { "type": "q35" },
                            "devices": { "disks": [{ "name": "containerdisk", "disk": { "bus": "virtio" } }] },
                            "resources": { "requests": { "memory": "64M" } },
                        },
                        "volumes": [{ "name": "containerdisk", "containerDisk": { "image": "cirros" } }],
                    },
                },
            },
        }));
        let problems = World::default().run(|cx| check(cx, &vm, None));
        assert_fields("guide", &problems, &[]);
        assert_eq!(problems.warnings().len(), 1);
    }

    #[test]
    fn a_machine_that_is_being_deleted_is_left_alone() {
        let patch = json!({
            "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "runStrategy": "Sometimes" },
        });
        let vm: VirtualMachine = read(patched(&base(), &patch));
        let problems = World::default().updating().run(|cx| check(cx, &vm, Some(&vm)));
        assert_fields("deleting", &problems, &[]);
    }
}
