//! What a machine leaves open: its architecture, its machine type and the numbers of its firmware.

use kubevirt_api::names::{finalizers, labels};
use kubevirt_api::vm::{DataVolumeTemplate, VirtualMachine};
use serde_json::Value;

use super::vmi::{architecture, firmware, machine, metadata};
use crate::{ClusterConfig, Context, Objects, Operation, Problems, instancetype};

const ARCHITECTURES: [&str; 3] = ["amd64", "arm64", "s390x"];

/// Completes a machine; one that is being deleted is left alone.
pub fn apply(cx: &Context<'_>, vm: &mut VirtualMachine, old: Option<&VirtualMachine>) -> Problems {
    if vm.metadata.deletion_timestamp.is_some() {
        return Problems::default();
    }
    let problems = instancetype::mutate::apply(cx, vm, old);
    let created = cx.request.operation == Operation::Create;
    if created {
        metadata::add_finalizer(&mut vm.metadata, finalizers::VM_CONTROLLER);
        metadata::mark_versions(&mut vm.metadata);
        // Only now: the controller gives machines from before the UUID that they had.
        firmware::set_identity(cx.fresh_uuid, vm.spec.template.spec.get_or_insert_default());
    }
    let namespace = vm.metadata.namespace.clone().unwrap_or_else(|| cx.request.namespace.clone());
    default_vm(cx.config, cx.objects, &namespace, vm);
    let template = &mut vm.spec.template;
    if created && template.spec.as_ref().is_some_and(machine::has_pcie_ports) {
        metadata::mark_pci_topology(template.metadata.get_or_insert_default());
    }
    problems
}

/// Names the architecture, of the source of a disk or else of the cluster, and the machine type.
pub fn default_vm(config: &ClusterConfig, objects: &dyn Objects, namespace: &str, vm: &mut VirtualMachine) {
    let templates = vm.spec.data_volume_templates.as_deref().unwrap_or_default();
    let spec = vm.spec.template.spec.get_or_insert_default();
    if architecture::of(spec).is_empty() {
        let known = templates.iter().find_map(|template| of_source(objects, namespace, template));
        spec.architecture = known.or_else(|| Some(config.default_architecture().to_owned()));
    }
    machine::set(config, spec);
}

/// The architecture of the source that a template is filled from, if it names one that is known.
fn of_source(objects: &dyn Objects, namespace: &str, template: &DataVolumeTemplate) -> Option<String> {
    let reference = template.spec.source_ref.as_ref()?;
    if !reference.kind.eq_ignore_ascii_case("DataSource") {
        return None;
    }
    let own = reference.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    let find = |namespace: &str, name: &str| {
        let placed = !namespace.is_empty() && !name.is_empty();
        placed.then(|| objects.untyped("DataSource", namespace, name)).flatten()
    };
    let mut source = find(own.unwrap_or(namespace), &reference.name)?;
    if let Some(next) = source.pointer("/spec/source/dataSource").filter(|next| next.is_object()) {
        let text = |key: &str| next.get(key).and_then(Value::as_str).unwrap_or_default();
        source = find(text("namespace"), text("name"))?;
    }
    let of_source = source.pointer("/metadata/labels")?;
    let architecture = of_source.get(labels::TEMPLATE_ARCHITECTURE)?.as_str()?;
    ARCHITECTURES.contains(&architecture).then(|| architecture.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{World, assert_fields, patched, read, shared};

    const UUID: &str = "12345678-9abc-4def-8123-456789abcdef";

    fn after(world: &World, patch: &Value) -> Value {
        let base = json!({
            "metadata": { "namespace": "default", "name": "test" },
            "spec": { "template": { "spec": { "architecture": "amd64", "domain": { "devices": {} } } } },
        });
        let mut vm: VirtualMachine = read(patched(&base, patch));
        let problems = world.run(|cx| apply(cx, &mut vm, None));
        assert_fields(&patch.to_string(), &problems, &[]);
        serde_json::to_value(vm).unwrap()["spec"]["template"].clone()
    }

    #[test]
    fn a_new_machine_gets_numbers_and_a_pci_topology_and_keeps_its_own() {
        let new = after(&World::default(), &json!({}));
        assert_eq!(new["spec"]["domain"]["firmware"], json!({ "uuid": UUID, "serial": UUID }));
        assert_eq!(new["metadata"]["annotations"], json!({ "kubevirt.io/pci-topology-version": "v3" }));
        let own = json!({ "spec": { "template": {
            "metadata": { "annotations": { "kubevirt.io/pci-topology-version": "v2" } },
            "spec": { "domain": { "firmware": { "uuid": "u", "serial": "s", "bootloader": { "bios": {} } } } },
        } } });
        let kept = after(&World::default(), &own);
        assert_eq!(kept["spec"]["domain"]["firmware"], own["spec"]["template"]["spec"]["domain"]["firmware"]);
        assert_eq!(kept["metadata"]["annotations"]["kubevirt.io/pci-topology-version"], "v2");
    }

    #[test]
    fn a_change_gets_no_numbers_but_a_machine_type() {
        let changed = after(&World::default().updating(), &json!({}));
        assert_eq!(changed["spec"]["domain"]["firmware"], Value::Null);
        assert_eq!(changed["metadata"], Value::Null);
        assert_eq!(changed["spec"]["domain"]["machine"]["type"], "q35");
    }

    #[test]
    fn a_machine_that_is_being_deleted_is_left_alone() {
        let patch = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        assert_eq!(after(&World::default(), &patch)["spec"]["domain"], json!({ "devices": {} }));
    }

    #[test]
    fn the_machine_type_is_that_of_the_architecture() {
        let of = |architecture: &str, machine: Value| {
            let spec = json!({ "architecture": architecture, "domain": { "machine": machine } });
            json!({ "spec": { "template": { "spec": spec } } })
        };
        let cases = [
            (json!({}), of("amd64", Value::Null), "q35"),
            (json!({}), of("arm64", json!({})), "virt"),
            (json!({}), of("s390x", json!({ "type": "" })), "s390-ccw-virtio"),
            (json!({}), of("amd64", json!({ "type": "pc-q35-9.0" })), "pc-q35-9.0"),
            (json!({ "machineType": "mine" }), of("amd64", Value::Null), "mine"),
            (
                json!({ "architectureConfiguration": { "arm64": { "machineType": "virt-9" } } }),
                of("arm64", Value::Null),
                "virt-9",
            ),
        ];
        for (configuration, patch, expected) in cases {
            let template = after(&World::default().with_configuration(configuration), &patch);
            assert_eq!(template["spec"]["domain"]["machine"]["type"], expected, "{patch}");
        }
    }

    #[test]
    fn the_architecture_comes_from_the_source_of_a_disk_or_from_the_cluster() {
        let source = |namespace: &str, name: &str, architecture: Value, source: Value| {
            shared(json!({
                "kind": "DataSource",
                "metadata": { "namespace": namespace, "name": name, "labels": { "template.kubevirt.io/architecture": architecture } },
                "spec": { "source": source },
            }))
        };
        let mut world = World::default()
            .with_configuration(json!({ "architectureConfiguration": { "defaultArchitecture": "amd64" } }));
        world.objects.others = vec![
            source("default", "arm", json!("arm64"), json!({ "pvc": {} })),
            source("images", "z", json!("s390x"), json!({ "pvc": {} })),
            source(
                "default",
                "link",
                json!("amd64"),
                json!({ "dataSource": { "namespace": "images", "name": "z" } }),
            ),
            source(
                "default",
                "dangling",
                json!("arm64"),
                json!({ "dataSource": { "namespace": "images", "name": "gone" } }),
            ),
            source("default", "placeless", json!("arm64"), json!({ "dataSource": { "name": "arm" } })),
            source("default", "odd", json!("riscv64"), json!({ "pvc": {} })),
            source("default", "plain", Value::Null, json!({ "pvc": {} })),
        ];
        let from = |kind: &str, namespace: Value, name: &str| json!({ "spec": { "sourceRef": { "kind": kind, "namespace": namespace, "name": name } } });
        let cases = [
            (json!([]), "amd64"),
            (json!([{ "spec": {} }]), "amd64"),
            (json!([from("DataSource", Value::Null, "arm")]), "arm64"),
            (json!([from("datasource", json!(""), "arm")]), "arm64"),
            (json!([from("PersistentVolumeClaim", Value::Null, "arm")]), "amd64"),
            (json!([from("DataSource", json!("images"), "z")]), "s390x"),
            (json!([from("DataSource", json!("images"), "arm")]), "amd64"),
            (json!([from("DataSource", Value::Null, "link")]), "s390x"),
            (json!([from("DataSource", Value::Null, "dangling")]), "amd64"),
            (json!([from("DataSource", Value::Null, "placeless")]), "amd64"),
            (json!([from("DataSource", Value::Null, "odd")]), "amd64"),
            (
                json!([from("DataSource", Value::Null, "plain"), from("DataSource", Value::Null, "arm")]),
                "arm64",
            ),
        ];
        for (templates, expected) in cases {
            let spec =
                json!({ "dataVolumeTemplates": templates, "template": { "spec": { "architecture": null } } });
            let template = after(&world, &json!({ "spec": spec }));
            assert_eq!(template["spec"]["architecture"], expected, "{templates}");
        }
        let own = json!({ "spec": {
            "dataVolumeTemplates": [from("DataSource", Value::Null, "arm")],
            "template": { "spec": { "architecture": "s390x" } },
        } });
        assert_eq!(after(&world, &own)["spec"]["architecture"], "s390x");
    }
}
