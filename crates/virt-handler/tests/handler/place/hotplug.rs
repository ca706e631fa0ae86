//! Volumes that come and go.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use kubevirt_admission::ClusterConfig;
use kubevirt_virt_handler::prepare::{PrepareError, Progress, after_end, before_start, while_running};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::{Value, json};

use super::ground::{GROUPS, Node, UID, alone, seen, until, vmi};

const ATTACHMENT: &str = "aaaaaaaa-0000-4000-8000-000000000001";

fn status(name: &str, mode: &str, pod: &str, target: &str) -> Value {
    json!({"name": name, "target": target, "hotplugVolume": {"attachPodUID": pod},
        "persistentVolumeClaimInfo": {"volumeMode": mode}})
}

fn volume(name: &str) -> Value {
    json!({"name": name, "persistentVolumeClaim": {"claimName": name, "hotpluggable": true}})
}

/// The group that the launcher's processes are in, where there are such of version 1.
fn group(id: u32) -> Option<PathBuf> {
    let all = fs::read_to_string(format!("/proc/{id}/cgroup")).unwrap();
    let path = all.lines().find_map(|line| line.split_once(":devices:"))?.1.to_owned();
    Some(Path::new(GROUPS).join(path.strip_prefix('/').unwrap()))
        .filter(|path| path.join("devices.list").exists())
}

#[test]
fn files_and_devices_are_plugged_and_unplugged() {
    alone("place::hotplug::files_and_devices_are_plugged_and_unplugged", || async {
        let mut node = Node::new();
        let root = node.root(&[]);
        let place = node.launcher(&root, &[]);
        let group = group(place.launcher_id());
        if let Some(group) = &group {
            fs::write(group.join("devices.deny"), "a").unwrap();
            fs::write(group.join("devices.allow"), "c 1:3 rwm").unwrap();
        }
        let rules = || group.as_ref().map(|group| fs::read_to_string(group.join("devices.list")).unwrap());
        let config = ClusterConfig::default();
        let running = |volumes: Value, statuses: Value| {
            let spec = json!({"volumes": volumes, "domain": {"devices": {}},
                "utilityVolumes": [{"name": "backup", "claimName": "backup"}]});
            vmi(spec, json!({"volumeStatus": statuses}))
        };

        // Nothing is attached yet: a start waits, and a running machine goes on.
        let early = running(json!([volume("file")]), json!([status("file", "Filesystem", "", "")]));
        let error = before_start(&early, &place, &config).await.unwrap_err();
        assert!(matches!(&error, PrepareError::NotYet(text) if text.contains("not attached")), "{error}");
        let outcome = while_running(&early, &place, &config).await.unwrap();
        assert_eq!(outcome.hotplug[0].progress, Progress::Unattached);
        // Its pod counts as ready before it listens.
        let soon = running(json!([volume("file")]), json!([status("file", "Filesystem", ATTACHMENT, "")]));
        let outcome = while_running(&soon, &place, &config).await.unwrap();
        assert!(matches!(outcome.hotplug[0].progress, Progress::Waits(_)), "{:?}", outcome.hotplug);

        // The pod that brings them to the node.
        let (disk, backup) = (node.path("claim-file"), node.path("claim-backup"));
        fs::create_dir_all(&disk).unwrap();
        fs::create_dir_all(&backup).unwrap();
        fs::write(disk.join("disk.img"), "a disk").unwrap();
        let shared = node.empty_dir(ATTACHMENT, "hotplug-disks");
        fs::create_dir_all(shared.join("block")).unwrap();
        let device = makedev(7, 177);
        mknodat(CWD, shared.join("block/uid"), FileType::BlockDevice, Mode::RUSR, device).unwrap();
        let attachment = node.root(&[]);
        node.start(
            &attachment,
            "path/hp",
            &[(shared.clone(), "path"), (disk.clone(), "file"), (backup.clone(), "backup")],
        );
        until(|| shared.join("hp.sock").exists().then_some(()));

        let all = running(
            json!([volume("file"), volume("block")]),
            json!([
                status("file", "Filesystem", ATTACHMENT, ""),
                status("block", "Block", ATTACHMENT, ""),
                status("backup", "Filesystem", ATTACHMENT, "")
            ]),
        );
        let prepared = before_start(&all, &place, &config).await.unwrap();
        assert!(
            prepared.hotplug.iter().all(|state| state.progress == Progress::Mounted),
            "{:?}",
            prepared.hotplug
        );
        let at = |name: &str| seen(&place, &format!("var/run/kubevirt/hotplug-disks/{name}"));
        assert_eq!(fs::read_to_string(at("file.img")).unwrap(), "a disk");
        fs::write(at("file.img"), "written").unwrap();
        assert_eq!(fs::read_to_string(disk.join("disk.img")).unwrap(), "written");
        assert_eq!(fs::metadata(at("file.img")).unwrap().uid(), 107);
        fs::write(at("backup").join("dump"), "memory").unwrap();
        assert_eq!(fs::read_to_string(backup.join("dump")).unwrap(), "memory");
        let plugged = fs::metadata(at("block")).unwrap();
        assert!(plugged.file_type().is_block_device());
        assert_eq!((plugged.rdev(), plugged.uid()), (device, 107));
        assert_eq!(rules().unwrap_or("c 1:3 rwm\nb 7:177 rwm\n".into()), "c 1:3 rwm\nb 7:177 rwm\n");
        let mounts = node.mounts();
        assert_eq!(mounts.len(), 2, "{mounts:?}");

        // A restarted handler changes nothing.
        let place = node.found_again();
        let again = while_running(&all, &place, &config).await.unwrap();
        assert_eq!((again.hotplug, again.problems), (prepared.hotplug, vec![]));
        assert_eq!(node.mounts(), mounts);

        // What the guest still holds stays, even if nobody wants it any more.
        let held = running(
            json!([]),
            json!([
                status("file", "Filesystem", ATTACHMENT, "sda"),
                status("block", "Block", ATTACHMENT, ""),
                status("backup", "Filesystem", ATTACHMENT, "")
            ]),
        );
        while_running(&held, &place, &config).await.unwrap();
        assert!(at("file.img").exists() && !at("block").exists() && at("backup").join("dump").exists());
        assert_eq!(rules().unwrap_or("c 1:3 rwm\n".into()), "c 1:3 rwm\n");

        while_running(&running(json!([]), json!([])), &place, &config).await.unwrap();
        assert!(!at("file.img").exists());
        assert_eq!(fs::read_to_string(disk.join("disk.img")).unwrap(), "written");
        after_end(UID, &node.folders).await.unwrap();
        assert_eq!(node.mounts(), Vec::<String>::new());
        assert_eq!(fs::read_to_string(backup.join("dump")).unwrap(), "memory");
        assert_eq!(fs::read_dir(node.empty_dir(UID, "hotplug-disks")).unwrap().count(), 0);
    });
}
