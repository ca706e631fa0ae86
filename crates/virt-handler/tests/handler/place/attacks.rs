//! A launcher that wants to be given the node's files.
#![expect(unsafe_code, reason = "a handler has mounts of its own by unshare")]

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_virt_handler::prepare::{Place, PrepareError, after_end, before_start};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::ground::{Node, PATIENCE, UID, alone, vmi};

/// Why a machine cannot start, once its containers are there: their sockets are seen a moment before they are listened on.
async fn refusal(vmi: &VirtualMachineInstance, place: &Place, config: &ClusterConfig) -> String {
    let waiting = async {
        loop {
            match before_start(vmi, place, config).await {
                Err(PrepareError::NotYet(_)) => sleep(Duration::from_millis(10)).await,
                other => return other.unwrap_err().to_string(),
            }
        }
    };
    timeout(PATIENCE, waiting).await.unwrap()
}

#[test]
fn links_lead_nowhere() {
    alone("place::attacks::links_lead_nowhere", || async {
        let mut node = Node::new();
        let root = node.root(&[]);
        let private = node.path("claim");
        fs::create_dir_all(&private).unwrap();
        let folder = "var/run/kubevirt-private/vmi-disks/host";
        let place = node.launcher(&root, &[(private.clone(), folder)]);
        let disks = node.empty_dir(UID, "container-disks");
        let (victim, config) = (node.path("victim"), ClusterConfig::default());
        fs::write(&victim, "the node's").unwrap();
        let disk = |path: &str| {
            let volume = json!({"name": "root", "containerDisk": {"image": "a", "path": path}});
            vmi(json!({"volumes": [volume], "domain": {"devices": {}}}), json!({}))
        };

        // The place of the disk is a link to a file of the node.
        node.image("disk_0", &[("disk/a.img", "disk")]);
        symlink(&victim, disks.join("disk_0.img")).unwrap();
        let error = refusal(&disk(""), &place, &config).await;
        assert!(error.contains("a link is in the way"), "{error}");
        assert_eq!(node.mounts(), Vec::<String>::new());
        fs::remove_file(disks.join("disk_0.img")).unwrap();

        // The path of the disk climbs out of the image.
        let climbing = format!("../../../../..{}", victim.display());
        let error = refusal(&disk(&climbing), &place, &config).await;
        assert!(error.contains("does not have its file"), "{error}");

        // The folder for kernels is a link to one of the node.
        let kernel = json!({"image": "k", "kernelPath": "/disk/a.img"});
        let boot = json!({"kernelBoot": {"container": kernel}});
        let boot = vmi(json!({"domain": {"devices": {}, "firmware": boot}}), json!({}));
        node.image("kernel-boot", &[("disk/a.img", "kernel")]);
        symlink(node.path(""), disks.join("kernel-boot")).unwrap();
        let error = refusal(&boot, &place, &config).await;
        assert!(error.contains("a link is in the way"), "{error}");
        assert!(!node.path("a.img").exists());
        fs::remove_file(disks.join("kernel-boot")).unwrap();

        // The place of a host disk is a link to a file of the node.
        symlink(&victim, private.join("x.img")).unwrap();
        let host = json!({"name": "host", "hostDisk": {"path": "/data/x.img", "type": "DiskOrCreate", "capacity": "1Mi"}});
        let host = vmi(json!({"volumes": [host], "domain": {"devices": {}}}), json!({}));
        let error = refusal(&host, &place, &config).await;
        assert!(error.contains("a link is in the way"), "{error}");

        assert_eq!(fs::read_to_string(&victim).unwrap(), "the node's");
        assert_eq!(fs::metadata(&victim).unwrap().uid(), 0);
        after_end(UID, &node.folders).await.unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "the node's");
    });
}

#[test]
fn only_processes_of_pods_count() {
    alone("place::attacks::only_processes_of_pods_count", || async {
        let mut node = Node::new();
        let root = node.root(&[]);
        let place = node.launcher(&root, &[]);
        let disks = node.empty_dir(UID, "container-disks");
        let volume = json!({"name": "root", "containerDisk": {"image": "a", "path": "/etc/hostname"}});
        let machine = vmi(json!({"volumes": [volume], "domain": {"devices": {}}}), json!({}));
        let refused = async |expected: &str| {
            let error = before_start(&machine, &place, &ClusterConfig::default()).await.unwrap_err();
            assert!(matches!(&error, PrepareError::NotYet(text) if text.contains(expected)), "{error}");
        };

        // A process of the node listens, whose root folder is the node's.
        let ours = node.path("ours.sock");
        let _listener = UnixListener::bind(&ours).unwrap();
        fs::hard_link(&ours, disks.join("disk_0.sock")).unwrap_err();
        symlink(&ours, disks.join("disk_0.sock")).unwrap();
        refused("a link is in the way").await;
        fs::remove_file(disks.join("disk_0.sock")).unwrap();
        let _listener = UnixListener::bind(node.path("shared/direct.sock")).unwrap();
        fs::hard_link(node.path("shared/direct.sock"), disks.join("disk_0.sock")).unwrap();
        refused("is not in a pod").await;

        // A handler in a pod has other mounts than the processes of the node, and knows them all the same.
        let (socket, folders) = (disks.join("disk_0.sock"), node.folders.clone());
        let elsewhere = std::thread::spawn(move || {
            // SAFETY: only the mounts become the thread's own; no memory or file is unshared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.unwrap();
            Place::find(UID, &socket, &folders).unwrap_err().to_string()
        });
        let error = elsewhere.join().unwrap();
        assert!(error.contains("is not in a pod"), "{error}");

        for uid in ["", "..", "a/b", "../other"] {
            let found = Place::find(uid, &disks.join("disk_0.sock"), &node.folders);
            assert!(matches!(found, Err(PrepareError::Failed { .. })), "{uid}");
        }
        assert_eq!(node.mounts(), Vec::<String>::new());
    });
}
