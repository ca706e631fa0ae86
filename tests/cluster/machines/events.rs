//! What is told of machines as events: how each is known to whoever waits for it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Event;
use kube::api::{DeleteParams, ListParams};
use kubevirt_api::vmi::status::VmiPhase;
use test_kit::{KUBEVIRT, Test};

use super::disks;
use super::ends::kill;
use super::guest::{PATIENCE, instances, launcher, machines, wait_for_phase, wait_for_successor};
use super::manifest::{idle, instance, machine};

/// The kind, the type, the reason and who says so, as KubeVirt has them.
const EVENTS: [[&str; 4]; 10] = [
    ["VirtualMachine", "Normal", "SuccessfulCreate", "virtualmachine-controller"],
    ["VirtualMachine", "Normal", "SuccessfulDelete", "virtualmachine-controller"],
    ["VirtualMachineInstance", "Normal", "Created", "virt-handler"],
    ["VirtualMachineInstance", "Normal", "Deleted", "virt-handler"],
    ["VirtualMachineInstance", "Normal", "Started", "virt-handler"],
    ["VirtualMachineInstance", "Normal", "Stopped", "virt-handler"],
    ["VirtualMachineInstance", "Normal", "SuccessfulCreate", "virtualmachine-controller"],
    ["VirtualMachineInstance", "Normal", "SuccessfulDelete", "virtualmachine-controller"],
    ["VirtualMachineInstance", "Warning", "Stopped", "virt-handler"],
    ["VirtualMachineInstance", "Warning", "SyncFailed", "virt-handler"],
];

/// One machine is killed and then deleted, an instance cannot be started: that makes all of them.
#[tokio::test]
async fn the_life_of_a_machine_is_told_in_events() -> Result<()> {
    KUBEVIRT
        .run("events", async |test| {
            test.apply(&instance("diskless", disks::without_disk(test)?)).await?;
            test.apply(&machine("vm", "Always", idle())).await?;
            let vmi = wait_for_phase(test, "vm", VmiPhase::Running).await?;
            kill(test, &launcher(test, &vmi).await?, "qemu-system", "KILL")?;
            wait_for_successor(test, "vm", &vmi.metadata.uid.unwrap_or_default()).await?;
            machines(test).delete("vm", &DeleteParams::default()).await?;
            test.wait_until_gone(&instances(test), "vm").await?;
            are_told(test).await
        })
        .await
}

async fn are_told(test: &Test) -> Result<()> {
    let begin = Instant::now();
    loop {
        let all = test.api::<Event>().list(&ListParams::default()).await?.items;
        let seen: BTreeSet<[String; 4]> = all.into_iter().map(columns).collect();
        let missing: Vec<_> =
            EVENTS.iter().filter(|event| !seen.contains(&event.map(str::to_owned))).collect();
        if missing.is_empty() {
            return Ok(());
        }
        ensure!(begin.elapsed() < PATIENCE, "no such events: {missing:#?}\nonly {seen:#?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn columns(event: Event) -> [String; 4] {
    let by = event.reporting_component.filter(|by| !by.is_empty());
    let by = by.or_else(|| event.source.and_then(|source| source.component));
    [event.involved_object.kind, event.type_, event.reason, by].map(Option::unwrap_or_default)
}
