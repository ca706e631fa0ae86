//! Images of host disks and claims, and devices that the launcher gets.

use std::fs;
use std::os::unix::fs::MetadataExt;

use kubevirt_admission::ClusterConfig;
use kubevirt_virt_handler::prepare::before_start;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::json;

use super::ground::{Node, alone, seen, vmi};

#[test]
fn images_are_made_and_handed_over() {
    alone("place::volumes::images_are_made_and_handed_over", || async {
        let mut node = Node::new();
        let root = node.root(&[]);
        let (host, claim) = (node.path("host"), node.path("claim"));
        for folder in [&host, &claim] {
            fs::create_dir_all(folder).unwrap();
        }
        let folder = |volume: &str| format!("var/run/kubevirt-private/vmi-disks/{volume}");
        let (at_host, at_claim) = (folder("host"), folder("claim"));
        let place = node.launcher(&root, &[(host.clone(), &at_host), (claim.clone(), &at_claim)]);
        let disk = |kind: &str| json!({"name": "host", "hostDisk": {"path": "/data/x.img", "type": kind, "capacity": "1500k"}});
        let pvc = json!({"name": "claim", "persistentVolumeClaim": {"claimName": "c"}});
        let info = json!({"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
            "capacity": {"storage": "5Mi"}, "requests": {"storage": "3500Ki"}});
        let status =
            json!({"volumeStatus": [{"name": "claim", "target": "", "persistentVolumeClaimInfo": info}]});
        let machine = |kind: &str| {
            vmi(json!({"volumes": [disk(kind), pvc], "domain": {"devices": {}}}), status.clone())
        };
        let config = ClusterConfig::default();

        let error = before_start(&machine("Disk"), &place, &config).await.unwrap_err().to_string();
        assert!(error.contains("there is no x.img"), "{error}");
        before_start(&machine("DiskOrCreate"), &place, &config).await.unwrap();
        let facts = |path| {
            let file = fs::metadata(path).unwrap();
            (file.len(), file.uid(), file.gid(), file.blocks(), file.ino())
        };
        let (made, claimed) = (facts(host.join("x.img")), facts(claim.join("disk.img")));
        assert_eq!((made.0, made.1, made.2, made.3), (1_500_000, 107, 107, 0));
        assert_eq!((claimed.0, claimed.1, claimed.2, claimed.3), (3 << 20, 107, 107, 0));

        // What is there is kept, and handed over if it is somebody else's.
        fs::write(host.join("x.img"), "precious").unwrap();
        std::os::unix::fs::chown(host.join("x.img"), Some(0), Some(0)).unwrap();
        before_start(&machine("DiskOrCreate"), &place, &config).await.unwrap();
        before_start(&machine("Disk"), &place, &config).await.unwrap();
        assert_eq!(fs::read_to_string(host.join("x.img")).unwrap(), "precious");
        assert_eq!(facts(host.join("x.img")).1, 107);
        assert_eq!(facts(claim.join("disk.img")), claimed);
        assert_eq!(fs::read_dir(&host).unwrap().count(), 1);
    });
}

#[test]
fn only_mounted_folders_count_and_space_is_looked_at() {
    alone("place::volumes::only_mounted_folders_count_and_space_is_looked_at", || async {
        let mut node = Node::new();
        let root = node.root(&[]);
        let small = node.path("small");
        fs::create_dir_all(&small).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("none", &small, "tmpfs", flags, Some(c"size=10m")).unwrap();
        fs::create_dir_all(root.join("var/run/kubevirt-private/vmi-disks/loose")).unwrap();
        let place = node.launcher(&root, &[(small.clone(), "var/run/kubevirt-private/vmi-disks/small")]);
        let disk = |name: &str, size: &str| {
            let disk = json!({"path": "/data/x.img", "type": "DiskOrCreate", "capacity": size});
            vmi(json!({"volumes": [{"name": name, "hostDisk": disk}], "domain": {"devices": {}}}), json!({}))
        };
        let config = ClusterConfig::default();
        let error = before_start(&disk("loose", "1Mi"), &place, &config).await.unwrap_err().to_string();
        assert!(error.contains("should have been mounted"), "{error}");
        let error = before_start(&disk("small", "20Mi"), &place, &config).await.unwrap_err().to_string();
        assert!(error.contains("no space for x.img"), "{error}");
        let prepared = before_start(&disk("small", "10Mi"), &place, &config).await.unwrap();
        assert_eq!(prepared.notes.len(), 1, "{:?}", prepared.notes);
        assert_eq!(fs::metadata(small.join("x.img")).unwrap().len(), 9 << 20);
    });
}

#[test]
fn devices_are_given_to_the_launcher() {
    alone("place::volumes::devices_are_given_to_the_launcher", || async {
        let mut node = Node::new();
        let root = node.root(&[("dev/net/note", "no device"), ("dev/vhost-net", "no device either")]);
        fs::create_dir_all(root.join("dev/vfio/devices")).unwrap();
        let make = |path: &str, kind, device| {
            mknodat(CWD, root.join(path), kind, Mode::RUSR | Mode::WUSR, device).unwrap();
        };
        let character = FileType::CharacterDevice;
        for (path, device) in [
            ("dev/kvm", (10, 232)),
            ("dev/net/tun", (10, 200)),
            ("dev/vfio/vfio", (10, 196)),
            ("dev/vfio/12", (243, 0)),
            ("dev/vfio/devices/vfio0", (511, 0)),
            ("dev/other", (10, 1)),
        ] {
            make(path, character, makedev(device.0, device.1));
        }
        make("dev/block", FileType::BlockDevice, makedev(253, 77));
        let place = node.launcher(&root, &[]);
        let status = json!({"volumeStatus": [{"name": "block", "target": "",
            "persistentVolumeClaimInfo": {"volumeMode": "Block"}}]});
        let volume = json!({"name": "block", "persistentVolumeClaim": {"claimName": "c"}});
        let mut machine = vmi(json!({"volumes": [volume], "domain": {"devices": {}}}), status);
        for _ in 0..2 {
            before_start(&machine, &place, &ClusterConfig::default()).await.unwrap();
        }
        let owner = |path: &str| fs::metadata(seen(&place, path)).unwrap().uid();
        for path in ["dev/kvm", "dev/net/tun", "dev/vfio/12", "dev/vfio/devices/vfio0", "dev/block"] {
            assert_eq!(owner(path), 107, "{path}");
        }
        for path in ["dev/vfio/vfio", "dev/other", "dev/vhost-net", "dev/net/note"] {
            assert_eq!(owner(path), 0, "{path}");
        }
        assert_eq!(fs::metadata(seen(&place, "dev/vfio/vfio")).unwrap().mode() & 0o777, 0o666);

        // A launcher that runs as root.
        machine.status.as_mut().unwrap().runtime_user = Some(0);
        before_start(&machine, &place, &ClusterConfig::default()).await.unwrap();
        for path in ["dev/kvm", "dev/net/tun", "dev/vfio/12", "dev/vfio/devices/vfio0", "dev/block"] {
            assert_eq!(owner(path), 0, "{path}");
        }
    });
}
