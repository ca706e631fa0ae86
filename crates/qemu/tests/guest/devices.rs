//! Devices that come and go under a running system, which has a say in it.

use kubevirt_qemu::qmp::Event;
use serde_json::json;

use crate::guest::{Guest, PATIENCE};

const MEBIBYTE: u64 = 1 << 20;

#[tokio::test]
async fn a_running_guest_takes_and_gives_back() {
    let mut guest = Guest::boot(&[
        "-m",
        "256,maxmem=1G",
        "-smp",
        "1,sockets=2,maxcpus=2",
        "-device",
        "pcie-root-port,id=port1,chassis=1",
        "-device",
        "virtio-balloon-pci,id=balloon",
        "-object",
        "memory-backend-ram,id=more,size=256M",
        "-device",
        "virtio-mem-pci,id=vmem,memdev=more,requested-size=0",
    ])
    .await;
    let machine = guest.machine.clone();

    let file = guest.folder.join("extra.raw");
    std::fs::write(&file, vec![0; 1 << 20]).unwrap();
    machine.add_block(json!({ "driver": "file", "node-name": "extra", "filename": file })).await.unwrap();
    let disk = json!({ "driver": "virtio-blk-pci", "id": "vdb", "drive": "extra", "bus": "port1" });
    machine.plug(disk).await.unwrap();
    let size = "cat /sys/block/vdb/size 2>/dev/null || echo none";
    guest.until(size, "2048").await;
    machine.resize_block("extra", 2 * MEBIBYTE).await.unwrap();
    guest.until(size, "4096").await;
    guest.shell("dd if=/dev/vdb of=/dev/null bs=64k count=8").await;
    let stats = machine.block_stats().await.unwrap();
    let extra = stats.iter().find(|one| one.node.as_deref() == Some("extra")).unwrap();
    assert!(extra.read_bytes >= 512 << 10 && extra.reads > 0, "{extra:?}");
    machine.unplug("vdb", PATIENCE).await.unwrap();
    machine.remove_block("extra").await.unwrap();
    guest.until(size, "none").await;

    let slots = machine.cpu_slots().await.unwrap();
    machine.plug_cpu("cpu1", &slots[1]).await.unwrap();
    let present = "cat /sys/devices/system/cpu/present";
    guest.until(present, "0-1").await;
    machine.unplug("cpu1", PATIENCE).await.unwrap();
    guest.until(present, "0").await;

    machine.request_memory("vmem", 128 * MEBIBYTE).await.unwrap();
    let taken = guest.wait_for(|event| match event {
        Event::MemoryDeviceSizeChange { id: Some(id), size, .. } if id == "vmem" => Some(*size),
        _ => None,
    });
    assert!(taken.await > 0);

    machine.set_memory_stats_period("balloon", 1).await.unwrap();
    machine.set_balloon(192 * MEBIBYTE).await.unwrap();
    guest.wait_for(|event| matches!(event, Event::BalloonChange { .. }).then_some(())).await;
    let mut stats = machine.guest_memory_stats("balloon").await.unwrap();
    for _ in 0..100 {
        if stats.last_update > 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        stats = machine.guest_memory_stats("balloon").await.unwrap();
    }
    assert!(stats.total.is_some_and(|total| total > 64 * MEBIBYTE) && stats.free.is_some(), "{stats:?}");

    machine.pause().await.unwrap();
    let silent = guest.agent.patient(std::time::Duration::from_millis(200)).ping().await;
    assert!(silent.is_err(), "a paused guest does not answer");
    machine.resume().await.unwrap();
    guest.agent.ping().await.unwrap();
    assert!(guest.process.quit(&machine, PATIENCE).await.is_success());
}
