//! A running guest: waiting for it, and talking to it by ssh over the pod network.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::PrintableStatus;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::Value;
use test_kit::Test;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::key::key;

/// A guest boots in seconds, unless the machine is busy with everything else.
pub const PATIENCE: Duration = Duration::from_secs(480);

/// Software emulation takes a whole core: no more than these boot at a time.
static BOOTS: Semaphore = Semaphore::const_new(2);

/// Leave to boot a guest, until it is dropped.
pub async fn may_boot() -> Result<SemaphorePermit<'static>> {
    Ok(BOOTS.acquire().await?)
}

/// Machines of the test.
pub fn machines(test: &Test) -> Api<VirtualMachine> {
    test.api()
}

/// Instances of the test.
pub fn instances(test: &Test) -> Api<VirtualMachineInstance> {
    test.api()
}

/// The phase of an instance.
pub fn phase(vmi: &VirtualMachineInstance) -> Option<VmiPhase> {
    vmi.status.as_ref()?.phase.clone()
}

/// Waits until the instance is in the phase.
pub async fn wait_for_phase(test: &Test, name: &str, wanted: VmiPhase) -> Result<VirtualMachineInstance> {
    let what = format!("is {wanted}");
    test.wait_within(PATIENCE, &instances(test), name, &what, |vmi| phase(vmi).as_ref() == Some(&wanted))
        .await
}

/// Waits until the machine shows the status.
pub async fn wait_for_status(test: &Test, name: &str, wanted: PrintableStatus) -> Result<VirtualMachine> {
    let what = format!("is {wanted}");
    test.wait_within(PATIENCE, &machines(test), name, &what, |vm| {
        vm.status.as_ref().and_then(|status| status.printable_status.as_ref()) == Some(&wanted)
    })
    .await
}

/// Waits until another instance of the name runs than the one of this UID.
pub async fn wait_for_successor(test: &Test, name: &str, uid: &str) -> Result<VirtualMachineInstance> {
    test.wait_within(PATIENCE, &instances(test), name, "runs anew", |vmi| {
        vmi.uid().as_deref() != Some(uid) && phase(vmi) == Some(VmiPhase::Running)
    })
    .await
}

/// Applies an object, again and again while webhooks are away or have not heard of a gate.
pub async fn apply_in_spite(test: &Test, manifest: &Value) -> Result<()> {
    for _ in 0..120 {
        if test.apply(manifest).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    test.apply(manifest).await.map(drop)
}

/// Deletes a machine, again and again while webhooks are away.
pub async fn delete_in_spite(test: &Test, name: &str) -> Result<()> {
    let delete = || test.kubectl(&["delete", "vm", name, "--wait=false", "--ignore-not-found"]);
    for _ in 0..120 {
        if delete().is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    delete().map(drop)
}

/// Waits until the events of an instance hold a text, and returns all of them.
pub async fn wait_for_event(test: &Test, name: &str, text: &str) -> Result<String> {
    let begin = Instant::now();
    loop {
        let events = test.kubectl(&["events", "--for", &format!("virtualmachineinstance/{name}")])?;
        if events.contains(text) {
            return Ok(events);
        }
        ensure!(begin.elapsed() < PATIENCE, "no event of {name} says {text:?}:\n{events}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The launcher pod that runs the instance now.
pub async fn launcher(test: &Test, vmi: &VirtualMachineInstance) -> Result<Pod> {
    let uid = vmi.uid().context("an instance without UID")?;
    let labels = format!("kubevirt.io/created-by={uid}");
    let pods = test.api::<Pod>().list(&ListParams::default().labels(&labels)).await?;
    pods.items.into_iter().next().with_context(|| format!("no pod for {}", vmi.name_any()))
}

/// Waits until the guest has said something on its console, which is in the pod's log line by line.
pub async fn wait_for_words(test: &Test, vmi: &VirtualMachineInstance, words: &str) -> Result<()> {
    let pod = launcher(test, vmi).await?.name_any();
    let begin = Instant::now();
    loop {
        let log = test.kubectl(&["logs", &pod, "--all-containers"]).unwrap_or_default();
        if log.contains(words) {
            return Ok(());
        }
        if begin.elapsed() > PATIENCE {
            let last: Vec<&str> = log.lines().rev().take(30).collect();
            bail!("{pod} does not say {words:?}; its log ends, last line first:\n{}", last.join("\n"));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// A guest that can be talked to.
pub struct Guest<'a> {
    test: &'a Test,
    address: String,
    /// The node that ssh starts from.
    from: String,
}

impl<'a> Guest<'a> {
    /// The guest behind an address, seen from a node.
    pub fn at(test: &'a Test, address: &str, from: &str) -> Self {
        Self { test, address: address.to_owned(), from: from.to_owned() }
    }

    /// Waits until the instance runs and its guest lets in by ssh, over the pod network from another node.
    pub async fn wait(test: &'a Test, name: &str) -> Result<Self> {
        let vmi = wait_for_phase(test, name, VmiPhase::Running).await?;
        let pod = launcher(test, &vmi).await?;
        let status = pod.status.context("a pod without status")?;
        let node = pod.spec.and_then(|spec| spec.node_name).context("a pod without node")?;
        let from = if node == "node01" { "node02" } else { "node01" };
        let guest = Self::at(test, &status.pod_ip.context("a pod without address")?, from);
        guest.wait_for_ssh().await?;
        Ok(guest)
    }

    /// Where the guest is reached.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits until ssh lets in.
    pub async fn wait_for_ssh(&self) -> Result<()> {
        let begin = Instant::now();
        while let Err(error) = self.run("true") {
            ensure!(begin.elapsed() < PATIENCE, "no ssh to {}: {error:#}", self.address);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }

    /// Runs a command in the guest, and returns what it prints.
    pub fn run(&self, command: &str) -> Result<String> {
        let enter = self.test.cluster().enter_node(&self.from)?;
        let mut ssh = Command::new(&enter[0]);
        ssh.args(&enter[1..]).args(["timeout", "60", "ssh", "-q", "-i"]).arg(&key()?.private);
        ssh.args(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]);
        ssh.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=5"]);
        let output = ssh.arg(format!("root@{}", self.address)).arg(command).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command}: {} {said}{complaint}", output.status);
        Ok(said)
    }

    /// The boot that the guest is in: another one has another name.
    pub fn boot(&self) -> Result<String> {
        self.run("cat /proc/sys/kernel/random/boot_id")
    }

    /// What a disk begins with. A guest has it a moment after its host plugged it in.
    pub fn begin_of(&self, disk: &str) -> Result<String> {
        let there = format!("for second in $(seq 50); do [ -e {disk} ] && break; sleep 1; done");
        self.run(&format!("{there}; head -c 64 {disk}"))
    }

    /// Starts a command that takes the connection with it.
    pub fn start(&self, command: &str) {
        let _ = self.run(&format!("({command}) >/dev/null 2>&1 &"));
    }
}
