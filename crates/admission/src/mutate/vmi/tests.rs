//! New instances as a whole.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::{World, assert_fields, patched, read};

const UUID: &str = "12345678-9abc-4def-8123-456789abcdef";

fn after(world: &World, patch: &Value) -> Value {
    let base = json!({
        "metadata": { "namespace": "default", "name": "test" },
        "spec": { "architecture": "amd64", "domain": { "devices": {} } },
    });
    let mut vmi: VirtualMachineInstance = read(patched(&base, patch));
    let problems = world.run(|cx| apply(cx, &mut vmi, None));
    assert_fields(&patch.to_string(), &problems, &[]);
    serde_json::to_value(vmi).unwrap()
}

#[test]
fn an_instance_that_says_nothing_is_complete() {
    let expected = json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "namespace": "default",
            "name": "test",
            "annotations": {
                "kubevirt.io/pci-topology-version": "v3",
                "kubevirt.io/latest-observed-api-version": "v1",
                "kubevirt.io/storage-observed-api-version": "v1",
            },
            "finalizers": ["kubevirt.io/foregroundDeleteVirtualMachine"],
        },
        "spec": {
            "architecture": "amd64",
            "domain": {
                "cpu": { "sockets": 1, "cores": 1, "threads": 1, "maxSockets": 4, "model": "host-model" },
                "devices": { "interfaces": [{ "name": "default", "bridge": {} }] },
                "features": { "acpi": { "enabled": true } },
                "firmware": { "uuid": UUID },
                "machine": { "type": "q35" },
                "memory": {},
            },
            "evictionStrategy": "None",
            "networks": [{ "name": "default", "pod": {} }],
        },
        "status": {
            "currentCPUTopology": { "sockets": 1, "cores": 1, "threads": 1 },
            "guestOSInfo": {},
            "phase": "Pending",
            "phaseTransitionTimestamps": [
                { "phase": "Pending", "phaseTransitionTimestamp": "2026-01-02T03:04:05Z" },
            ],
            "runtimeUser": 107,
        },
    });
    assert_eq!(after(&World::default(), &json!({})), expected);
}

#[test]
fn architectures_differ() {
    let devices = json!({ "disks": [{ "name": "a" }], "watchdog": { "name": "w" } });
    let of = |architecture: &str| {
        after(
            &World::default(),
            &json!({ "spec": {
                "architecture": architecture,
                "domain": { "devices": devices, "memory": { "guest": "1Gi" } },
                "volumes": [{ "name": "a", "emptyDisk": { "capacity": "1Gi" } }, { "name": "b", "emptyDisk": { "capacity": "1Gi" } }],
            } }),
        )
    };
    let disks =
        |bus: &str| json!([{ "name": "a", "disk": { "bus": bus } }, { "name": "b", "disk": { "bus": bus } }]);
    let arm = of("arm64");
    let domain = &arm["spec"]["domain"];
    assert_eq!(domain["cpu"], json!({ "sockets": 1, "cores": 1, "threads": 1, "model": "host-passthrough" }));
    assert_eq!(domain["memory"], json!({ "guest": "1Gi" }));
    assert_eq!(domain["machine"]["type"], "virt");
    assert_eq!(domain["firmware"]["bootloader"], json!({ "efi": { "secureBoot": false } }));
    assert_eq!(domain["devices"]["disks"], disks("virtio"));
    assert_eq!(domain["devices"]["watchdog"], json!({ "name": "w" }));

    let z = of("s390x");
    let domain = &z["spec"]["domain"];
    assert_eq!(domain["cpu"]["maxSockets"], 4);
    assert_eq!(domain["memory"], json!({ "guest": "1Gi" }));
    assert_eq!(domain["features"], json!({ "acpi": { "enabled": false } }));
    assert_eq!(domain["devices"]["watchdog"]["diag288"], json!({ "action": "reset" }));
    assert_eq!(z["metadata"]["annotations"].get("kubevirt.io/pci-topology-version"), None);

    let x86 = of("amd64");
    let domain = &x86["spec"]["domain"];
    assert_eq!(domain["memory"], json!({ "guest": "1Gi", "maxGuest": "4Gi" }));
    assert_eq!(domain["devices"]["disks"], disks("sata"));
    let memory = json!({ "guestAtBoot": "1Gi", "guestCurrent": "1Gi", "guestRequested": "1Gi" });
    assert_eq!(x86["status"]["memory"], memory);
}

#[test]
fn the_cluster_decides_what_the_instance_leaves_open() {
    let cases = [
        (
            json!({ "evictionStrategy": "LiveMigrate" }),
            json!({}),
            "/spec/evictionStrategy",
            json!("LiveMigrate"),
        ),
        (
            json!({ "evictionStrategy": "LiveMigrate" }),
            json!({ "evictionStrategy": "None" }),
            "/spec/evictionStrategy",
            json!("None"),
        ),
        (json!({ "vmRolloutStrategy": "Stage" }), json!({}), "/spec/domain/cpu/maxSockets", Value::Null),
        (json!({ "cpuModel": "Haswell" }), json!({}), "/spec/domain/cpu/model", json!("Haswell")),
        (json!({ "cpuRequest": "200m" }), json!({}), "/spec/domain/resources/requests/cpu", json!("200m")),
        (json!({ "cpuRequest": "0.1" }), json!({}), "/spec/domain/resources", Value::Null),
        (
            json!({ "cpuRequest": "200m" }),
            json!({ "domain": { "cpu": { "dedicatedCpuPlacement": true } } }),
            "/spec/domain/resources",
            Value::Null,
        ),
        (
            json!({ "cpuRequest": "200m" }),
            json!({ "domain": { "resources": { "limits": { "cpu": "2" } } } }),
            "/spec/domain/resources/requests/cpu",
            json!("2"),
        ),
        (
            json!({}),
            json!({ "domain": { "resources": { "limits": { "cpu": "2" }, "requests": { "cpu": "1" } } } }),
            "/spec/domain/resources/requests/cpu",
            json!("1"),
        ),
        (
            json!({ "developerConfiguration": { "featureGates": ["Root"] } }),
            json!({}),
            "/status/runtimeUser",
            json!(0),
        ),
    ];
    for (configuration, spec, pointer, expected) in cases {
        let vmi =
            after(&World::default().with_configuration(configuration.clone()), &json!({ "spec": spec }));
        assert_eq!(vmi.pointer(pointer).cloned().unwrap_or_default(), expected, "{configuration} {spec}");
    }
}

#[test]
fn what_a_controller_put_into_the_status_is_kept() {
    let vmi = after(
        &World::default().by_controller(),
        &json!({
            "metadata": { "finalizers": ["kubevirt.io/virtualMachineControllerFinalize"] },
            "status": { "virtualMachineRevisionName": "revision-start-vm-1", "currentCPUTopology": { "cores": 7 } },
        }),
    );
    assert_eq!(vmi["status"]["virtualMachineRevisionName"], "revision-start-vm-1");
    assert_eq!(vmi["status"]["currentCPUTopology"], json!({ "cores": 7 }));
    let finalizers =
        json!(["kubevirt.io/virtualMachineControllerFinalize", "kubevirt.io/foregroundDeleteVirtualMachine"]);
    assert_eq!(vmi["metadata"]["finalizers"], finalizers);
}

#[test]
fn only_our_own_components_change_the_status() {
    let old: VirtualMachineInstance = read(json!({
        "spec": { "domain": { "devices": {} } },
        "status": { "phase": "Running", "nodeName": "node1" },
    }));
    for (world, kept) in [
        (World::default().updating(), true),
        (World::default().updating().by_controller(), false),
        (World::default().updating().by("system:serviceaccount:other:kubevirt-controller"), true),
    ] {
        let mut new = old.clone();
        new.status.get_or_insert_default().node_name = Some("node2".into());
        new.spec.hostname = Some("changed".into());
        world.run(|cx| apply(cx, &mut new, Some(&old)));
        assert_eq!(new.status == old.status, kept, "{}", world.request.user.name);
        assert_eq!(new.spec.hostname.as_deref(), Some("changed"));
        assert_eq!(new.spec.domain, old.spec.domain);
    }
    let mut cleared = VirtualMachineInstance { status: None, ..old.clone() };
    World::default().updating().run(|cx| apply(cx, &mut cleared, Some(&old)));
    assert_eq!(cleared.status, old.status);
}

#[test]
fn a_cluster_without_a_usable_interface_refuses_instances_that_list_none() {
    let world = World::default()
        .with_configuration(json!({ "network": { "permitBridgeInterfaceOnPodNetwork": false } }));
    let mut vmi: VirtualMachineInstance = read(json!({ "spec": { "domain": { "devices": {} } } }));
    let problems = world.run(|cx| apply(cx, &mut vmi, None));
    assert_fields("bridge", &problems, &[""]);
}

proptest! {
    /// Whatever the numbers are, defaults end, and what they filled in they do not change again.
    #[test]
    fn defaults_hold_for_any_numbers(
        counts in [any::<Option<i32>>(), any::<Option<i32>>(), any::<Option<i32>>(), any::<Option<i32>>()],
        quantities in ["[-+]?[0-9]{1,22}(Ki|Mi|Gi|Ei|m|k|e3)?", "[ -~]{0,6}", "[0-9]{1,19}", "[0-9]Gi"],
        ratio in any::<i32>(),
        most in any::<Option<i32>>(),
    ) {
        let [sockets, cores, threads, max_sockets] = counts;
        let [guest, memory, cpu, page] = quantities;
        let world = World::default().with_configuration(
            json!({ "liveUpdateConfiguration": { "maxHotplugRatio": ratio, "maxCpuSockets": most } }),
        );
        let mut vmi: VirtualMachineInstance = read(json!({ "spec": { "architecture": "amd64", "domain": {
            "devices": {},
            "cpu": { "sockets": sockets, "cores": cores, "threads": threads, "maxSockets": max_sockets },
            "memory": { "guest": guest, "hugepages": { "pageSize": page } },
            "resources": { "requests": { "memory": memory, "cpu": cpu }, "limits": { "cpu": cpu } },
        } } }));
        default_instance(&world.config, &|| Uuid::nil(), &mut vmi);
        let once = vmi.clone();
        default_instance(&world.config, &|| Uuid::nil(), &mut vmi);
        prop_assert_eq!(vmi, once);
    }
}
