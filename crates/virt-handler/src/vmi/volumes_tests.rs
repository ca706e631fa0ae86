use kubevirt_launcher_rpc::report::{Reason, State};
use serde_json::{Value, json};

use super::super::testing::{at, domain, machine, vmi};
use super::*;

fn told(vmi: &VirtualMachineInstance, report: Option<&DomainReport>, on_node: &OnNode) -> Vec<VolumeStatus> {
    volumes(vmi, report, on_node, at(0)).unwrap()
}

fn running(vmi: &VirtualMachineInstance) -> DomainReport {
    machine(domain(State::Running, Reason::Unknown), vmi)
}

#[test]
fn disks_have_the_names_that_the_guest_gives_them() {
    let spec = json!({
        "domain": {"devices": {"disks": [
            {"name": "root", "disk": {"bus": "virtio"}},
            {"name": "ci", "disk": {"bus": "virtio"}},
        ]}},
        "volumes": [
            {"name": "root", "containerDisk": {"image": "i"}},
            {"name": "ci", "cloudInitNoCloud": {"userData": "a"}},
        ],
    });
    let status = json!({"phase": "Running", "volumeStatus": [
        {"name": "root", "target": ""}, {"name": "ci", "target": ""}]});
    let vmi = vmi(spec, status);
    let mut report = running(&vmi);
    report.spec.as_mut().unwrap().disks[1].size = Some(1 << 20);
    report.spec.as_mut().unwrap().disks[0].size = Some(1 << 30);
    let on_node = OnNode { checksums: [("root".to_owned(), 7)].into(), ..OnNode::default() };
    let all = told(&vmi, Some(&report), &on_node);
    let expected: Vec<VolumeStatus> = serde_json::from_value(json!([
        {"name": "ci", "target": "vdb", "size": 1 << 20},
        {"name": "root", "target": "vda", "containerDiskVolume": {"checksum": 7}},
    ]))
    .unwrap();
    assert_eq!(all, expected);
}

fn hotplugged(phase: &str, wanted: bool) -> VirtualMachineInstance {
    let volumes =
        json!([{"name": "extra", "persistentVolumeClaim": {"claimName": "c", "hotpluggable": true}}]);
    let spec = if wanted { json!({"volumes": volumes}) } else { json!({}) };
    let volume =
        json!({"name": "extra", "target": "", "phase": phase, "hotplugVolume": {"attachPodName": "p"}});
    vmi(spec, json!({"volumeStatus": [volume]}))
}

#[test]
fn plugged_volumes_go_from_the_node_to_the_pod_to_the_guest_and_back() {
    let cases = [
        ("AttachedToNode", true, false, "AttachedToNode"),
        ("AttachedToNode", true, true, "MountedToPod"),
        ("MountedToPod", true, true, "MountedToPod"),
        ("Ready", false, true, "Ready"),
        ("Ready", false, false, "UnMountedFromPod"),
        ("MountedToPod", false, false, "UnMountedFromPod"),
        ("UnMountedFromPod", false, false, "UnMountedFromPod"),
        ("Pending", true, false, "Pending"),
    ];
    for (phase, wanted, mounted, expected) in cases {
        let vmi = hotplugged(phase, wanted);
        let on_node = OnNode {
            mounted: mounted.then(|| "extra".to_owned()).into_iter().collect(),
            ..OnNode::default()
        };
        let all = told(&vmi, None, &on_node);
        let found = all[0].phase.as_ref().map(VolumePhase::as_str);
        assert_eq!(found, Some(expected), "{phase} {wanted} {mounted}");
    }
}

#[test]
fn a_disk_that_the_guest_has_is_ready() {
    let mut vmi = hotplugged("MountedToPod", true);
    let disks = json!([{"name": "extra", "disk": {"bus": "scsi"}}]);
    vmi.spec.domain.devices.disks = serde_json::from_value(disks).unwrap();
    let all = told(&vmi, Some(&running(&vmi)), &OnNode::default());
    assert_eq!((all[0].target.as_str(), &all[0].phase), ("sda", &Some(VolumePhase::Ready)));
    assert_eq!(all[0].reason.as_deref(), Some("VolumeReady"));
}

fn dumping(phase: &str, file: Value) -> VirtualMachineInstance {
    let volume = json!({"name": "dump", "target": "", "phase": phase,
        "memoryDumpVolume": {"claimName": "c", "targetFileName": file}});
    vmi(json!({}), json!({"volumeStatus": [volume]}))
}

#[test]
fn a_dump_of_memory_begins_and_ends() {
    let begun = &told(&dumping("MountedToPod", json!(null)), None, &OnNode::default())[0];
    assert_eq!(begun.phase, Some(VolumePhase::MemoryDumpInProgress));
    let file = begun.memory_dump_volume.as_ref().unwrap().target_file_name.clone().unwrap();
    assert_eq!(file, "web-dump-19700101-000000.memory.dump");

    let job = |completed: bool, failed: bool, name: &str| {
        let mut report = domain(State::Running, Reason::Unknown);
        report.status.memory_dump = Some(JobReport {
            name: name.into(),
            start_timestamp: Some("2026-01-01T00:00:00Z".into()),
            end_timestamp: completed.then(|| "2026-01-01T00:00:05Z".into()),
            completed,
            failed,
            failure_reason: "no space".into(),
        });
        report
    };
    let cases = [
        (job(false, false, &file), VolumePhase::MemoryDumpInProgress),
        (job(true, false, &file), VolumePhase::MemoryDumpCompleted),
        (job(true, true, &file), VolumePhase::MemoryDumpFailed),
        (job(true, false, "an older one"), VolumePhase::MemoryDumpInProgress),
    ];
    for (report, expected) in cases {
        let vmi = dumping("MemoryDumpInProgress", json!(file));
        let all = told(&vmi, Some(&report), &OnNode::default());
        assert_eq!(all[0].phase, Some(expected));
    }
}

#[test]
fn which_volumes_there_are_is_not_ours_to_say() {
    let without = vmi(json!({}), json!({}));
    assert!(volumes(&without, None, &OnNode::default(), at(0)).is_none());
}
