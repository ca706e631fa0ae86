//! Container disks and kernels.

use std::fs;
use std::os::unix::fs::symlink;

use kubevirt_domain::domain::disk::ImageFormat;
use serde_json::json;

use super::pod::{MIB, Pod, qemu_info, run, vmi};

fn disk() -> serde_json::Value {
    json!([{"name": "root", "containerDisk": {"image": "x"}}])
}

fn qcow2(pod: &Pod, path: &str) {
    let path = pod.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    run("qemu-img", ["create", "-q", "-f", "qcow2", path.to_str().unwrap(), "5M"]);
}

#[test]
fn writes_go_to_a_layer_over_a_container_disk() {
    for (raw, format, name) in [(true, ImageFormat::Raw, "raw"), (false, ImageFormat::Qcow2, "qcow2")] {
        let pod = Pod::new();
        if raw {
            pod.file("container-disks/disk_0.img", vec![1; 5 * MIB as usize]);
        } else {
            qcow2(&pod, "container-disks/disk_0.img");
        }
        let prepared = pod.prepare(&vmi(disk())).unwrap();
        let facts = &prepared.facts["root"];
        assert_eq!(facts.format, Some(format));
        assert!(!facts.block && !facts.preallocated && facts.discard);
        let info = qemu_info(&pod.path("ephemeral/disk-data/root/disk.qcow2"));
        assert_eq!(info["virtual-size"], 5 * MIB);
        assert_eq!(info["backing-filename-format"], name);
        assert_eq!(info["backing-filename"], pod.layout.container_disk(0));
        // A second sync finds all done.
        assert_eq!(pod.prepare(&vmi(disk())).unwrap().facts, prepared.facts);
    }
}

#[test]
fn the_place_of_a_container_disk_is_that_of_its_volume() {
    let pod = Pod::new();
    pod.file("container-disks/disk_1.img", "x");
    let volumes = json!([
        {"name": "scratch", "emptyDisk": {"capacity": "1Gi"}},
        {"name": "root", "containerDisk": {"image": "x"}},
    ]);
    assert_eq!(pod.prepare(&vmi(volumes)).unwrap().facts.len(), 2);
}

/// Name, what is at the place of the disk, and what is said about it.
type Case = (&'static str, fn(&Pod), &'static str);

#[test]
fn bad_container_disks_are_refused_with_a_way_out() {
    let place = "container-disks/disk_0.img";
    let cases: [Case; 6] = [
        ("missing", |_| {}, "should have been mounted into the pod"),
        (
            "empty",
            |pod| {
                pod.file("container-disks/disk_0.img", "");
            },
            "it is empty; build the container image",
        ),
        (
            "reads a file of the host",
            |pod| {
                qcow2(pod, "container-disks/disk_0.img");
                let path = pod.path("container-disks/disk_0.img");
                let path = path.to_str().unwrap();
                run("qemu-img", ["rebase", "-u", "-f", "qcow2", "-F", "raw", "-b", "/etc/shadow", path]);
            },
            "takes data from another file (/etc/shadow)",
        ),
        (
            "cut off",
            |pod| {
                qcow2(pod, "container-disks/disk_0.img");
                let file = fs::OpenOptions::new().write(true).open(pod.path("container-disks/disk_0.img"));
                file.unwrap().set_len(70_000).unwrap();
            },
            "is cut off",
        ),
        (
            "other format",
            |pod| {
                pod.file("container-disks/disk_0.img", b"vhdxfile and more");
            },
            "is a VHDX image; convert it to qcow2 or raw",
        ),
        (
            "folder",
            |pod| {
                pod.file("container-disks/disk_0.img/file", "x");
            },
            "neither a regular file nor a block device",
        ),
    ];
    for (name, make, expected) in cases {
        let pod = Pod::new();
        make(&pod);
        let problem = pod.problem(&vmi(disk()));
        assert!(problem.starts_with("volume \"root\": ") && problem.contains(expected), "{name}: {problem}");
        assert!(problem.contains(place), "{name}: {problem}");
        assert!(!pod.path("ephemeral").exists(), "{name}: no layer over a bad image");
    }
}

#[test]
fn a_disk_is_found_in_a_mounted_image() {
    let pod = Pod::new();
    pod.file("image-volume/disk_0/disk/fedora.img", vec![2; MIB as usize]);
    pod.prepare(&vmi(disk())).unwrap();
    assert_eq!(
        fs::read_link(pod.layout.container_disk(0)).unwrap(),
        pod.path("image-volume/disk_0/disk/fedora.img")
    );
    pod.prepare(&vmi(disk())).unwrap();

    pod.file("image-volume/disk_0/disk/second.img", "x");
    fs::remove_file(pod.layout.container_disk(0)).unwrap();
    assert!(pod.problem(&vmi(disk())).contains("more than one file"));
    fs::remove_dir_all(pod.path("image-volume/disk_0/disk")).unwrap();
    assert!(pod.problem(&vmi(disk())).contains("put the disk there"));
    fs::create_dir(pod.path("image-volume/disk_0/disk")).unwrap();
    assert!(pod.problem(&vmi(disk())).contains("put the disk there"));

    pod.file("image-volume/disk_0/images/own.img", "x");
    let named = |path: &str| vmi(json!([{"name": "root", "containerDisk": {"image": "x", "path": path}}]));
    fs::remove_dir_all(pod.path("ephemeral")).unwrap();
    pod.prepare(&named("/images/own.img")).unwrap();
    assert_eq!(
        fs::read_link(pod.layout.container_disk(0)).unwrap(),
        pod.path("image-volume/disk_0/images/own.img")
    );
}

#[test]
fn links_and_paths_of_a_mounted_image_stay_in_it() {
    let pod = Pod::new();
    pod.file("secret", "of the pod");
    pod.file("image-volume/disk_0/real.img", "of the image");
    symlink("/real.img", pod.path("image-volume/disk_0/absolute")).unwrap();
    symlink("../../secret", pod.path("image-volume/disk_0/out")).unwrap();
    let named = |path: &str| vmi(json!([{"name": "root", "containerDisk": {"image": "x", "path": path}}]));
    pod.prepare(&named("/absolute")).unwrap();
    let place = pod.layout.container_disk(0);
    assert_eq!(fs::read_to_string(&place).unwrap(), "of the image", "its root is the image's");
    for path in ["/out", "../../secret", "/../../secret"] {
        fs::remove_file(&place).ok();
        let problem = pod.problem(&named(path));
        assert!(problem.contains("is not there"), "{path}: {problem}");
    }
}

#[test]
fn kernels_must_be_there() {
    let pod = Pod::new();
    let mut vmi = vmi(json!([]));
    vmi.spec.domain.firmware = serde_json::from_value(json!({"kernelBoot": {"container": {
        "image": "x", "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"}}}))
    .unwrap();
    let errors = pod.prepare(&vmi).unwrap_err();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].to_string().starts_with("volume \"kernelBoot\": "), "{}", errors[0]);
    pod.file("container-disks/kernel-boot/vmlinuz", "kernel");
    pod.file("container-disks/kernel-boot/initrd", "");
    assert!(pod.problem(&vmi).contains("it is empty"));
    pod.file("container-disks/kernel-boot/initrd", "initrd");
    pod.prepare(&vmi).unwrap();

    // The same from a mounted image.
    fs::remove_dir_all(pod.path("container-disks")).unwrap();
    pod.file("kernel-boot/boot/vmlinuz", "kernel");
    pod.file("kernel-boot/boot/initrd", "initrd");
    pod.prepare(&vmi).unwrap();
    assert_eq!(fs::read(pod.layout.kernel_artifact("/boot/initrd")).unwrap(), b"initrd");
}
