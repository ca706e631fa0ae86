//! Metrics of the host, through a disk and through a port.

use std::fs::File;
use std::time::Duration;

use kubevirt_component::NamespacedName;
use kubevirt_disk_image::read_metrics;
use kubevirt_domain::Layout;
use kubevirt_virt_handler::domains::Owner;
use kubevirt_virt_handler::downward_metrics::{Tellers, Wish};
use kubevirt_virt_handler::prepare::Folders;
use serde_json::{Value, json};
use test_guest::Console;

use super::adoption::{Handler, pod};
use super::handler::PATIENCE;
use super::pod::{POD, Pod, UID, vmi};

/// What a guest says to get all metrics, for a shell.
const METRICS: &str = "GET /metrics/XML\\n\\n";

fn machine() -> Value {
    vmi(json!({"spec": {
        "domain": {
            "cpu": {"cores": 2},
            "firmware": {"kernelBoot": {"kernelArgs": test_guest::COMMAND_LINE, "container": {
                "image": "guest", "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"}}},
            "devices": {
                "downwardMetrics": {},
                "disks": [{"name": "metrics", "disk": {"bus": "virtio"}}],
            },
        },
        "volumes": [{"name": "metrics", "downwardMetrics": {}}],
    }}))
}

/// What a handler has to tell guests.
fn tellers(pod: &Pod, handler: &Handler) -> Tellers {
    let private = pod.private().to_str().unwrap().to_owned();
    // The first process of the machine may be hidden from us.
    let folders = Folders { host_root: "/".into(), ..Folders::new(pod.pods(), pod.records()) };
    let layout = Layout { private, ..Layout::default() };
    Tellers::new("node<1>", handler.launchers.clone(), folders, layout)
}

fn owner() -> Owner {
    Owner { key: NamespacedName::new("default", "web"), uid: UID.into(), pod: POD.into() }
}

/// The value of a metric in a document.
fn value<'a>(document: &'a str, about: &str, name: &str) -> Option<&'a str> {
    let metrics = document.split("</metric>");
    let (head, name) = (format!("context=\"{about}\""), format!("<name>{name}</name>"));
    let metric = metrics.into_iter().find(|metric| metric.contains(&head) && metric.contains(&name))?;
    Some(metric.split_once("<value>")?.1.split_once("</value>")?.0)
}

/// When the host said what a document says.
fn time(document: &str) -> Option<u64> {
    value(document, "host", "Time")?.parse().ok()
}

fn check(document: &str) {
    let of = |about, name| value(document, about, name).unwrap_or_else(|| panic!("{name}: {document}"));
    assert_eq!(of("host", "HostName"), "node&lt;1&gt;");
    assert!(of("host", "VirtProductInfo").starts_with("QEMU "), "{document}");
    assert!(of("host", "FreePhysicalMemory").parse::<u64>().unwrap() > 0, "{document}");
    assert_eq!(of("vm", "ResourceProcessorLimit"), "2");
    assert_eq!(of("vm", "ResourceMemoryLimit"), "196608");
    assert!(of("vm", "TotalCPUTime").parse::<f64>().unwrap() > 0.0, "{document}");
}

/// The document on the disk, as the guest reads it, once it is later than this.
async fn on_disk(console: &mut Console, after: u64) -> String {
    // The guest's own copy is of the past.
    let read =
        "echo 3 >/proc/sys/vm/drop_caches; dd if=/dev/vda bs=16 skip=1 count=512 2>/dev/null | tr -d '\\0'";
    let began = std::time::Instant::now();
    loop {
        let said = console.run(read).await.unwrap();
        let document = said.split_inclusive("</metrics>").next().unwrap_or_default();
        if time(document).is_some_and(|time| time > after) {
            return document.to_owned();
        }
        assert!(began.elapsed() < PATIENCE, "no metrics after {after}: {said}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Asks on the guest's port, and prints the answer up to its end.
fn ask(request: &str) -> String {
    let print = "while read -r line <&3 && [ -n \"$line\" ]; do echo \"$line\"; done";
    format!("(printf '{request}' >&3; {print}) 3<>/dev/virtio-ports/org.github.vhostmd.1")
}

#[tokio::test]
async fn a_guest_reads_metrics_of_its_host() {
    let pod = pod().await;
    pod.kernel_boot();
    let handler = Handler::start(&pod, PATIENCE);
    handler.look_after();
    handler.connected().await;
    let mut console = pod.boot(&machine()).await;
    assert_eq!(console.run("cat /sys/block/vda/ro").await.unwrap(), "1");
    assert_eq!(console.run("head -c 4 /dev/vda").await.unwrap(), "mvbd");

    let wish = Wish { disk: true, channel: true };
    let tellers_of_first = tellers(&pod, &handler);
    tellers_of_first.tell(&owner(), wish);
    tellers_of_first.tell(&owner(), wish);
    let first = on_disk(&mut console, 0).await;
    check(&first);
    let second = on_disk(&mut console, time(&first).unwrap()).await;
    check(&second);
    for _ in 0..2 {
        check(&console.run(&ask(METRICS)).await.unwrap());
        assert_eq!(console.run(&ask("GET /secrets\\n\\n")).await.unwrap(), "INVALID REQUEST");
    }

    // While there is no handler the guest waits, and the next one goes on.
    drop((tellers_of_first, handler));
    console.run(&format!("({}) >/tmp/late 2>&1 &", ask(METRICS))).await.unwrap();
    let handler = Handler::start(&pod, PATIENCE);
    handler.connected().await;
    let tellers = tellers(&pod, &handler);
    tellers.tell(&owner(), wish);
    let third = on_disk(&mut console, time(&second).unwrap()).await;
    check(&third);
    console.until("grep -c '</metrics>' /tmp/late", "1").await.unwrap();

    // Once nobody writes any more, what is there is whole.
    tellers.leave(UID);
    let disk = File::open(pod.private().join("downwardapi-disks/vhostmd0")).unwrap();
    let began = std::time::Instant::now();
    let last = loop {
        if let Ok(Some(document)) = read_metrics(&disk) {
            break document;
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", read_metrics(&disk));
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    check(&last);
}
