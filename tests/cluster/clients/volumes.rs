//! Disks that users plug into a guest that runs, and pull again.

use anyhow::{Context, Result, ensure};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VolumePhase;
use test_kit::Test;

use super::client::{CLIENTS, Client};
use crate::machines::guest::{Guest, PATIENCE, instances};
use crate::machines::storage;

const CLAIM: &str = "data";
const WORDS: &str = "on a claim";

fn phase(vmi: &VirtualMachineInstance) -> Option<VolumePhase> {
    let all = vmi.status.as_ref()?.volume_status.as_deref()?;
    all.iter().find(|status| status.name == CLAIM)?.phase.clone()
}

/// Each client plugs a claim into the guest and pulls it. `more` are flags that lead to the machine or to the instance.
pub async fn come_and_go(test: &Test, shell: &Guest<'_>, name: &str, more: &[&str]) -> Result<()> {
    storage::claim_folder(test, CLAIM, WORDS).await?;
    let before = shell.run("ls /sys/block")?;
    for client in CLIENTS {
        plug_and_pull(test, client, shell, name, more).await.with_context(|| format!("{client:?}"))?;
        ensure!(shell.run("ls /sys/block")? == before, "{client:?}: the guest still has the disk");
    }
    storage::release(test, &[CLAIM])
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
    let ready = |vmi: &VirtualMachineInstance| phase(vmi) == Some(VolumePhase::Ready);
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
    let gone = |vmi: &VirtualMachineInstance| phase(vmi).is_none();
    test.wait_within(PATIENCE, &instances(test), name, "has no disk any more", gone).await.map(drop)
}
