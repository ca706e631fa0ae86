//! Container disks: mounted from sidecars, found in image volumes, unmounted at the end.

use std::fs;

use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_virt_handler::prepare::{PrepareError, after_end, before_start, checksums, remembered};
use serde_json::json;

use super::ground::{Node, UID, alone, seen, vmi};

const DISKS: &str = "var/run/kubevirt/container-disks";

fn machine() -> VirtualMachineInstance {
    let spec = json!({
        "volumes": [
            {"name": "scratch", "emptyDisk": {"capacity": "1Gi"}},
            {"name": "root", "containerDisk": {"image": "a"}},
            {"name": "data", "containerDisk": {"image": "b", "path": "/images/link.img"}},
        ],
        "domain": {"devices": {}, "firmware": {"kernelBoot": {"container": {
            "image": "k", "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"}}}},
    });
    vmi(spec, json!({}))
}

#[test]
fn are_mounted_once_and_leave_nothing() {
    alone("place::container_disks::are_mounted_once_and_leave_nothing", || async {
        let mut node = Node::new();
        let root = node.root(&[]);
        let place = node.launcher(&root, &[]);
        node.image("disk_1", &[("disk/only.qcow2", "the root disk")]);
        node.image("disk_2", &[("images/real.img", "the data disk")]);
        std::os::unix::fs::symlink("/images/real.img", node.path("container-2/images/link.img")).unwrap();
        node.image("kernel-boot", &[("boot/vmlinuz", "kernel"), ("boot/initrd", "initrd")]);
        let (machine, config) = (machine(), ClusterConfig::default());
        let prepared = before_start(&machine, &place, &config).await.unwrap();
        assert_eq!(prepared.selinux_context, "none");
        for (path, text) in [
            ("disk_1.img", "the root disk"),
            ("disk_2.img", "the data disk"),
            ("kernel-boot/vmlinuz", "kernel"),
            ("kernel-boot/initrd", "initrd"),
        ] {
            let path = seen(&place, &format!("{DISKS}/{path}"));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert!(fs::write(&path, "x").unwrap_err().to_string().contains("Read-only"));
        }
        let mounts = node.mounts();
        assert_eq!(mounts.len(), 4, "{mounts:?}");

        // A handler that restarted finds all as it is.
        let place = node.found_again();
        assert_eq!(before_start(&machine, &place, &config).await.unwrap(), prepared);
        assert_eq!(node.mounts(), mounts);
        let known = remembered(&node.folders).unwrap();
        assert_eq!((known[0].pod_uid.as_str(), known[0].name.as_str()), (UID, "web"));

        let sums = checksums(&machine, &place).await.unwrap().unwrap();
        assert_eq!(sums.disks.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["root", "data"]);
        assert_eq!(sums.kernel, Some(0x5dd2_9aab));

        after_end(UID, &node.folders).await.unwrap();
        assert_eq!(node.mounts(), Vec::<String>::new());
        assert!(!seen(&place, &format!("{DISKS}/disk_1.img")).exists());
        assert_eq!(remembered(&node.folders).unwrap(), []);
        after_end(UID, &node.folders).await.unwrap();
    });
}

#[test]
fn are_waited_for_and_completed_after_a_restart() {
    alone("place::container_disks::are_waited_for_and_completed_after_a_restart", || async {
        let mut node = Node::new();
        let root = node.root(&[]);
        let place = node.launcher(&root, &[]);
        node.image("disk_1", &[("disk/only.qcow2", "the root disk")]);
        let (machine, config) = (machine(), ClusterConfig::default());
        let error = before_start(&machine, &place, &config).await.unwrap_err();
        assert!(matches!(error, PrepareError::NotYet(_)), "{error}");
        assert!(error.to_string().contains("\"data\""), "{error}");
        assert_eq!(node.mounts().len(), 1);
        // A mount that was written down and not made.
        fs::write(node.empty_dir(UID, "container-disks").join("disk_2.img"), "").unwrap();

        let place = node.found_again();
        let waiting = tokio::spawn(async move { before_start(&machine, &place, &config).await });
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        node.image("disk_2", &[("images/link.img", "the data disk")]);
        node.image("kernel-boot", &[("boot/vmlinuz", "kernel"), ("boot/initrd", "initrd")]);
        // On a busy machine the images come later than anyone waits for them; then it is tried again.
        let (mut ready, begun) = (waiting.await.unwrap(), std::time::Instant::now());
        while matches!(ready, Err(PrepareError::NotYet(_))) && begun.elapsed().as_secs() < 60 {
            ready = before_start(&self::machine(), &node.found_again(), &ClusterConfig::default()).await;
        }
        ready.unwrap();
        assert_eq!(node.mounts().len(), 4);
        // The pod is gone, and the kubelet is about to remove its folder.
        drop(node.found_again());
        after_end(UID, &node.folders).await.unwrap();
        assert_eq!(node.mounts(), Vec::<String>::new());
        fs::remove_dir_all(node.folders.pods.join(UID)).unwrap();
        after_end(UID, &node.folders).await.unwrap();
    });
}

#[test]
fn are_found_where_the_cluster_mounts_images() {
    alone("place::container_disks::are_found_where_the_cluster_mounts_images", || async {
        let mut node = Node::new();
        let root = node.root(&[]);
        let (one, two, kernel) = (node.path("one"), node.path("two"), node.path("kernel"));
        for (folder, file) in [(&one, "disk/a.img"), (&one, "disk/b.img"), (&two, "images/link.img")] {
            fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
            fs::write(folder.join(file), "disk").unwrap();
        }
        fs::create_dir_all(kernel.join("boot")).unwrap();
        fs::write(kernel.join("boot/vmlinuz"), "kernel").unwrap();
        fs::write(kernel.join("boot/initrd"), "initrd").unwrap();
        let images = "var/run/kubevirt-image-volume";
        let folders = [
            (one.clone(), format!("{images}/disk_1")),
            (two, format!("{images}/disk_2")),
            (kernel, "var/run/kubevirt-kernel-boot".to_owned()),
        ];
        let folders = folders.each_ref().map(|(from, to)| (from.clone(), to.as_str()));
        let place = node.launcher(&root, &folders);
        let config = ClusterConfig::default();
        let error = before_start(&machine(), &place, &config).await.unwrap_err();
        assert!(error.to_string().contains("more than one file in /disk"), "{error}");
        fs::remove_file(one.join("disk/b.img")).unwrap();
        before_start(&machine(), &place, &config).await.unwrap();
        assert_eq!(node.mounts(), Vec::<String>::new());
        assert_eq!(checksums(&machine(), &place).await.unwrap(), None);
    });
}
