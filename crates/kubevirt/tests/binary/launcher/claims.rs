//! Claims that are block devices, and claims that grow under a running guest.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::pod::{Pod, Settings, USER, vmi};

/// A block device over a file, until it is dropped.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Self {
        let name = losetup(&["--find", "--show", &file.to_string_lossy()]);
        Self(name)
    }

    /// Tells the kernel that the file has another length.
    fn measure(&self) {
        losetup(&["--set-capacity", &self.0]);
    }

    /// A script that makes a `/dev` in which the device has another name and belongs to the launcher.
    fn named(&self, name: &str) -> String {
        let device = &self.0;
        format!(
            "mkdir dev; mount -t tmpfs none dev; mkdir dev/net
             for node in null zero full random urandom net/tun; do touch dev/$node; mount --bind /dev/$node dev/$node; done
             cp -a {device} dev/{name}; chown {USER} dev/{name}
             mount --move dev /dev"
        )
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

fn losetup(arguments: &[&str]) -> String {
    let done = Command::new("losetup").args(arguments).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A file that is gone when this is dropped.
struct Backing(std::path::PathBuf);

impl Backing {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("kubevirt-device-{}", std::process::id()));
        let backing = Self(path);
        std::fs::File::create(&backing.0).unwrap();
        backing.grow(8);
        backing
    }

    fn grow(&self, mib: u64) {
        std::fs::OpenOptions::new().write(true).open(&self.0).unwrap().set_len(mib << 20).unwrap();
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What the cluster says of two claims: a file of this size, and a device.
fn claims(size: &str) -> Value {
    let storage = json!({"storage": size});
    let status = |name: &str, mode: &str| {
        json!({"name": name, "target": "", "persistentVolumeClaimInfo": {
            "capacity": storage, "requests": storage, "volumeMode": mode, "filesystemOverhead": "0",
        }})
    };
    vmi(json!({
        "spec": {
            "domain": {"devices": {"disks": [
                {"name": "root", "disk": {"bus": "virtio"}},
                {"name": "file", "disk": {"bus": "virtio"}},
                {"name": "device", "disk": {"bus": "scsi"}},
            ]}},
            "volumes": [
                {"name": "root", "containerDisk": {"image": "guest"}},
                {"name": "file", "persistentVolumeClaim": {"claimName": "file"}},
                {"name": "device", "persistentVolumeClaim": {"claimName": "device"}},
            ],
        },
        "status": {"volumeStatus": [status("file", "Filesystem"), status("device", "Block")]},
    }))
}

#[tokio::test]
async fn files_and_devices_grow_under_a_running_guest() {
    let backing = Backing::new();
    let device = Loop::over(&backing.0);
    let pod = Pod::with(Settings { set_up: device.named("device"), ..Settings::default() }).await;
    pod.container_disk(0);
    let file = pod.private().join("vmi-disks/file/disk.img");
    pod.write(&file, &vec![0; 8 << 20]);
    let mut console = pod.boot(&claims("8Mi")).await;
    let sizes = "cat /sys/block/vdb/size /sys/block/sda/size | tr '\\n' ' '";
    console.until(sizes, "16384 16384 ").await.unwrap();
    console
        .run("for disk in vdb sda; do echo $disk stays | dd of=/dev/$disk conv=fsync; done")
        .await
        .unwrap();
    assert!(std::fs::read(&file).unwrap().starts_with(b"vdb stays\n"));
    assert!(std::fs::read(&backing.0).unwrap().starts_with(b"sda stays\n"));

    // The storage grows first, and then the handler hears of it.
    backing.grow(24);
    device.measure();
    pod.sync(&claims("24Mi")).await.unwrap();
    console.until(sizes, "49152 49152 ").await.unwrap();
    let write = "for disk in vdb sda; do echo $disk end | dd of=/dev/$disk bs=1M seek=23 conv=fsync; done";
    console.run(write).await.unwrap();
    for (path, word) in [(&file, b"vdb end\n"), (&backing.0, b"sda end\n")] {
        let content = std::fs::read(path).unwrap();
        assert_eq!(content.len(), 24 << 20);
        assert!(content[23 << 20..].starts_with(word), "{}", path.display());
    }

    // A claim that is said to have shrunk takes nothing from its guest.
    pod.sync(&claims("8Mi")).await.unwrap();
    assert_eq!(console.run(sizes).await.unwrap(), "49152 49152");
}
