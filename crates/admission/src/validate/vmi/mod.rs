//! Instances: what is checked when one is made, and who may change what of one that runs.

pub mod metadata;
mod node_restriction;
mod update;

use kubevirt_api::vmi::VirtualMachineInstance;

use super::vmi_spec::domain::{architecture, discontinued, grace, hyperv, memory};
use super::vmi_spec::storage::mapping;
use super::vmi_spec::{self, network};
use crate::{Context, Path, Problems};

/// Everything that is wrong with a new instance, or with a change of one.
pub fn check(
    cx: &Context<'_>,
    new: &VirtualMachineInstance,
    old: Option<&VirtualMachineInstance>,
) -> Problems {
    match old {
        Some(old) => update::check(cx, new, old),
        None => check_new(cx, new),
    }
}

fn check_new(cx: &Context<'_>, vmi: &VirtualMachineInstance) -> Problems {
    let (spec, metadata) = (Path::new("spec"), Path::new("metadata"));
    let mut problems = vmi_spec::check(cx, &spec, &vmi.spec);
    discontinued::check(cx, &vmi.spec, &mut problems);
    memory::check_given(&spec, &vmi.spec, &mut problems);
    metadata::check(cx, &metadata, &vmi.metadata, &mut problems);
    grace::check_annotations(cx, &metadata, vmi.metadata.annotations.as_ref(), &vmi.spec, &mut problems);
    hyperv::check(&spec, &vmi.spec, &mut problems);
    architecture::check(&spec, &vmi.spec, &mut problems);
    mapping::check_volumes(&spec, &vmi.spec, &mut problems);
    network::check_creation(&spec, &vmi.spec, &mut problems);
    problems
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vmi::VirtualMachineInstance;
    use serde_json::{Value, json};

    use crate::testing::{World, assert_fields, read};

    /// An instance that nothing is wrong with.
    pub(super) fn base() -> Value {
        json!({
            "metadata": { "name": "test", "namespace": "default" },
            "spec": {
                "architecture": "amd64",
                "domain": {
                    "cpu": { "cores": 1, "sockets": 1, "maxSockets": 4 },
                    "devices": {
                        "disks": [{ "name": "root", "disk": { "bus": "virtio" } }],
                        "interfaces": [{ "name": "default", "masquerade": {} }],
                    },
                    "memory": { "guest": "1Gi", "maxGuest": "4Gi" },
                    "resources": { "requests": { "memory": "1Gi" } },
                },
                "networks": [{ "name": "default", "pod": {} }],
                "volumes": [{ "name": "root", "containerDisk": { "image": "registry/image" } }],
            },
        })
    }

    #[test]
    fn a_new_instance_is_checked_in_all_its_parts() {
        let grace = json!({ "annotations": { "kubevirt.io/disablePCIHole64": "true" } });
        let gpu = json!({ "domain": { "devices": { "gpus": [{ "name": "g", "deviceName": "example.com/grace" }] } } });
        let world = World::default().with_configuration(json!({
            "developerConfiguration": { "featureGates": ["Passt"] },
            "permittedHostDevices": { "pciHostDevices": [
                { "pciVendorSelector": "10DE:2342", "resourceName": "example.com/grace" },
            ] },
        }));
        let cases = [
            ("nothing wrong", json!({}), &[][..]),
            ("specification", json!({ "spec": { "hostname": "Web" } }), &["spec.hostname"]),
            (
                "metadata",
                json!({ "metadata": { "labels": { "kubevirt.io/nodeName": "n" } } }),
                &["metadata.labels"],
            ),
            ("no memory", json!({ "spec": { "domain": { "memory": null, "resources": null } } }), &[""]),
            ("architecture", json!({ "spec": { "architecture": "vax" } }), &["spec.architecture"]),
            (
                "enlightenments",
                json!({ "spec": { "domain": { "features": { "hyperv": {}, "hypervPassthrough": {} } } } }),
                &["spec.domain.features.hyperv"],
            ),
            (
                "grace",
                json!({ "metadata": grace, "spec": gpu }),
                &[
                    "spec.domain.devices.gpus[0].deviceName",
                    "metadata.annotations[kubevirt.io/disablePCIHole64]",
                ],
            ),
        ];
        world.assert_new(super::check, &base(), &cases);
    }

    #[test]
    fn odd_objects_are_answered() {
        let vmi: VirtualMachineInstance =
            read(json!({ "metadata": {}, "spec": { "domain": { "devices": {} } } }));
        assert_fields(
            "empty",
            &World::default().run(|cx| super::check(cx, &vmi, None)),
            &["", "spec.architecture"],
        );
        let world = World::default().updating();
        assert_fields("empty update", &world.run(|cx| super::check(cx, &vmi, Some(&vmi))), &[]);
    }
}
