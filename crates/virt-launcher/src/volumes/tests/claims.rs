//! Claims, ephemeral volumes, host disks and volumes that were added to a running machine.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use kubevirt_disk_image::Allowance;
use serde_json::{Value, json};

use super::pod::{MIB, Pod, qemu_info, run, vmi, with_status};
use crate::volumes::{Note, Purpose, Request, prepare};

fn claim() -> Value {
    json!([{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}])
}

fn status(capacity: &str, overhead: Option<&str>) -> Value {
    let storage = json!({"storage": capacity});
    json!([{"name": "data", "target": "", "persistentVolumeClaimInfo": {
        "capacity": storage, "requests": storage, "filesystemOverhead": overhead}}])
}

const IMAGE: &str = "private/vmi-disks/data/disk.img";

#[test]
fn an_image_is_made_in_an_empty_claim() {
    for volumes in [claim(), json!([{"name": "data", "dataVolume": {"name": "c"}}])] {
        let pod = Pod::new();
        let vmi = with_status(vmi(volumes), status("20Mi", None));
        let problem = pod.problem(&vmi);
        assert!(problem.contains("neither an image"), "{problem}");
        fs::create_dir_all(pod.path(IMAGE).parent().unwrap()).unwrap();
        let prepared = pod.prepare(&vmi).unwrap();
        let facts = &prepared.facts["data"];
        assert!(!facts.block && !facts.preallocated && facts.discard && facts.format.is_none());
        assert!(facts.block_size.is_some());
        let metadata = fs::metadata(pod.path(IMAGE)).unwrap();
        assert_eq!((metadata.len(), metadata.blocks()), (20 * MIB, 0));

        // What a guest has written stays, whatever it looks like.
        fs::write(pod.path(IMAGE), b"QFI\xfb\0\0\0\x03").unwrap();
        pod.prepare(&vmi).unwrap();
        assert_eq!(fs::metadata(pod.path(IMAGE)).unwrap().len(), 8);
    }
}

#[test]
fn what_is_not_known_of_a_claim_is_told_if_it_is_needed() {
    let pod = Pod::new();
    fs::create_dir_all(pod.path(IMAGE).parent().unwrap()).unwrap();
    let problem = pod.problem(&vmi(claim()));
    assert!(problem.contains("cannot be made, because nothing is known about its claim"), "{problem}");
    for (capacity, expected) in [("many", "no number of bytes"), ("1k", "too few"), ("-1Gi", "no number")] {
        let problem = pod.problem(&with_status(vmi(claim()), status(capacity, None)));
        assert!(problem.contains(expected), "{problem}");
    }
    pod.file(IMAGE, "");
    let problem = pod.problem(&vmi(claim()));
    assert!(problem.contains("it is empty"), "{problem}");
    pod.file(IMAGE, "x");
    pod.prepare(&vmi(claim())).unwrap();
}

#[test]
fn there_must_be_space_for_a_new_image() {
    let pod = Pod::new();
    let folder = pod.path(IMAGE).parent().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    let free = kubevirt_disk_image::free_space(&folder).unwrap();
    let vmi = with_status(vmi(claim()), status(&(4 * free).to_string(), None));
    let strict = Allowance { reserve: 0, tolerated_percent: 0 };
    let errors = prepare(&Request { allowance: strict, ..Request::start(&vmi, &pod.layout) }).unwrap_err();
    let problem = errors[0].to_string();
    assert!(problem.contains("there is no space for") && problem.contains("use a larger claim"), "{problem}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);

    let loose = Allowance { reserve: 1 << 20, tolerated_percent: 90 };
    let prepared = prepare(&Request { allowance: loose, ..Request::start(&vmi, &pod.layout) }).unwrap();
    assert!(matches!(&prepared.notes[..], [Note::Smaller { volume, .. }] if volume == "data"));
    let size = fs::metadata(pod.path(IMAGE)).unwrap().len();
    assert_eq!(size % MIB, 0);
    assert!(prepared.notes[0].to_string().contains(&size.to_string()));
}

#[test]
fn images_grow_with_their_claims() {
    let pod = Pod::new();
    pod.file(IMAGE, vec![1; MIB as usize]);
    let vmi = with_status(vmi(claim()), status("100Mi", Some("0.1")));
    // A full image stays full when it grows, so this is what tells a sparse one.
    for _ in 0..2 {
        let prepared = pod.prepare(&vmi).unwrap();
        assert!(prepared.notes.is_empty(), "{:?}", prepared.notes);
        assert!(prepared.facts["data"].preallocated);
        assert_eq!(fs::metadata(pod.path(IMAGE)).unwrap().len(), 90 * MIB);
    }
    fs::write(pod.path(IMAGE), "x").unwrap();
    let file = fs::OpenOptions::new().write(true).open(pod.path(IMAGE)).unwrap();
    file.set_len(MIB).unwrap();
    let prepared = pod.prepare(&vmi).unwrap();
    assert!(!prepared.facts["data"].preallocated);
    let metadata = fs::metadata(pod.path(IMAGE)).unwrap();
    assert!(metadata.len() == 90 * MIB && metadata.blocks() * 512 < MIB);

    // Not while the other node still writes, and not a CD-ROM.
    for (purpose, disk) in [
        (Purpose::MigrationTarget, json!({"name": "data", "disk": {}})),
        (Purpose::Start, json!({"name": "data", "cdrom": {}})),
    ] {
        file.set_len(MIB).unwrap();
        let mut vmi = vmi.clone();
        vmi.spec.domain.devices.disks = serde_json::from_value(json!([disk])).unwrap();
        pod.prepare_for(&vmi, purpose).unwrap();
        assert_eq!(fs::metadata(pod.path(IMAGE)).unwrap().len(), MIB);
    }
}

#[test]
fn space_that_was_taken_on_purpose_is_not_given_back() {
    let pod = Pod::new();
    pod.file(IMAGE, "x");
    let status = json!([{"name": "data", "target": "", "persistentVolumeClaimInfo": {"preallocated": true}}]);
    assert!(!pod.prepare(&with_status(vmi(claim()), status)).unwrap().facts["data"].discard);
}

#[test]
fn a_claim_that_is_shared_as_a_folder_gets_no_image() {
    let pod = Pod::new();
    let mut vmi = vmi(claim());
    vmi.spec.domain.devices.disks = None;
    vmi.spec.domain.devices.filesystems =
        serde_json::from_value(json!([{"name": "data", "virtiofs": {}}])).unwrap();
    assert!(pod.prepare(&vmi).unwrap().facts.is_empty());
}

#[test]
fn links_of_a_claim_stay_in_it() {
    let pod = Pod::new();
    pod.file("secret", "of the pod");
    pod.file("private/vmi-disks/data/other.img", "x");
    symlink("other.img", pod.path(IMAGE)).unwrap();
    pod.prepare(&vmi(claim())).unwrap();
    for target in ["../../../secret".into(), pod.path("secret")] {
        fs::remove_file(pod.path(IMAGE)).unwrap();
        symlink(target, pod.path(IMAGE)).unwrap();
        let problem = pod.problem(&vmi(claim()));
        assert!(problem.contains("leads out of the volume"), "{problem}");
        let ephemeral = json!([{"name": "data", "ephemeral": {"persistentVolumeClaim": {"claimName": "c"}}}]);
        let problem = pod.problem(&vmi(ephemeral));
        assert!(problem.contains("leads out of the volume"), "{problem}");
    }
}

#[test]
fn ephemeral_volumes_leave_their_claim_as_it_is() {
    let pod = Pod::new();
    let volumes = json!([{"name": "data", "ephemeral": {"persistentVolumeClaim": {"claimName": "c"}}}]);
    let problem = pod.problem(&vmi(volumes.clone()));
    assert!(problem.contains("neither an image"), "{problem}");
    // It starts like a qcow2 image that reads a file of the host, and is raw nevertheless.
    let image = pod.file(IMAGE, "x");
    let name = image.to_str().unwrap();
    run("qemu-img", ["create", "-q", "-f", "qcow2", "-u", "-F", "raw", "-b", "/etc/shadow", name, "9M"]);
    let size = fs::metadata(&image).unwrap().len();
    let facts = &pod.prepare(&vmi(volumes)).unwrap().facts["data"];
    assert!(!facts.block && facts.format.is_none());
    let info = qemu_info(&pod.path("ephemeral/disk-data/data/disk.qcow2"));
    assert_eq!(info["virtual-size"], size.next_multiple_of(512));
    assert_eq!(info["backing-filename-format"], "raw");
    assert_eq!(info["backing-filename"], name);
}

#[test]
fn host_disks_are_there_or_made() {
    let pod = Pod::new();
    let disk = |kind: &str, capacity: Option<&str>| {
        vmi(
            json!([{"name": "data", "hostDisk": {"path": "/srv/images/a.img", "type": kind, "capacity": capacity}}]),
        )
    };
    let problem = pod.problem(&disk("Disk", None));
    assert!(problem.contains("is not there"), "{problem}");
    fs::create_dir_all(pod.path("private/vmi-disks/data")).unwrap();
    for (vmi, expected) in [
        (disk("Disk", None), "because hostDisk.type is not DiskOrCreate"),
        (disk("DiskOrCreate", None), "because hostDisk.capacity is not set"),
        (disk("DiskOrCreate", Some("0")), "hostDisk.capacity is 0"),
        (disk("DiskOrCreate", Some("x")), "hostDisk.capacity is \"x\""),
        (disk("DiskOrCreate", Some("8000Ti")), "there is no space for"),
    ] {
        let problem = pod.problem(&vmi);
        assert!(problem.contains(expected), "{problem}");
    }
    pod.prepare(&disk("DiskOrCreate", Some("3Mi"))).unwrap();
    assert_eq!(fs::metadata(pod.path("private/vmi-disks/data/a.img")).unwrap().len(), 3 * MIB);
    pod.prepare(&disk("Disk", None)).unwrap();
    pod.prepare(&disk("DiskOrCreate", Some("8000Ti"))).unwrap();
    let up = vmi(json!([{"name": "data", "hostDisk": {"path": "/srv/..", "type": "Disk"}}]));
    assert!(pod.problem(&up).contains("cannot be the name of a file"));
}

#[test]
fn added_volumes_count_once_they_are_mounted() {
    let pod = Pod::new();
    let volumes =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "c", "hotpluggable": true}}]);
    assert!(pod.prepare(&vmi(volumes.clone())).unwrap().facts.is_empty());
    let in_phase = |phase: &str| {
        let status = json!([{"name": "data", "target": "", "phase": phase, "hotplugVolume": {}}]);
        with_status(vmi(volumes.clone()), status)
    };
    for phase in ["Pending", "AttachedToNode"] {
        assert!(pod.prepare(&in_phase(phase)).unwrap().facts.is_empty(), "{phase}");
    }
    let problem = pod.problem(&in_phase("MountedToPod"));
    assert!(problem.contains("hotplug/data.img nor a block device"), "{problem}");
    pod.file("hotplug/data.img", "x");
    for purpose in [Purpose::Start, Purpose::Hotplug, Purpose::MigrationTarget] {
        let facts = pod.prepare_for(&in_phase("Ready"), purpose).unwrap().facts;
        assert!(!facts["data"].block);
    }
}

#[test]
fn names_do_not_lead_out_of_folders() {
    let pod = Pod::new();
    for name in ["..", "a/b", "../up", ""] {
        let problem = pod.problem(&vmi(json!([{"name": name, "emptyDisk": {"capacity": "1Gi"}}])));
        assert!(problem.contains("cannot be the name of a file"), "{problem}");
    }
}

/// A loop device, where the kernel has them.
struct Loop(String);

impl Loop {
    fn new(image: &Path) -> Option<Self> {
        let said = std::process::Command::new("losetup").args(["-f", "--show"]).arg(image).output().ok()?;
        said.status.success().then(|| Self(String::from_utf8_lossy(&said.stdout).trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = std::process::Command::new("losetup").args(["-d", &self.0]).status();
    }
}

#[test]
fn claims_can_be_devices() {
    let pod = Pod::new();
    let image = pod.file("image", vec![0; 7 * MIB as usize]);
    let Some(device) = Loop::new(&image) else {
        eprintln!("this kernel has no free loop device");
        return;
    };
    for folder in ["dev", "hotplug"] {
        fs::create_dir(pod.path(folder)).unwrap();
        symlink(&device.0, pod.path(folder).join("data")).unwrap();
    }
    let facts = &pod.prepare(&vmi(claim())).unwrap().facts["data"];
    assert!(facts.block && !facts.preallocated);
    let sizes = facts.block_size.unwrap();
    assert!(sizes.logical >= 512 && sizes.physical >= sizes.logical, "{sizes:?}");

    let ephemeral = json!([{"name": "data", "ephemeral": {"persistentVolumeClaim": {"claimName": "c"}}}]);
    let facts = &pod.prepare(&vmi(ephemeral)).unwrap().facts["data"];
    assert!(facts.block);
    let info = qemu_info(&pod.path("ephemeral/disk-data/data/disk.qcow2"));
    assert_eq!(info["virtual-size"], 7 * MIB);
    assert_eq!(info["backing-filename"], pod.layout.claim_block("data"));

    let status = json!([{"name": "data", "target": "", "phase": "Ready", "hotplugVolume": {}}]);
    let facts = &pod.prepare(&with_status(vmi(claim()), status)).unwrap().facts["data"];
    assert!(facts.block);
}
