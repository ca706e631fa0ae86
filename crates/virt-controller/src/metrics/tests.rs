//! What objects look like as metrics.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kubevirt_admission::ClusterConfig;
use kubevirt_admission::instancetype::{Role, Scope};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::PrintableStatus;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_component::metrics::Page;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::labels::Shown;
use super::vmi::{Cluster, Known};
use super::*;

fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

/// The lines that are told, without what describes them.
fn lines(tell: impl FnOnce(&mut Page)) -> Vec<String> {
    let mut page = Page::default();
    tell(&mut page);
    let mut text = String::new();
    page.write_to(&mut text);
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

#[track_caller]
fn assert_told(lines: &[String], expected: &[&str]) {
    for line in expected {
        assert!(lines.iter().any(|told| told == line), "{line}\nin {lines:#?}");
    }
}

fn machine() -> VirtualMachine {
    read(json!({
        "metadata": {
            "name": "web", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": { "team": "red", "app.io/x": "1" },
        },
        "spec": {
            "instancetype": { "name": "u1.small" },
            "preference": { "name": "mine", "kind": "virtualmachinepreference" },
            "dataVolumeTemplates": [{
                "metadata": { "name": "data" },
                "spec": { "storage": { "resources": { "requests": { "storage": "1Gi" } } } },
            }],
            "template": {
                "metadata": { "annotations": { "vm.kubevirt.io/os": "fedora" }, "labels": { "team": "blue" } },
                "spec": {
                    "domain": {
                        "machine": { "type": "q35" },
                        "devices": { "interfaces": [
                            { "name": "default", "masquerade": {} },
                            { "name": "blue", "binding": { "name": "fast" }, "model": "e1000" },
                            { "name": "lost", "bridge": {} },
                        ] },
                    },
                    "networks": [
                        { "name": "default", "pod": {} },
                        { "name": "blue", "multus": { "networkName": "shop/blue" } },
                    ],
                    "volumes": [
                        { "name": "root", "persistentVolumeClaim": { "claimName": "root" } },
                        { "name": "more", "dataVolume": { "name": "data" } },
                        { "name": "gone", "persistentVolumeClaim": { "claimName": "gone" } },
                        { "name": "seed", "cloudInitNoCloud": {} },
                    ],
                },
            },
        },
        "status": {
            "printableStatus": "Running",
            "conditions": [
                { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:01:40Z" },
                { "type": "Paused", "status": "False", "lastTransitionTime": "2026-01-01T00:00:40Z" },
                { "type": "LiveMigratable", "status": "True", "lastTransitionTime": "2026-01-02T00:00:00Z" },
            ],
        },
    }))
}

fn claim(name: &str) -> Option<Arc<PersistentVolumeClaim>> {
    let claim = json!({
        "metadata": { "name": name },
        "spec": { "volumeMode": "Block", "resources": { "requests": { "storage": "2Gi" } } },
    });
    (name != "gone").then(|| Arc::new(read(claim)))
}

#[test]
fn what_a_machine_is() {
    let vm = machine();
    let vendors = |role: Role, scope: Scope, namespace: &str, name: &str| {
        assert_eq!(namespace, "shop");
        (role == Role::Instancetype && scope == Scope::Cluster && name == "u1.small")
            .then(|| "redhat.com".into())
    };
    let [instance_type, preference] = instance_types::of_machine(&vendors, &vm);
    assert_eq!([instance_type.as_str(), preference.as_str()], ["u1.small", "<other>"]);
    let told = lines(|page| {
        machine::info(page, "web", "shop", &vm, &instance_type, &preference);
        machine::times(page, "web", "shop", &vm);
        machine::disks(page, "web", "shop", &vm, claim);
        labels::tell(page, &Shown::from_maps(&[]), "web", "shop", &vm);
        interfaces::tell(page, &list::VM_VNIC, "web", "shop", vm.spec.template.spec.as_ref().unwrap());
    });
    assert_told(
        &told,
        &[
            "kubevirt_vm_info{name=\"web\",namespace=\"shop\",os=\"fedora\",machine_type=\"q35\",\
             instance_type=\"u1.small\",preference=\"<other>\",status=\"running\",status_group=\"running\"} 1",
            "kubevirt_vm_create_date_timestamp_seconds{name=\"web\",namespace=\"shop\"} 1767225600",
            "kubevirt_vm_running_status_last_transition_timestamp_seconds{name=\"web\",namespace=\"shop\"} 1767225700",
            "kubevirt_vm_error_status_last_transition_timestamp_seconds{name=\"web\",namespace=\"shop\"} 0",
            "kubevirt_vm_labels{name=\"web\",namespace=\"shop\",label_app_io_x=\"1\",label_team=\"blue\"} 1",
            "kubevirt_vm_disk_allocated_size_bytes{name=\"web\",namespace=\"shop\",persistentvolumeclaim=\"root\",\
             volume_mode=\"Block\",device=\"root\"} 2147483648",
            "kubevirt_vm_disk_allocated_size_bytes{name=\"web\",namespace=\"shop\",persistentvolumeclaim=\"data\",\
             volume_mode=\"Block\",device=\"more\"} 1073741824",
            "kubevirt_vm_vnic_info{name=\"web\",namespace=\"shop\",vnic_name=\"default\",binding_type=\"core\",\
             network=\"pod networking\",binding_name=\"masquerade\",model=\"<none>\"} 1",
            "kubevirt_vm_vnic_info{name=\"web\",namespace=\"shop\",vnic_name=\"blue\",binding_type=\"plugin\",\
             network=\"shop/blue\",binding_name=\"fast\",model=\"e1000\"} 1",
        ],
    );
    assert_eq!(told.len(), 12, "{told:#?}");
}

#[test]
fn every_state_has_its_time() {
    for (state, metric) in [
        ("Provisioning", "starting"),
        ("WaitingForVolumeBinding", "starting"),
        ("Migrating", "migrating"),
        ("Paused", "non_running"),
        ("Terminating", "non_running"),
        ("ErrorPvcNotFound", "error"),
        ("CrashLoopBackOff", "error"),
        ("Unheard", "error"),
    ] {
        let mut vm = machine();
        vm.status.as_mut().unwrap().printable_status = Some(PrintableStatus::from(state));
        let told = lines(|page| machine::times(page, "web", "shop", &vm));
        let set: Vec<_> = told.iter().filter(|line| line.ends_with(" 1767225700")).collect();
        assert_eq!(set.len(), 1, "{state}");
        assert!(set[0].starts_with(&format!("kubevirt_vm_{metric}_status_")), "{state}: {set:?}");
    }
    let mut vm = machine();
    vm.status = None;
    let told = lines(|page| machine::times(page, "web", "shop", &vm));
    assert!(told.iter().any(|line| line.contains("_error_") && line.ends_with(" -1")), "{told:?}");
}

#[test]
fn what_a_machine_asks_for() {
    let requests = |name: &str, unit: &str, source: &str, value: &str| {
        format!(
            "kubevirt_vm_resource_requests{{name=\"a\",namespace=\"b\",resource=\"{name}\",unit=\"{unit}\",source=\"{source}\"}} {value}"
        )
    };
    let limits = |name: &str, unit: &str, value: &str| {
        format!(
            "kubevirt_vm_resource_limits{{name=\"a\",namespace=\"b\",resource=\"{name}\",unit=\"{unit}\"}} {value}"
        )
    };
    let cases = [
        (
            json!({ "devices": {} }),
            vec![
                requests("cpu", "cores", "default", "1"),
                requests("cpu", "threads", "default", "1"),
                requests("cpu", "sockets", "default", "1"),
                requests("cpu", "cores", "guest_effective", "1"),
            ],
        ),
        (
            json!({
                "devices": {},
                "cpu": { "sockets": 2, "cores": 3 },
                "memory": { "guest": "1Gi", "hugepages": { "pageSize": "2Mi" } },
                "resources": {
                    "requests": { "memory": "512Mi", "cpu": "1500m" },
                    "limits": { "memory": "2Gi", "cpu": "4" },
                },
            }),
            vec![
                requests("memory", "bytes", "domain", "536870912"),
                requests("memory", "bytes", "guest", "1073741824"),
                requests("memory", "bytes", "hugepages", "2097152"),
                requests("memory", "bytes", "guest_effective", "1073741824"),
                requests("cpu", "cores", "domain", "3"),
                requests("cpu", "sockets", "domain", "2"),
                requests("cpu", "cores", "requests", "1.5"),
                requests("cpu", "cores", "guest_effective", "6"),
                limits("memory", "bytes", "2147483648"),
                limits("cpu", "cores", "4"),
            ],
        ),
        (
            json!({ "devices": {}, "cpu": {}, "resources": { "limits": { "memory": "1Gi" }, "requests": { "cpu": "bad" } } }),
            vec![
                requests("memory", "bytes", "guest_effective", "1073741824"),
                requests("cpu", "cores", "guest_effective", "0"),
                limits("memory", "bytes", "1073741824"),
            ],
        ),
    ];
    for (domain, expected) in cases {
        let told = lines(|page| resources::tell(page, "a", "b", &read(domain.clone())));
        let (told, expected): (BTreeSet<_>, BTreeSet<_>) =
            (told.into_iter().collect(), expected.into_iter().collect());
        assert_eq!(told, expected, "{domain}");
    }
}

fn instance(spec: Value, status: Value) -> VirtualMachineInstance {
    let mut object = json!({
        "metadata": {
            "name": "web", "namespace": "shop",
            "annotations": { "kubevirt.io/cluster-instancetype-name": "u1", "vm.kubevirt.io/flavor": "tiny" },
        },
        "spec": { "domain": { "devices": { "interfaces": [{ "name": "default", "bridge": {} }] } },
                  "networks": [{ "name": "default", "pod": {} }] },
        "status": { "nodeName": "n1", "phase": "Running" },
    });
    for (place, with) in [("spec", spec), ("status", status)] {
        object[place].as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    }
    read(object)
}

fn told_of(vmi: &VirtualMachineInstance, known: &Known, kubevirt: Value) -> Vec<String> {
    let config = ClusterConfig::of(&read(kubevirt));
    lines(|page| vmi::tell(page, &Cluster { config: &config, launcher_image: "ours" }, vmi, known))
}

#[test]
fn what_an_instance_is() {
    let vmi = instance(
        json!({}),
        json!({
            "machine": { "type": "pc-q35" },
            "guestOSInfo": { "name": "Fedora", "kernelRelease": "6.1", "machine": "x86_64", "versionId": "40" },
            "memory": { "memoryOverhead": "100Mi" },
            "interfaces": [
                { "name": "default", "ipAddress": "10.0.0.1", "interfaceName": "eth0" },
                { "name": "default", "ipAddress": "10.0.0.1", "interfaceName": "eth0" },
                { "interfaceName": "docker0" },
                {},
            ],
            "migrationState": {
                "startTimestamp": "2026-01-01T00:00:00Z", "endTimestamp": "2026-01-01T00:00:10Z", "completed": true,
            },
        }),
    );
    let vendors = |_: Role, scope: Scope, _: &str, name: &str| {
        assert_eq!((scope, name), (Scope::Cluster, "u1"));
        Some("kubevirt.io".to_owned())
    };
    let [instance_type, preference] = instance_types::of_instance(&vendors, &vmi);
    let known = Known { pod: "launcher".into(), migration: "move".into(), instance_type, preference };
    let told = told_of(&vmi, &known, json!({ "spec": {} }));
    assert_told(
        &told,
        &[
            "kubevirt_vmi_info{node=\"n1\",namespace=\"shop\",name=\"web\",phase=\"running\",flavor=\"tiny\",\
             instance_type=\"u1\",guest_os_kernel_release=\"6.1\",guest_os_machine=\"pc-q35\",guest_os_arch=\"x86_64\",\
             guest_os_name=\"Fedora\",guest_os_version_id=\"40\",evictable=\"true\",outdated=\"false\",\
             vmi_pod=\"launcher\"} 1",
            "kubevirt_vmi_non_evictable{node=\"n1\",namespace=\"shop\",name=\"web\"} 0",
            "kubevirt_vmi_status_addresses{node=\"n1\",namespace=\"shop\",name=\"web\",vnic_name=\"default\",\
             interface_name=\"eth0\",address=\"10.0.0.1\",type=\"ExternalInterface\"} 1",
            "kubevirt_vmi_status_addresses{node=\"n1\",namespace=\"shop\",name=\"web\",interface_name=\"docker0\",\
             type=\"SystemInterface\"} 1",
            "kubevirt_vmi_migration_start_time_seconds{node=\"n1\",namespace=\"shop\",name=\"web\",\
             migration_name=\"move\"} 1767225600",
            "kubevirt_vmi_migration_end_time_seconds{node=\"n1\",namespace=\"shop\",name=\"web\",\
             migration_name=\"move\",status=\"succeeded\"} 1767225610",
            "kubevirt_vmi_vnic_info{name=\"web\",namespace=\"shop\",vnic_name=\"default\",binding_type=\"core\",\
             network=\"pod networking\",binding_name=\"bridge\",model=\"<none>\"} 1",
            "kubevirt_vmi_launcher_memory_overhead_bytes{namespace=\"shop\",name=\"web\"} 104857600",
        ],
    );
    assert_eq!(told.len(), 8, "{told:#?}");
}

#[test]
fn what_cannot_be_moved_is_told() {
    let condition = |status: &str| json!({ "conditions": [{ "type": "LiveMigratable", "status": status }] });
    let strategy = |strategy: &str| json!({ "evictionStrategy": strategy });
    let cluster = json!({ "spec": { "configuration": { "evictionStrategy": "LiveMigrate" } } });
    let cases = [
        (strategy("LiveMigrate"), condition("True"), json!({ "spec": {} }), "0"),
        (strategy("LiveMigrate"), condition("False"), json!({ "spec": {} }), "1"),
        (strategy("LiveMigrate"), json!({}), json!({ "spec": {} }), "1"),
        (strategy("LiveMigrateIfPossible"), condition("False"), json!({ "spec": {} }), "0"),
        (strategy("None"), condition("False"), cluster.clone(), "0"),
        (json!({}), condition("False"), cluster, "1"),
        (json!({}), condition("False"), json!({ "spec": {} }), "0"),
    ];
    for (spec, status, kubevirt, value) in cases {
        let told = told_of(&instance(spec.clone(), status.clone()), &Known::default(), kubevirt);
        let line =
            format!("kubevirt_vmi_non_evictable{{node=\"n1\",namespace=\"shop\",name=\"web\"}} {value}");
        assert!(told.contains(&line), "{spec} {status}: {told:#?}");
    }
}

#[test]
fn launchers_of_another_image_are_outdated() {
    let config = ClusterConfig::of(&read(json!({ "spec": {} })));
    let cluster = Cluster { config: &config, launcher_image: "ours" };
    for (status, outdated) in [
        (json!({ "launcherContainerImageVersion": "theirs" }), true),
        (json!({ "launcherContainerImageVersion": "ours" }), false),
        (json!({ "launcherContainerImageVersion": "theirs", "phase": "Failed" }), false),
        (json!({}), false),
    ] {
        assert_eq!(cluster.is_outdated(&instance(json!({}), status.clone())), outdated, "{status}");
    }
}

#[test]
fn migrations_are_counted_by_phase() {
    let phases = [
        "",
        "Pending",
        "Scheduling",
        "Running",
        "TargetReady",
        "Synchronizing",
        "Succeeded",
        "Failed",
        "New",
    ];
    let all: Vec<_> = phases
        .iter()
        .map(|phase| {
            Arc::new(read(json!({
                "metadata": { "name": format!("m-{phase}"), "namespace": "shop" },
                "spec": { "vmiName": "web" }, "status": { "phase": phase },
            })))
        })
        .collect();
    let told = lines(|page| migrations::tell(page, &all));
    let expected = [
        "kubevirt_vmi_migration_succeeded{vmi=\"web\",vmim=\"m-Succeeded\",namespace=\"shop\"} 1",
        "kubevirt_vmi_migration_failed{vmi=\"web\",vmim=\"m-Failed\",namespace=\"shop\"} 1",
        "kubevirt_vmi_migrations_in_pending_phase 1",
        "kubevirt_vmi_migrations_in_scheduling_phase 1",
        "kubevirt_vmi_migrations_in_unset_phase 1",
        "kubevirt_vmi_migrations_in_running_phase 3",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_snapshot_has_its_time() {
    for (status, count) in [
        (json!({ "phase": "Succeeded", "creationTime": "2026-01-01T00:00:00Z" }), 1),
        (json!({ "phase": "Succeeded" }), 0),
        (json!({ "phase": "InProgress", "creationTime": "2026-01-01T00:00:00Z" }), 0),
    ] {
        let snapshot = read(json!({
            "metadata": { "name": "s", "namespace": "shop" },
            "spec": { "source": { "kind": "VirtualMachine", "name": "web" } }, "status": status,
        }));
        let told = lines(|page| snapshots::tell(page, &snapshot));
        assert_eq!(told.len(), count, "{status}");
        let line = "kubevirt_vmsnapshot_succeeded_timestamp_seconds{name=\"web\",snapshot_name=\"s\",namespace=\"shop\"} 1767225600";
        assert!(told.iter().all(|told| told == line), "{told:?}");
    }
}

#[test]
fn each_name_is_there_once() {
    let metrics = Metrics::new();
    Told::new(&metrics);
    let mut names: Vec<String> = metrics.descriptions().into_iter().map(|one| one.name).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}
