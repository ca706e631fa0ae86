//! A machine and its instance as KubeVirt v1.9.0 stored them, against what we make of the same manifest.

use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{vm, vmi};
use crate::testing::{World, assert_fields, patched, read};

const UUID: &str = "b8511fdf-37f2-40d8-af9b-aac3933f3d74";
const SERIAL: &str = "1afa7a7c-983d-44f9-a98d-01e6e4c3f804";

/// The specification of the instance in the manifest that was applied.
fn applied() -> Value {
    json!({
        "domain": {
            "cpu": { "cores": 2 },
            "devices": {
                "disks": [
                    { "disk": { "bus": "virtio" }, "name": "root" },
                    { "disk": { "bus": "virtio" }, "name": "ci" },
                ],
                "interfaces": [{ "masquerade": {}, "name": "default" }],
            },
            "memory": { "guest": "256Mi" },
            "resources": { "requests": { "cpu": "100m" } },
        },
        "networks": [{ "name": "default", "pod": {} }],
        "volumes": [
            { "containerDisk": { "image": "localhost/demo:1", "imagePullPolicy": "Never" }, "name": "root" },
            { "cloudInitNoCloud": { "userData": "#cloud-config\nhostname: web\n" }, "name": "ci" },
        ],
    })
}

/// The same in the machine that was stored.
fn stored_in_machine() -> Value {
    patched(
        &applied(),
        &json!({
            "architecture": "amd64",
            "domain": { "firmware": { "serial": SERIAL, "uuid": UUID }, "machine": { "type": "q35" } },
        }),
    )
}

fn world() -> World {
    World::default()
        .with_configuration(json!({ "architectureConfiguration": { "defaultArchitecture": "amd64" } }))
}

#[test]
fn a_machine_is_stored_as_the_original_stores_it() {
    let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": applied() });
    let mut vm: VirtualMachine = read(json!({
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "runStrategy": "Always", "template": template },
    }));
    let problems = world().run(|cx| {
        let numbers = std::cell::Cell::new([UUID, SERIAL].into_iter());
        let next = || {
            let mut left = numbers.take();
            let number: Uuid = left.next().unwrap().parse().unwrap();
            numbers.set(left);
            number
        };
        let cx = crate::Context { fresh_uuid: &next, now: cx.now.clone(), ..*cx };
        vm::apply(&cx, &mut vm, None)
    });
    assert_fields("web", &problems, &[]);
    let expected = json!({
        "runStrategy": "Always",
        "template": {
            "metadata": {
                "annotations": { "kubevirt.io/pci-topology-version": "v3" },
                "labels": { "app": "web" },
            },
            "spec": stored_in_machine(),
        },
    });
    assert_eq!(serde_json::to_value(&vm.spec).unwrap(), expected);
    let expected = json!({
        "name": "web",
        "namespace": "default",
        "annotations": {
            "kubevirt.io/latest-observed-api-version": "v1",
            "kubevirt.io/storage-observed-api-version": "v1",
        },
        "finalizers": ["kubevirt.io/virtualMachineControllerFinalize"],
    });
    assert_eq!(serde_json::to_value(&vm.metadata).unwrap(), expected);
}

#[test]
fn an_instance_is_stored_as_the_original_stores_it() {
    let mut vmi: VirtualMachineInstance = read(json!({
        "metadata": {
            "name": "web",
            "namespace": "default",
            "annotations": { "kubevirt.io/pci-topology-version": "v3", "kubevirt.io/vm-generation": "1" },
            "finalizers": ["kubevirt.io/virtualMachineControllerFinalize"],
            "labels": { "app": "web" },
        },
        "spec": stored_in_machine(),
        "status": { "virtualMachineRevisionName": "revision-start-vm-7ce715c1-677d-4750-a83d-490e1e0e0c7c-1" },
    }));
    let mut expected = serde_json::to_value(&vmi).unwrap();
    let problems = world().by_controller().run(|cx| vmi::apply(cx, &mut vmi, None));
    assert_fields("web", &problems, &[]);
    expected = patched(
        &expected,
        &json!({
            "metadata": {
                "annotations": {
                    "kubevirt.io/latest-observed-api-version": "v1",
                    "kubevirt.io/storage-observed-api-version": "v1",
                },
                "finalizers": [
                    "kubevirt.io/virtualMachineControllerFinalize",
                    "kubevirt.io/foregroundDeleteVirtualMachine",
                ],
            },
            "spec": {
                "domain": {
                    "cpu": { "cores": 2, "model": "host-model" },
                    "features": { "acpi": { "enabled": true } },
                },
                "evictionStrategy": "None",
            },
            "status": {
                "currentCPUTopology": { "cores": 2 },
                "guestOSInfo": {},
                "memory": { "guestAtBoot": "256Mi", "guestCurrent": "256Mi", "guestRequested": "256Mi" },
                "phase": "Pending",
                "phaseTransitionTimestamps": [
                    { "phase": "Pending", "phaseTransitionTimestamp": "2026-01-02T03:04:05Z" },
                ],
                "runtimeUser": 107,
            },
        }),
    );
    assert_eq!(serde_json::to_value(&vmi).unwrap(), expected);
}
