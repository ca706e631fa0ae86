//! Disks: plugging, growing, changing, counting.

use std::time::Duration;

use kubevirt_qemu::machine::{Throttle, UnplugError};
use kubevirt_qemu::qmp::Event;
use kubevirt_qemu::{Machine, Process};
use serde_json::json;

use crate::common::{Folder, NATIVE_HOTPLUG, start, wait_for};

const MEBIBYTE: usize = 1 << 20;

/// A q35 with two empty ports for hotplug and an I/O thread, paused before its first instruction.
async fn machine() -> (Process, Machine) {
    let [global, native] = NATIVE_HOTPLUG;
    start(&[
        "-machine",
        "q35",
        global,
        native,
        "-object",
        "iothread,id=io1",
        "-device",
        "pcie-root-port,id=port1,chassis=1",
        "-device",
        "pcie-root-port,id=port2,chassis=2",
        "-device",
        "ide-cd,id=cd",
    ])
    .await
}

pub(crate) async fn add_raw(machine: &Machine, node: &str, file: &str) {
    let options = json!({
        "driver": "raw", "node-name": node, "file": { "driver": "file", "filename": file },
    });
    machine.add_block(options).await.unwrap();
}

#[tokio::test]
async fn disks_come_and_go() {
    let folder = Folder::new();
    let (_process, machine) = machine().await;
    let mut events = machine.events();
    add_raw(&machine, "disk1", &folder.disk("disk1.raw", MEBIBYTE, 1)).await;
    let device = json!({
        "driver": "virtio-blk-pci", "id": "vda", "drive": "disk1", "bus": "port1", "iothread": "io1",
    });
    machine.plug(&device).await.unwrap();
    assert!(machine.has_device("vda").await.unwrap());
    assert!(machine.plug(&device).await.is_err(), "the id is taken");
    assert!(machine.remove_block("disk1").await.is_err(), "it is in use");

    let drives = machine.drives().await.unwrap();
    let drive = drives.iter().find(|drive| drive.id() == Some("vda")).unwrap();
    assert_eq!(drive.node(), Some("disk1"));
    let stats = machine.block_stats().await.unwrap();
    assert!(stats.iter().any(|one| one.node.as_deref() == Some("disk1") && one.reads == 0));
    machine.throttle("vda", &Throttle { iops: 100, ..Throttle::default() }).await.unwrap();

    machine.unplug("vda", Duration::from_secs(30)).await.unwrap();
    wait_for(&mut events, |event| match event {
        Event::DeviceDeleted { device: Some(id), .. } if id == "vda" => Some(()),
        _ => None,
    })
    .await;
    assert!(!machine.has_device("vda").await.unwrap());
    let again = machine.unplug("vda", Duration::from_secs(1)).await;
    assert!(matches!(again, Err(UnplugError::NoSuchDevice { .. })), "{again:?}");
    machine.remove_block("disk1").await.unwrap();
    assert!(machine.remove_block("disk1").await.unwrap_err().is_not_found());
    assert_eq!(machine.io_threads().await.unwrap()[0].id, "io1");
}

#[tokio::test]
async fn a_missing_file_is_told() {
    let (_process, machine) = machine().await;
    let options = json!({ "driver": "file", "node-name": "x", "filename": "/nonexistent/disk" });
    let error = machine.add_block(options).await.unwrap_err();
    assert!(error.to_string().contains("/nonexistent/disk"), "{error}");
}

#[tokio::test]
async fn disks_grow() {
    let folder = Folder::new();
    let (_process, machine) = machine().await;
    let file = folder.disk("disk.raw", MEBIBYTE, 1);
    add_raw(&machine, "disk", &file).await;
    machine
        .plug(json!({ "driver": "virtio-blk-pci", "id": "vda", "drive": "disk", "bus": "port1" }))
        .await
        .unwrap();
    machine.resize_block("disk", 3 * MEBIBYTE as u64).await.unwrap();
    let nodes = machine.blocks().await.unwrap();
    let node = nodes.iter().find(|node| node.name == "disk").unwrap();
    assert_eq!(node.size(), 3 * MEBIBYTE as u64);
    assert_eq!((node.driver.as_str(), node.read_only), ("raw", false));
    assert_eq!(std::fs::metadata(file).unwrap().len(), 3 * MEBIBYTE as u64);
    assert!(machine.resize_block("other", 1).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn media_are_changed() {
    let folder = Folder::new();
    let (_process, machine) = machine().await;
    let one = folder.disk("one.iso", MEBIBYTE, 1);
    machine.change_medium("cd", &one, "raw").await.unwrap();
    let file = async |machine: &Machine| {
        let drives = machine.drives().await.unwrap();
        let drive = drives.iter().find(|drive| drive.id() == Some("cd")).unwrap();
        drive.file().map(str::to_owned)
    };
    assert_eq!(file(&machine).await, Some(one));
    let two = folder.disk("two.iso", MEBIBYTE, 2);
    add_raw(&machine, "two", &two).await;
    machine.insert("cd", "two").await.unwrap();
    assert_eq!(file(&machine).await, Some(two));
    machine.eject("cd", true).await.unwrap();
    assert_eq!(file(&machine).await, None);
}
