//! CPUs, memory, interfaces and what belongs to them.

use std::time::Duration;

use kubevirt_qemu::machine::UnplugError;
use serde_json::json;

use crate::common::{NATIVE_HOTPLUG, start};

const MEBIBYTE: u64 = 1 << 20;

#[tokio::test]
async fn cpus_are_plugged() {
    let (process, machine) = start(&["-machine", "q35", "-smp", "1,sockets=4,maxcpus=4"]).await;
    let slots = machine.cpu_slots().await.unwrap();
    assert_eq!(slots.len(), 4);
    assert!(slots[0].taken.is_some());
    let free = slots.iter().find(|slot| slot.taken.is_none()).unwrap();
    assert_eq!(free.props["socket-id"], 1);
    machine.plug_cpu("cpu1", free).await.unwrap();
    let cpus = machine.cpus().await.unwrap();
    assert_eq!(cpus.iter().map(|cpu| cpu.index).collect::<Vec<_>>(), [0, 1]);
    for cpu in &cpus {
        let thread = format!("/proc/{}/task/{}", process.pid(), cpu.thread_id);
        assert!(std::path::Path::new(&thread).exists(), "{thread}");
    }
    assert_eq!(machine.cpu_slots().await.unwrap()[1].id(), Some("cpu1"));
    assert!(machine.plug_cpu("again", free).await.is_err());
}

#[tokio::test]
async fn memory_is_plugged() {
    let (_process, machine) = start(&["-machine", "q35", "-m", "64,slots=2,maxmem=1G"]).await;
    let backend = json!({ "qom-type": "memory-backend-ram", "size": 128 * MEBIBYTE });
    machine.plug_dimm("dimm0", backend.clone()).await.unwrap();
    let size = machine.memory_size().await.unwrap();
    assert_eq!((size.base, size.plugged), (64 * MEBIBYTE, 128 * MEBIBYTE));
    let devices = machine.memory_devices().await.unwrap();
    assert_eq!((devices[0].kind.as_str(), devices[0].id.as_deref()), ("dimm", Some("dimm0")));
    // What does not fit leaves nothing behind.
    let huge = json!({ "qom-type": "memory-backend-ram", "size": 4096 * MEBIBYTE });
    assert!(machine.plug_dimm("dimm1", huge).await.is_err());
    machine.plug_dimm("dimm1", backend).await.unwrap();
}

#[tokio::test]
async fn virtio_mem_is_asked_for_more() {
    let (_process, machine) = start(&[
        "-machine",
        "q35",
        "-m",
        "64,maxmem=1G",
        "-object",
        "memory-backend-ram,id=more,size=256M",
        "-device",
        "virtio-mem-pci,id=vmem,memdev=more,requested-size=0",
    ])
    .await;
    machine.request_memory("vmem", 128 * MEBIBYTE).await.unwrap();
    let device = &machine.memory_devices().await.unwrap()[0];
    assert_eq!((device.kind.as_str(), device.size), ("virtio-mem", 0));
    assert_eq!(device.requested_size, Some(128 * MEBIBYTE));
    assert_eq!(device.max_size, Some(256 * MEBIBYTE));
    assert!(machine.request_memory("vmem", 512 * MEBIBYTE).await.is_err());
    assert!(machine.request_memory("other", 1).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn the_balloon_answers_without_a_guest() {
    let (_process, machine) = start(&["-device", "virtio-balloon-pci,id=balloon"]).await;
    assert_eq!(machine.balloon().await.unwrap(), 64 * MEBIBYTE);
    machine.set_balloon(48 * MEBIBYTE).await.unwrap();
    machine.set_memory_stats_period("balloon", 5).await.unwrap();
    let stats = machine.guest_memory_stats("balloon").await.unwrap();
    assert_eq!((stats.free, stats.last_update), (None, 0));
}

#[tokio::test]
async fn interfaces_come_with_an_open_file_and_go() {
    let [global, native] = NATIVE_HOTPLUG;
    let port = "pcie-root-port,id=port1,chassis=1";
    let (_process, machine) = start(&["-machine", "q35", global, native, "-device", port]).await;
    // A datagram socket stands in for a tap, which needs privileges.
    let (ours, theirs) = std::os::unix::net::UnixDatagram::pair().unwrap();
    let (_ours2, theirs2) = std::os::unix::net::UnixDatagram::pair().unwrap();
    let (one, two) = (machine.clone(), machine.clone());
    let one = tokio::spawn(async move { one.pass_fd("tap0", theirs.into()).await });
    let two = tokio::spawn(async move { two.pass_fd("tap1", theirs2.into()).await });
    one.await.unwrap().unwrap();
    two.await.unwrap().unwrap();
    machine.close_fd("tap1").await.unwrap();
    machine
        .add_netdev(json!({ "type": "dgram", "id": "net0", "local": { "type": "fd", "str": "tap0" } }))
        .await
        .unwrap();
    let nic = json!({
        "driver": "virtio-net-pci", "id": "nic0", "netdev": "net0", "mac": "02:00:00:00:00:01", "bus": "port1",
    });
    machine.plug(&nic).await.unwrap();
    machine.unplug("nic0", Duration::from_secs(30)).await.unwrap();
    machine.plug(&nic).await.unwrap();
    machine.set_link("nic0", false).await.unwrap();
    machine.set_link("nic0", true).await.unwrap();

    // The file is in use: what the interface announces arrives at our end.
    machine.resume().await.unwrap();
    machine.announce().await.unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let frame = tokio::task::spawn_blocking(move || {
        let mut frame = [0; 2048];
        ours.recv(&mut frame).map(|length| frame[..length].to_vec())
    });
    let frame = frame.await.unwrap().unwrap();
    assert_eq!(frame[6..12], [2, 0, 0, 0, 0, 1]);

    machine.remove_netdev("net0").await.unwrap();
    assert!(machine.remove_netdev("net0").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_guest_that_says_nothing_keeps_its_device() {
    let port = "pcie-root-port,id=port1,chassis=1";
    let (_process, machine) = start(&["-machine", "q35", "-device", port]).await;
    machine.plug(json!({ "driver": "virtio-rng-pci", "id": "rng", "bus": "port1" })).await.unwrap();
    for _ in 0..2 {
        let pending = machine.unplug("rng", Duration::from_millis(200)).await;
        assert!(matches!(pending, Err(UnplugError::Pending { .. })), "{pending:?}");
    }
    assert!(machine.has_device("rng").await.unwrap());
}

#[tokio::test]
async fn types_and_their_properties_are_known() {
    let (_process, machine) = start(&["-device", "i6300esb,id=dog"]).await;
    assert!(machine.has_device("dog").await.unwrap());
    let types = machine.types().await.unwrap();
    assert!(types.iter().any(|one| one == "virtio-blk-pci"));
    let properties = machine.properties_of_type("virtio-blk-pci").await.unwrap();
    assert!(properties.iter().any(|one| one == "iothread"));
}
