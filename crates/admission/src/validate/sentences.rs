//! Sentences by which clients of KubeVirt, its own tests among them, know a refusal.

use serde_json::{Value, json};

use super::{backup, migration, pool, restore, vm, vmi};
use crate::Problems;
use crate::testing::{World, patched, read, shared};

fn world() -> World {
    let mut world = World::default();
    world.objects.cluster_instancetypes = vec![shared(json!({
        "metadata": { "name": "small" }, "spec": { "cpu": { "guest": 1 }, "memory": { "guest": "512Mi" } },
    }))];
    let preference = |name: &str, requirements: Value| {
        let spec = json!({ "cpu": { "preferredCPUTopology": "cores" }, "requirements": requirements });
        shared(json!({ "metadata": { "name": name }, "spec": spec }))
    };
    world.objects.cluster_preferences = vec![
        preference("memory", json!({ "memory": { "guest": "1Gi" } })),
        preference("cpus", json!({ "cpu": { "guest": 2 } })),
        preference("arm", json!({ "architecture": "arm64" })),
    ];
    world
}

fn template(patch: &Value) -> Value {
    let base = json!({ "architecture": "amd64", "domain": { "devices": {}, "machine": { "type": "q35" } } });
    patched(&base, patch)
}

fn sentences(problems: Problems) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn of_machines() {
    let memory = |guest: &str| json!({ "domain": { "memory": { "guest": guest } } });
    let preference = |name: &str| json!({ "preference": { "name": name } });
    let both = |name: &str| json!({ "instancetype": { "name": "small" }, "preference": { "name": name } });
    let start = "failure checking preference requirements: ";
    let cases = [
        (
            json!({ "instancetype": { "name": "small" } }),
            memory("1Gi"),
            "VM field(s) spec.template.spec.domain.memory.guest conflicts with selected instance type".into(),
        ),
        (
            preference("memory"),
            memory("512Mi"),
            format!(
                "spec.template.spec.domain.memory: {start}insufficient Memory resources of 512Mi provided by \
                 VirtualMachine, preference requires 1Gi"
            ),
        ),
        (
            both("memory"),
            json!({}),
            format!(
                "spec.instancetype: {start}insufficient Memory resources of 512Mi provided by instance type, \
                 preference requires 1Gi"
            ),
        ),
        (
            both("cpus"),
            json!({}),
            format!(
                "spec.instancetype: {start}insufficient CPU resources of 1 vCPU provided by instance type, \
                 preference requires 2 vCPU"
            ),
        ),
        (
            preference("cpus"),
            patched(&memory("1Gi"), &json!({ "domain": { "cpu": { "cores": 1 } } })),
            format!(
                "spec.template.spec.domain.cpu.cores: {start}insufficient CPU resources of 1 vCPU provided by \
                 VirtualMachine, preference requires 2 vCPU provided as cores"
            ),
        ),
        (
            preference("arm"),
            memory("1Gi"),
            format!(
                "spec.template.spec.architecture: {start}preference requires architecture arm64 but amd64 is \
                 being requested"
            ),
        ),
    ];
    for (patch, spec, expected) in cases {
        let base = json!({ "runStrategy": "Halted", "template": { "spec": template(&spec) } });
        let vm =
            json!({ "metadata": { "name": "vm", "namespace": "default" }, "spec": patched(&base, &patch) });
        let found = sentences(world().run(|cx| vm::check(cx, &read(vm), None)));
        assert_eq!(found, [expected]);
    }
}

#[test]
fn of_instances() {
    let kernel = |container: Value| json!({ "firmware": { "kernelBoot": { "container": container } } });
    let container = "spec.domain.firmware.kernelBoot.container must be defined with";
    let cases = [
        (kernel(json!({ "image": "", "kernelPath": "/k" })), format!("{container} an image")),
        (
            kernel(json!({ "image": "i" })),
            format!("{container} at least one of the following: kernelPath, initrdPath"),
        ),
        (
            json!({ "devices": { "disks": [{ "name": "a" }] } }),
            "spec.domain.devices.disks[0].Name 'a' not found: there is no volume of that name".into(),
        ),
    ];
    for (domain, expected) in cases {
        let domain = patched(&json!({ "memory": { "guest": "1Gi" } }), &domain);
        let vmi = json!({
            "metadata": { "name": "vmi", "namespace": "default" },
            "spec": template(&json!({ "domain": domain })),
        });
        let found = sentences(world().run(|cx| vmi::check(cx, &read(vmi), None)));
        assert_eq!(found, [expected]);
    }
}

#[test]
fn of_pools() {
    let spec = template(&json!({ "domain": { "memory": { "guest": "1Gi" } } }));
    let pool = json!({
        "metadata": { "name": "pool", "namespace": "default" },
        "spec": {
            "selector": { "matchLabels": { "app": "db" } },
            "virtualMachineTemplate": { "spec": { "runStrategy": "Halted", "template": { "spec": spec } } },
        },
    });
    let found = sentences(world().run(|cx| pool::check(cx, &read(pool), None)));
    assert!(found.len() == 1 && found[0].contains("selector does not match labels"), "{found:?}");
}

#[test]
fn of_what_is_done_one_at_a_time() {
    let of = |kind: &str, group: &str| json!({ "apiGroup": group, "kind": kind, "name": "vm" });
    let named = |name: &str, spec: &Value| json!({ "metadata": { "name": name, "namespace": "default" }, "spec": spec });
    let machine = of("VirtualMachine", "kubevirt.io");
    let restored = json!({ "target": machine, "virtualMachineSnapshotName": "s" });
    let backed_up = json!({ "source": machine, "pvcName": "c" });
    let mut world = World::default().with_gates(&["Snapshot", "IncrementalBackup"]);
    world.objects.restores = vec![shared(named("first", &restored))];
    world.objects.backups = vec![shared(named("first", &backed_up))];
    let restore = read(named("second", &restored));
    let found = sentences(world.run(|cx| restore::check(cx, &restore, None)));
    assert_eq!(found, ["spec.target: VirtualMachineRestore \"first\" in progress: wait or delete it"]);
    let backup = read(named("second", &backed_up));
    let found = sentences(world.run(|cx| backup::check_backup(cx, &backup, None)));
    assert_eq!(
        found,
        ["spec.source: VirtualMachineBackup \"first\" in progress for source: wait or delete it"]
    );
}

#[test]
fn of_migrations() {
    let migration = |name: &str| {
        json!({
            "metadata": { "name": name, "namespace": "default", "labels": { "kubevirt.io/vmi-name": "vm" } },
            "spec": { "vmiName": "vm" },
        })
    };
    let mut world = World::default();
    let vmi = json!({ "metadata": { "name": "vm", "namespace": "default" }, "spec": template(&json!({})) });
    world.objects.vmis = vec![shared(vmi)];
    world.objects.migrations = vec![shared(migration("first"))];
    let found = sentences(world.run(|cx| migration::check(cx, &read(migration("second")), None)));
    assert_eq!(found, ["in-flight migration detected. \"first\" of instance \"vm\" is not over yet"]);
}
