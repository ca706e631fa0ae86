//! Disks that users plug into a guest that runs, and pull again.

use anyhow::{Context, Result, anyhow, ensure};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VolumePhase;
use test_kit::Test;

use super::client::{CLIENTS, Client, attempt};
use crate::machines::guest::{Guest, PATIENCE, instances};
use crate::machines::storage;

const CLAIM: &str = "data";
const WORDS: &str = "on a claim";

/// How far a volume of an instance is.
pub fn phase_of(vmi: &VirtualMachineInstance, volume: &str) -> Option<VolumePhase> {
    let all = vmi.status.as_ref()?.volume_status.as_deref()?;
    all.iter().find(|status| status.name == volume)?.phase.clone()
}

/// Each client plugs a claim into the guest and pulls it. `more` are flags that lead to the machine or to the instance.
pub async fn come_and_go(test: &Test, shell: &Guest<'_>, name: &str, more: &[&str]) -> Result<()> {
    storage::claim_folder(test, CLAIM, WORDS).await?;
    let before = shell.run("ls /sys/block")?;
    for client in CLIENTS {
        plug_and_pull(test, client, shell, name, more).await.with_context(|| format!("{client:?}"))?;
        ensure!(shell.run("ls /sys/block")? == before, "{client:?}: the guest still has the disk");
    }
    two_come_at_once(test, name, more).await.context("two at once")?;
    storage::release(test, &[CLAIM])
}

/// Who plugs a disk at the same time as somebody else is not turned away.
async fn two_come_at_once(test: &Test, name: &str, more: &[&str]) -> Result<()> {
    const TWINS: [&str; 2] = ["one", "other"];
    for claim in TWINS {
        storage::claim_folder(test, claim, WORDS).await?;
    }
    let at_once = |command: &str| {
        let flags = TWINS.map(|claim| format!("--volume-name={claim}"));
        let commands =
            flags.iter().map(|flag| Client::Ours.command(test, &[&[command, name, flag], more].concat()));
        let commands = commands.collect::<Result<Vec<_>>>()?;
        let running = commands.into_iter().map(|command| std::thread::spawn(|| attempt(command)));
        for ended in running.collect::<Vec<_>>() {
            let (ended, printed, complaint) = ended.join().map_err(|_| anyhow!("a thread fell"))??;
            ensure!(ended, "{command}: {printed}{complaint}");
        }
        anyhow::Ok(())
    };
    at_once("addvolume")?;
    let has = |vmi: &VirtualMachineInstance, wanted: Option<VolumePhase>| {
        TWINS.iter().all(|claim| phase_of(vmi, claim) == wanted)
    };
    let ready = |vmi: &VirtualMachineInstance| has(vmi, Some(VolumePhase::Ready));
    test.wait_within(PATIENCE, &instances(test), name, "has both disks", ready).await?;
    at_once("removevolume")?;
    let gone = |vmi: &VirtualMachineInstance| has(vmi, None);
    test.wait_within(PATIENCE, &instances(test), name, "has neither disk", gone).await?;
    storage::release(test, &TWINS)
}

async fn plug_and_pull(
    test: &Test,
    client: Client,
    shell: &Guest<'_>,
    name: &str,
    more: &[&str],
) -> Result<()> {
    let (bus, device) = match client {
        Client::Original => ("--bus=scsi", "/dev/sda"),
        Client::Ours => ("--bus=virtio", "/dev/disk/by-id/virtio-data"),
    };
    let add = [&["addvolume", name, "--volume-name=data", bus], more].concat();
    // A plan changes nothing: what it asks for can be asked for again.
    client.run(test, &[&add[..], &["--dry-run"]].concat())?;
    client.run(test, &add)?;
    let ready = |vmi: &VirtualMachineInstance| phase_of(vmi, CLAIM) == Some(VolumePhase::Ready);
    test.wait_within(PATIENCE, &instances(test), name, "has its disk", ready).await?;
    let found = shell.begin_of(device)?;
    ensure!(found.contains(WORDS), "{device} has {found:?}");
    let said = client.fail(test, &add)?;
    ensure!(said.contains("already exists"), "a disk twice: {said}");

    let remove = |volume: &'static str| [&["removevolume", name, "--volume-name", volume], more].concat();
    for (volume, why) in [("root", "not hotpluggable"), ("other", "does not exist")] {
        let said = client.fail(test, &remove(volume))?;
        ensure!(said.contains(why), "removevolume {volume}: {said}");
    }
    client.run(test, &remove(CLAIM))?;
    let gone = |vmi: &VirtualMachineInstance| phase_of(vmi, CLAIM).is_none();
    test.wait_within(PATIENCE, &instances(test), name, "has no disk any more", gone).await.map(drop)
}
