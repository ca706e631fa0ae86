//! Every disk bus and every source of a volume, seen from inside the guest.

use serde_json::json;

use super::pod::{Pod, Settings, vmi};

/// The service account of a pod lies at a fixed place, so the pod gets a `/run` of its own.
const SERVICE_ACCOUNT: &str = "mount -t tmpfs none /run
    mkdir -p /run/secrets/kubernetes.io/serviceaccount
    echo -n token >/run/secrets/kubernetes.io/serviceaccount/token";

#[tokio::test]
async fn every_bus_and_every_source_is_seen_in_the_guest() {
    let settings = Settings { all_drivers: true, set_up: SERVICE_ACCOUNT.into(), ..Settings::default() };
    let pod = Pod::with(settings).await;
    pod.container_disk(0);
    let private = pod.private();
    pod.write(&private.join("vmi-disks/claim/disk.img"), &vec![0; 4 << 20]);
    pod.write(&private.join("vmi-disks/data/disk.img"), &vec![0; 5 << 20]);
    let mut below = vec![0; 2 << 20];
    below[..5].copy_from_slice(b"below");
    pod.write(&private.join("vmi-disks/scratch/disk.img"), &below);
    pod.write(&private.join("vmi-disks/host/there.img"), &vec![0; 6 << 20]);
    pod.write(&private.join("config-map/settings/app.conf"), b"colour=blue");
    pod.write(&private.join("secret/password/key"), b"hush");
    pod.write(&private.join("downwardapi/labels/labels"), b"app=\"web\"");
    pod.write(&private.join("sysprep/answers/autounattend.xml"), b"<xml/>");
    let sources = json!([
        {"name": "root", "containerDisk": {"image": "guest"}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "data", "dataVolume": {"name": "data"}},
        {"name": "scratch", "ephemeral": {"persistentVolumeClaim": {"claimName": "scratch"}}},
        {"name": "empty", "emptyDisk": {"capacity": "3Mi"}},
        {"name": "host", "hostDisk": {"path": "/data/there.img", "type": "Disk"}},
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "password", "secret": {"secretName": "password"}},
        {"name": "labels", "downwardAPI": {"fields": []}},
        {"name": "account", "serviceAccount": {"serviceAccountName": "default"}},
        {"name": "answers", "sysprep": {"configMap": {"name": "answers"}}},
        {"name": "seed", "cloudInitNoCloud": {"userData": "#cloud-config\nhostname: seeded\nruncmd:\n- echo ran >/tmp/ran\n"}},
    ]);
    let disks = json!([
        {"name": "root", "disk": {"bus": "virtio"}, "bootOrder": 1},
        {"name": "claim", "disk": {"bus": "sata"}, "serial": "claim"},
        {"name": "data", "disk": {"bus": "scsi"}, "serial": "data"},
        {"name": "scratch", "disk": {"bus": "virtio"}, "serial": "scratch"},
        {"name": "empty", "disk": {"bus": "scsi"}, "serial": "empty"},
        {"name": "host", "disk": {"bus": "usb"}, "serial": "host"},
        {"name": "settings", "disk": {"bus": "virtio"}, "serial": "settings"},
        {"name": "password", "cdrom": {"bus": "sata"}, "serial": "password"},
        {"name": "labels", "disk": {"bus": "virtio"}, "serial": "labels"},
        {"name": "account", "cdrom": {"bus": "scsi"}, "serial": "account"},
        {"name": "answers", "cdrom": {"bus": "sata"}, "serial": "answers"},
        {"name": "seed", "disk": {"bus": "virtio"}},
    ]);
    let wish = json!({"spec": {
        "domain": {"memory": {"guest": "384Mi"}, "devices": {"disks": disks}}, "volumes": sources,
    }});
    let mut console = pod.boot(&vmi(wish)).await;
    // What the kernel says of disks that it cannot mount is not for the console.
    console.run("dmesg -n 1").await.unwrap();
    console.until("hostname", "seeded").await.unwrap();
    console.until("cat /tmp/ran", "ran").await.unwrap();

    // Each has a size of its own, and the path of its device tells its bus.
    let of_size = |sectors: u32| {
        format!("for b in /sys/block/*; do [ $(cat $b/size) = {sectors} ] && echo ${{b##*/}}; done; true")
    };
    let mut names = Vec::new();
    for (sectors, bus) in
        [(8192, "/ata"), (4096, "/virtio"), (6144, "/host"), (12288, "/usb"), (10240, "/host")]
    {
        let name = console.run(&of_size(sectors)).await.unwrap();
        let path = console.run(&format!("readlink -f /sys/block/{name}")).await.unwrap();
        assert!(!name.is_empty() && path.contains(bus), "{sectors} sectors: {name:?} at {path}");
        names.push(name);
    }
    let (claim, scratch) = (&names[0], &names[1]);
    assert_eq!(
        console.run("cat /sys/block/vd?/serial | tr '\\0' '\\n' | grep -c scratch").await.unwrap(),
        "1"
    );
    assert_eq!(console.run(&format!("head -c 5 /dev/{scratch}")).await.unwrap(), "below");
    console.run(&format!("echo above | dd of=/dev/{scratch} conv=notrunc,fsync")).await.unwrap();
    let below = std::fs::read(private.join("vmi-disks/scratch/disk.img")).unwrap();
    assert!(below.starts_with(b"below"), "what is ephemeral stays out of its claim");
    console.run(&format!("echo stays | dd of=/dev/{claim} conv=notrunc,fsync")).await.unwrap();
    let content = std::fs::read(private.join("vmi-disks/claim/disk.img")).unwrap();
    assert!(content.starts_with(b"stays\n"));

    let read = |label: &str, file: &str| {
        format!(
            "mkdir -p /tmp/m; for d in /dev/vd? /dev/sr?; do mount -o ro $d /tmp/m 2>/dev/null || continue; \
             cat /tmp/m/{file} 2>/dev/null; umount /tmp/m; done; : {label}"
        )
    };
    for (name, file, content) in [
        ("settings", "app.conf", "colour=blue"),
        ("password", "key", "hush"),
        ("labels", "labels", "app=\"web\""),
        ("account", "token", "token"),
        ("answers", "autounattend.xml", "<xml/>"),
    ] {
        assert_eq!(console.run(&read(name, file)).await.unwrap(), content, "{name}");
    }
}

#[tokio::test]
async fn a_kernel_boots_directly_and_a_config_drive_is_read() {
    let pod = Pod::start().await;
    pod.kernel_boot();
    let wish = json!({"spec": {
        "domain": {
            "firmware": {"kernelBoot": {"kernelArgs": test_guest::COMMAND_LINE, "container": {
                "image": "guest", "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"}}},
            "devices": {"disks": [{"name": "seed", "disk": {"bus": "virtio"}}]},
        },
        "volumes": [{"name": "seed", "cloudInitConfigDrive": {"userData": "#cloud-config\nhostname: driven\n"}}],
    }});
    let mut console = pod.boot(&vmi(wish)).await;
    console.until("hostname", "driven").await.unwrap();
}

#[tokio::test]
async fn uefi_boots_and_keeps_its_variables() {
    let pod = Pod::start().await;
    pod.container_disk(0);
    let wish = json!({"spec": {"domain": {"memory": {"guest": "256Mi"},
        "firmware": {"bootloader": {"efi": {"secureBoot": false}}}}}});
    let mut console = pod.boot(&vmi(wish)).await;
    assert_eq!(console.run("test -d /sys/firmware/efi && echo uefi").await.unwrap(), "uefi");
}
