//! What a guest is told of its host and of itself.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::api::DeleteParams;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::json;
use test_kit::KUBEVIRT;

use super::gates;
use super::guest::{Guest, PATIENCE, apply_in_spite, instances, may_boot, wait_for_phase};
use super::manifest::{guest, instance};

/// The value of a metric in a document.
fn value<'a>(document: &'a str, about: &str, name: &str) -> Option<&'a str> {
    let (head, name) = (format!("context=\"{about}\""), format!("<name>{name}</name>"));
    let mut metrics = document.split("</metric>");
    let metric = metrics.find(|metric| metric.contains(&head) && metric.contains(&name))?;
    Some(metric.split_once("<value>")?.1.split_once("</value>")?.0)
}

/// When the host said it.
fn time(document: &str) -> Option<u64> {
    value(document, "host", "Time")?.parse().ok()
}

/// The document on the guest's disk, if it is whole just then.
fn on_disk(guest: &Guest<'_>) -> Result<Option<String>> {
    // The guest's own copy is of the past.
    guest.run(
        "echo 3 >/proc/sys/vm/drop_caches
         dd if=/dev/disk/by-id/virtio-metrics of=/tmp/metrics bs=4096 count=4 2>/dev/null",
    )?;
    let header = guest.run("dd if=/tmp/metrics bs=16 count=1 2>/dev/null | od -An -v -tx1")?;
    let bytes = header.split_whitespace().map(|byte| u8::from_str_radix(byte, 16));
    let bytes = bytes.collect::<Result<Vec<u8>, _>>()?;
    ensure!(bytes.len() == 16 && bytes.starts_with(b"mvbd"), "no header: {header}");
    let number =
        |place: usize| bytes[place..place + 4].iter().fold(0, |sum, byte| (sum << 8) | u32::from(*byte));
    let (locked, sum, length) = (number(4), number(8), number(12));
    let document = guest.run(&format!("tail -c +17 /tmp/metrics | head -c {length}"))?;
    let whole = locked == 0 && document.bytes().map(u32::from).sum::<u32>() == sum;
    Ok(whole.then_some(document))
}

/// The first document on the guest's disk that is later than this.
async fn after(guest: &Guest<'_>, moment: u64) -> Result<String> {
    let began = Instant::now();
    loop {
        let document = on_disk(guest)?;
        if let Some(document) = document.filter(|document| time(document).is_some_and(|time| time > moment)) {
            return Ok(document);
        }
        ensure!(began.elapsed() < PATIENCE, "no metrics after {moment}: {:?}", on_disk(guest)?);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What the guest hears when it asks on its channel.
fn ask(guest: &Guest<'_>, request: &str) -> Result<String> {
    let print = "while read -r line <&3 && [ -n \"$line\" ]; do echo \"$line\"; done";
    guest.run(&format!("(printf '{request}\\n\\n' >&3; {print}) 3<>/dev/virtio-ports/org.github.vhostmd.1"))
}

/// It is this machine on this node.
fn check(document: &str, node: &str) -> Result<()> {
    for (about, name, expected) in [
        ("host", "HostName", node),
        ("host", "VirtualizationVendor", "kubevirt.io"),
        ("vm", "ResourceProcessorLimit", "2"),
        ("vm", "ResourceMemoryLimit", "196608"),
    ] {
        ensure!(value(document, about, name) == Some(expected), "{name} is not {expected}: {document}");
    }
    let product = value(document, "host", "VirtProductInfo").unwrap_or_default();
    ensure!(product.starts_with("QEMU "), "{document}");
    let worked: f64 = value(document, "vm", "TotalCPUTime").context("no time")?.parse()?;
    ensure!(worked > 0.0, "{document}");
    Ok(())
}

#[tokio::test]
async fn a_guest_is_told_of_its_host_and_of_itself() -> Result<()> {
    KUBEVIRT
        .run("downward-metrics", async |test| {
            let _usual = gates::USUAL.read().await;
            gates::open(test)?;
            let mut spec = guest("told")?;
            spec["domain"]["cpu"] = json!({"cores": 2});
            let devices = &mut spec["domain"]["devices"];
            devices["downwardMetrics"] = json!({});
            let disk = json!({"name": "metrics", "serial": "metrics", "disk": {"bus": "virtio"}});
            devices["disks"].as_array_mut().context("no disks")?.push(disk);
            let volume = json!({"name": "metrics", "downwardMetrics": {}});
            spec["volumes"].as_array_mut().context("no volumes")?.push(volume);

            let _leave = may_boot().await?;
            apply_in_spite(test, &instance("told", spec)).await?;
            let shell = Guest::wait(test, "told").await?;
            let vmi = wait_for_phase(test, "told", VmiPhase::Running).await?;
            let node = vmi.status.and_then(|status| status.node_name).context("on no node")?;
            let first = after(&shell, 0).await?;
            check(&first, &node)?;
            let second = after(&shell, time(&first).unwrap_or_default()).await?;
            check(&second, &node)?;
            let answer = ask(&shell, "GET /metrics/XML")?;
            check(&answer, &node)?;
            ensure!(time(&answer) >= time(&second), "{answer}");
            ensure!(ask(&shell, "GET /secrets")?.trim() == "INVALID REQUEST");
            instances(test).delete("told", &DeleteParams::default()).await?;
            test.wait_until_gone(&instances(test), "told").await
        })
        .await
}
