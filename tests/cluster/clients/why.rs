//! What `top` and `why` say of machines.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use test_kit::{KUBEVIRT, Test};

use super::client::Client;
use super::screen::try_for;
use crate::machines::gates;
use crate::machines::guest::apply_in_spite;
use crate::machines::manifest::{idle, instance, machine, on_node};

/// Schedulers, kubelets and registries take their time.
const PATIENCE: Duration = Duration::from_secs(240);

/// Asks until all words are in the answer.
async fn says(test: &Test, name: &str, words: &[&str]) -> Result<()> {
    try_for(PATIENCE, || {
        let said = Client::Ours.run(test, &["why", name])?;
        for word in words {
            ensure!(said.contains(word), "why {name} does not say {word:?}: {said}");
        }
        Ok(())
    })
    .await
}

/// Of a machine that runs there is nothing to explain.
pub async fn a_running_machine_is_fine(test: &Test, name: &str) -> Result<()> {
    says(test, name, &[&format!("{name} is running."), "It is on the node node0", "Its address is "]).await
}

/// What a machine uses is in a line of its own.
pub fn its_use_is_shown(test: &Test, name: &str) -> Result<()> {
    let all = Client::Ours.run(test, &["top", "-A", "--once"])?;
    ensure!(all.starts_with("NAMESPACE"), "{all}");
    let mut lines = all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|words| words.first() == Some(&test.namespace())).context("no line of the test")?;
    let [_, found, status, node, cpu, memory, used @ ..] = &line[..] else { anyhow::bail!("{all}") };
    ensure!((*found, *status) == (name, "Running") && node.starts_with("node0"), "{all}");
    ensure!(cpu.ends_with("/1") && !cpu.starts_with('-'), "CPU is {cpu}: {all}");
    ensure!(memory.ends_with("Mi/192Mi"), "memory is {memory}: {all}");
    ensure!(used.len() == 4 && used.iter().all(|rate| rate.ends_with("/s")), "rates are {used:?}: {all}");
    let own = Client::Ours.run(test, &["top", "--once", "--sort-by=memory"])?;
    ensure!(own.starts_with("NAME ") && own.lines().count() == 2, "{own}");
    Ok(())
}

#[tokio::test]
async fn why_a_machine_does_not_run_is_told() -> Result<()> {
    KUBEVIRT
        .run("why", async |test| {
            let none = Client::Ours.run(test, &["top", "--once"])?;
            ensure!(none.contains("No virtual machines are running"), "{none}");
            let absent = Client::Ours.fail(test, &["why", "absent"])?;
            ensure!(absent.contains("does not exist"), "{absent}");

            test.apply(&machine("off", "Halted", idle())).await?;
            test.apply(&machine("nowhere", "Always", on_node(idle(), "nowhere"))).await?;
            let mut large = idle();
            large["domain"]["memory"]["guest"] = json!("4Ti");
            test.apply(&machine("large", "Always", large)).await?;
            let mut imageless = idle();
            imageless["domain"]["devices"]["disks"] = json!([{"name": "root", "disk": {"bus": "virtio"}}]);
            let image = "registry.example/missing:1";
            imageless["volumes"] = json!([{"name": "root", "containerDisk": {"image": image}}]);
            test.apply(&machine("imageless", "Always", imageless)).await?;

            says(test, "off", &["off is switched off.", "start off"]).await?;
            says(test, "nowhere", &["cannot be placed", "hostname=nowhere"]).await?;
            says(test, "large", &["cannot be placed", "enough free memory"]).await?;
            says(test, "imageless", &["cannot be pulled", image]).await?;
            a_socket_that_no_node_has(test).await.context("vsock")
        })
        .await
}

/// Sockets between guests and nodes take a kernel that has them.
async fn a_socket_that_no_node_has(test: &Test) -> Result<()> {
    if Path::new("/dev/vhost-vsock").exists() {
        return Ok(());
    }
    {
        let _usual = gates::USUAL.read().await;
        gates::open(test)?;
    }
    let mut spec = idle();
    spec["domain"]["devices"]["autoattachVSOCK"] = json!(true);
    apply_in_spite(test, &instance("socket", spec)).await?;
    says(test, "socket", &["cannot be placed", "no node has devices.kubevirt.io/vhost-vsock to give"]).await
}
