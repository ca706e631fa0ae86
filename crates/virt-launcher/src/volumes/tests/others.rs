//! Scratch disks, metrics, memory dumps and Ignition.

use std::fs;

use serde_json::json;

use super::pod::{MIB, Pod, qemu_info, vmi, with_status};
use crate::volumes::Purpose;

#[test]
fn scratch_disks_have_a_whole_number_of_mib() {
    for (capacity, expected) in [("2Gi", 2048 * MIB), ("2M", MIB), ("1.5Mi", MIB)] {
        let pod = Pod::new();
        let vmi = vmi(json!([{"name": "scratch", "emptyDisk": {"capacity": capacity}}]));
        let facts = &pod.prepare(&vmi).unwrap().facts["scratch"];
        assert!(!facts.block && !facts.preallocated && facts.format.is_none());
        let path = pod.path("ephemeral/empty-disks/scratch.qcow2");
        assert_eq!(qemu_info(&path)["virtual-size"], expected);
        let before = fs::read(&path).unwrap();
        pod.prepare(&vmi).unwrap();
        assert_eq!(fs::read(&path).unwrap(), before);
    }
    for (capacity, expected) in [("1k", "too few"), ("0", "too few"), ("large", "no number of bytes")] {
        let pod = Pod::new();
        let problem = pod.problem(&vmi(json!([{"name": "scratch", "emptyDisk": {"capacity": capacity}}])));
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn a_damaged_scratch_disk_is_not_replaced() {
    let pod = Pod::new();
    pod.file("ephemeral/empty-disks/scratch.qcow2", "what was once a disk");
    let problem = pod.problem(&vmi(json!([{"name": "scratch", "emptyDisk": {"capacity": "1Gi"}}])));
    assert!(problem.contains("it is not a qcow2 image"), "{problem}");
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let pod = Pod::new();
    let errors = pod
        .prepare(&vmi(json!([
            {"name": "a", "containerDisk": {"image": "x"}},
            {"name": "b", "configMap": {"name": "x"}},
            {"name": "c", "emptyDisk": {"capacity": "1Gi"}},
        ])))
        .unwrap_err();
    let names: Vec<_> = errors.iter().map(|error| error.volume.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn the_metrics_disk_is_there_before_metrics_are() {
    let pod = Pod::new();
    pod.prepare(&vmi(json!([{"name": "metrics", "downwardMetrics": {}}]))).unwrap();
    let bytes = fs::read(pod.layout.downward_metrics_disk()).unwrap();
    assert_eq!(bytes.len(), 256 << 10);
    assert!(bytes.starts_with(b"mvbd\0\0\0\0"));
}

#[test]
fn memory_dumps_need_their_folder_once_it_is_mounted() {
    let pod = Pod::new();
    let mut vmi = vmi(json!([{"name": "dump", "memoryDump": {"claimName": "c"}}]));
    vmi.spec.domain.devices.disks = None;
    assert!(pod.prepare(&vmi).unwrap().facts.is_empty());
    let status = json!([{"name": "dump", "target": "", "phase": "MountedToPod", "hotplugVolume": {}}]);
    let vmi = with_status(vmi, status);
    assert!(pod.problem(&vmi).contains("should have been mounted"));
    fs::create_dir_all(pod.path("hotplug/dump")).unwrap();
    assert!(pod.prepare_for(&vmi, Purpose::Hotplug).unwrap().facts.is_empty());
}

#[test]
fn ignition_data_is_a_file() {
    let pod = Pod::new();
    let mut vmi = vmi(json!([]));
    vmi.metadata.annotations = Some([("kubevirt.io/ignitiondata".to_owned(), "{\"a\":1}".to_owned())].into());
    pod.prepare(&vmi).unwrap();
    assert_eq!(fs::read_to_string(pod.layout.ignition("shop", "web")).unwrap(), "{\"a\":1}");
    pod.prepare(&vmi).unwrap();
}

#[test]
fn a_running_machine_s_other_volumes_are_left_alone() {
    let pod = Pod::new();
    let vmi = vmi(json!([{"name": "scratch", "emptyDisk": {"capacity": "1Gi"}}]));
    assert!(pod.prepare_for(&vmi, Purpose::Hotplug).unwrap().facts.is_empty());
    assert!(!pod.path("ephemeral").exists());
}
