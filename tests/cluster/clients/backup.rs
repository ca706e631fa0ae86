//! Backups of a guest that runs: whole, then what changed, read or written, and once more after a restart.
//!
//! The controller of backups is still to come, so the test does its part: it plugs the claim, asks for the backup and
//! says on the instance which backup it wants to hear of.

mod pull;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::ResourceExt;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{
    BackupStatus, ChangedBlockTrackingState, ChangedBlockTrackingStatus, VolumePhase,
};
use serde_json::{Value, json};
use test_kit::{KUBEVIRT, Test, conditions};
use xtask::install::NAMESPACE;

use super::ask::{granted, refused};
use super::client::Client;
use super::screen::try_for;
use super::volumes::phase_of;
use crate::machines::guest::{Guest, PATIENCE, instances, machines, may_boot, wait_for_successor};
use crate::machines::manifest::{guest, machine};
use crate::machines::{gates, storage};

/// The label of machines that the cluster tracks.
const LABEL: &str = "kubevirt-rs-backups";
/// The class of storage that what is tracked is kept on.
const CLASS: &str = "kubevirt-rs-states";
/// The claim that backups are written to, and the volume that it is plugged in as.
const TARGET: &str = "backups";
/// Where launchers find what is plugged in as a volume.
const PLUGGED_IN: &str = "/var/run/kubevirt/hotplug-disks";
/// When all backups begin: their names tell them apart.
const START: &str = "2026-01-02T03:04:05Z";
/// A claim that is plugged in as a disk.
const PLUGGED: &str = "plugged";
/// What is backed up, as the guest sees it.
const DISK: &str = "/dev/disk/by-id/virtio-data";
/// How much of a disk is looked at, and where.
const WORD: usize = 6;
const PLACES: [u64; 4] = [0, 1 << 20, 2 << 20, 3 << 20];

/// Merges into the instance, as the controller would.
async fn patch_as_controller(test: &Test, patch: Value) -> Result<()> {
    let who = format!("--as=system:serviceaccount:{NAMESPACE}:kubevirt-controller");
    let patch = patch.to_string();
    // It takes a moment until all have heard of a gate.
    try_for(PATIENCE, || {
        test.kubectl(&[&who, "patch", "vmi", "vm", "--type=merge", "--patch", &patch]).map(drop)
    })
    .await
}

fn tracking(vmi: &VirtualMachineInstance) -> Option<&ChangedBlockTrackingStatus> {
    vmi.status.as_ref()?.changed_block_tracking.as_ref()
}

fn backup_status(vmi: &VirtualMachineInstance) -> Option<&BackupStatus> {
    tracking(vmi)?.backup_status.as_ref()
}

/// A machine that starts once the cluster knows that it is to be tracked.
async fn is_made(test: &Test) -> Result<()> {
    let mut template = guest("vm")?;
    let disks = template["domain"]["devices"]["disks"].as_array_mut().context("no disks")?;
    disks.push(json!({"name": "data", "disk": {"bus": "virtio"}, "serial": "data"}));
    let volumes = template["volumes"].as_array_mut().context("no volumes")?;
    volumes.push(json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}}));
    let mut manifest = machine("vm", "Manual", template);
    manifest["metadata"]["labels"] = json!({LABEL: "true"});
    test.apply(&manifest).await?;
    let heard = |vm: &VirtualMachine| {
        let tracking = vm.status.as_ref().and_then(|status| status.changed_block_tracking.as_ref());
        tracking.is_some_and(|tracking| tracking.state == ChangedBlockTrackingState::Initializing)
    };
    test.wait_within(PATIENCE, &machines(test), "vm", "is to be tracked", heard).await?;
    Client::Ours.run(test, &["start", "vm"]).map(drop)
}

/// Waits for the guest and all that a backup needs, and plugs the claim for it.
async fn is_ready<'a>(test: &'a Test) -> Result<Guest<'a>> {
    let shell = Guest::wait(test, "vm").await?;
    let agent = conditions::has::<VirtualMachineInstance>("AgentConnected");
    test.wait_within(PATIENCE, &instances(test), "vm", "has its agent", agent).await?;
    let tracked = |vmi: &VirtualMachineInstance| {
        tracking(vmi).is_some_and(|tracking| tracking.state == ChangedBlockTrackingState::Enabled)
    };
    test.wait_within(PATIENCE, &instances(test), "vm", "is tracked", tracked).await?;
    let volume = json!({"name": TARGET, "claimName": TARGET, "type": "Backup"});
    patch_as_controller(test, json!({"spec": {"utilityVolumes": [volume]}})).await?;
    let plugged = |vmi: &VirtualMachineInstance| phase_of(vmi, TARGET) == Some(VolumePhase::MountedToPod);
    test.wait_within(PATIENCE, &instances(test), "vm", "has the claim", plugged).await?;
    Ok(shell)
}

/// Writes a word to a place of the disk.
fn write(shell: &Guest<'_>, word: &str, place: u64) -> Result<()> {
    let seek = format!("oflag=seek_bytes seek={place} conv=notrunc,fsync");
    shell.run(&format!("printf {word} | dd of={DISK} {seek} 2>&1")).map(drop)
}

/// What is asked of a backup.
fn options(name: &str, command: &str) -> Value {
    json!({
        "backupName": name, "cmd": command, "mode": "Push", "backupStartTime": START,
        "targetPath": format!("{PLUGGED_IN}/{TARGET}"),
    })
}

async fn ask(test: &Test, subresource: &str, body: Value) -> Result<()> {
    granted(test, Method::PUT, &of(subresource), body).await.map(drop)
}

fn of(subresource: &str) -> String {
    format!("virtualmachineinstances/vm/{subresource}")
}

/// Asks for a backup, and to be told of it.
async fn begin(test: &Test, wish: &Value) -> Result<()> {
    ask(test, "backup", wish.clone()).await?;
    let told = json!({"backupName": wish["backupName"], "startTimestamp": wish["backupStartTime"]});
    patch_as_controller(test, json!({"status": {"changedBlockTracking": {"backupStatus": told}}})).await
}

/// Waits for the end of a backup, and forgets it: the next one is not taken for it.
async fn end(test: &Test) -> Result<BackupStatus> {
    let over =
        |vmi: &VirtualMachineInstance| backup_status(vmi).is_some_and(|told| told.completed == Some(true));
    let vmi = test.wait_within(PATIENCE, &instances(test), "vm", "is backed up", over).await?;
    let told = backup_status(&vmi).context("no backup")?;
    ensure!(told.end_timestamp.is_some(), "{told:?}");
    ensure!(told.quiesce_status.as_deref() == Some("Succeeded"), "{told:?}");
    patch_as_controller(test, json!({"status": {"changedBlockTracking": {"backupStatus": null}}})).await?;
    Ok(told.clone())
}

/// All that KubeVirt's controller says to end a backup.
fn abort_of(name: &str) -> Value {
    json!({"backupName": name, "cmd": "Abort", "backupStartTime": START})
}

/// Takes a backup of these volumes, whole or of what changed since a checkpoint. Returns the checkpoint and the words of
/// each volume.
async fn take(
    test: &Test,
    folder: &Path,
    name: &str,
    since: Option<&str>,
    volumes: &[&str],
) -> Result<(String, Vec<Vec<String>>)> {
    let mut wish = options(name, "Start");
    wish["incremental"] = json!(since);
    begin(test, &wish).await?;
    let told = end(test).await?;
    ensure!(told.failed != Some(true) && told.backup_msg.is_none(), "{told:?}");
    let told_of: Vec<_> = told.volumes.iter().flatten().map(|volume| volume.volume_name.as_str()).collect();
    ensure!(told_of == volumes, "{told:?}");
    let checkpoint = told.checkpoint_name.clone().context("no checkpoint")?;
    let folder = folder.join("vm").join(&checkpoint);
    let of_volume = |volume: &&str| words(&folder.join(format!("{name}-{volume}.qcow2")));
    let words = volumes.iter().map(of_volume).collect::<Result<_>>()?;
    Ok((checkpoint, words))
}

/// What is in an image where words may be.
fn words(image: &Path) -> Result<Vec<String>> {
    let raw: PathBuf = image.with_extension("raw");
    let read = Command::new("qemu-img").args(["convert", "-O", "raw"]).args([image, &raw]).output()?;
    ensure!(read.status.success(), "{}: {}", image.display(), String::from_utf8_lossy(&read.stderr));
    words_of_raw(&raw)
}

/// The same of an image that holds the bytes as they are, which goes.
fn words_of_raw(raw: &Path) -> Result<Vec<String>> {
    let word = |place: u64| Ok(storage::read(raw, place, WORD)?.trim_end_matches('\0').to_owned());
    let words = PLACES.into_iter().map(word).collect();
    fs::remove_file(raw)?;
    words
}

/// What cannot be is said, and leaves nothing behind.
async fn what_cannot_be_is_told(test: &Test, latest: &str) -> Result<()> {
    let mut lost = options("three", "Start");
    lost["incremental"] = json!("lost");
    for (body, words) in [
        (options(latest, "Start"), "already been made"),
        (options(latest, "Abort"), "already over"),
        (options("other", "Abort"), "no such backup"),
        (options("three", "Dance"), "no backup command"),
        (lost, "lost"),
    ] {
        refused(test, (Method::PUT, &of("backup"), body), 500, words).await?;
    }
    // Clients of KubeVirt know by the number in the words that no later try will do.
    let spoilt = "return code 422 (422 Unprocessable Entity), message: no disk has a usable checkpoint lost";
    refused(test, (Method::PUT, &of("redefine-checkpoint"), json!({"name": "lost"})), 500, spoilt).await
}

/// A disk that is plugged in is tracked and backed up too, and nothing is remembered of it once it is pulled.
async fn a_plugged_disk_is_in_it(test: &Test, folder: &Path) -> Result<()> {
    let _device = storage::claim_device(test, PLUGGED, "added").await?;
    let tracker = storage::folder(test, "state")?.join(format!("cbt/{PLUGGED}.qcow2"));
    let volume = format!("--volume-name={PLUGGED}");
    Client::Ours.run(test, &["addvolume", "vm", &volume, "--bus=virtio"])?;
    let ready = |vmi: &VirtualMachineInstance| phase_of(vmi, PLUGGED) == Some(VolumePhase::Ready);
    test.wait_within(PATIENCE, &instances(test), "vm", "has its disk", ready).await?;
    let (_, found) = take(test, folder, "both", None, &["data", PLUGGED]).await?;
    ensure!(found == [["later", "first", "second", ""], ["added", "", "", ""]], "{found:?}");
    ensure!(tracker.exists(), "{}", tracker.display());
    Client::Ours.run(test, &["removevolume", "vm", &volume])?;
    let gone = |vmi: &VirtualMachineInstance| phase_of(vmi, PLUGGED).is_none();
    test.wait_within(PATIENCE, &instances(test), "vm", "has no disk any more", gone).await?;
    ensure!(!tracker.exists(), "{} is left", tracker.display());
    Ok(())
}

/// One guest, and all that can be asked of its backups.
async fn is_backed_up(test: &Test) -> Result<()> {
    storage::offer_folder(test, CLASS, "state", &["meta", "cbt"]).await?;
    storage::claim_folder(test, "data", "begin").await?;
    let folder = storage::claim_empty_folder(test, TARGET, 64 << 20).await?;
    let _leave = may_boot().await?;
    is_made(test).await?;
    let shell = is_ready(test).await?;

    write(&shell, "first", PLACES[1])?;
    let (one, found) = take(test, &folder, "one", None, &["data"]).await.context("whole")?;
    ensure!(found == [["begin", "first", "", ""]], "{found:?}");
    write(&shell, "second", PLACES[2])?;
    let (two, found) = take(test, &folder, "two", Some(&one), &["data"]).await.context("what changed")?;
    ensure!(found == [["", "", "second", ""]], "{found:?}");
    what_cannot_be_is_told(test, "two").await.context("refusals")?;
    let three = pull::is_read(test, &folder, &shell, &two).await.context("pull")?;
    let (four, found) = take(test, &folder, "four", Some(&three), &["data"]).await.context("since a pull")?;
    ensure!(found == [["later", "", "", ""]], "{found:?}");
    a_plugged_disk_is_in_it(test, &folder).await.context("a plugged disk")?;

    // The next run of the machine goes on from where the last one was.
    let before = instances(test).get("vm").await?.uid().context("no UID")?;
    Client::Ours.run(test, &["restart", "vm"])?;
    wait_for_successor(test, "vm", &before).await?;
    let shell = is_ready(test).await.context("after a restart")?;
    ask(test, "redefine-checkpoint", json!({"name": four})).await?;
    write(&shell, "third", PLACES[3])?;
    let (_, found) =
        take(test, &folder, "five", Some(&four), &["data"]).await.context("since the restart")?;
    ensure!(found == [["", "", "", "third"]], "{found:?}");
    Ok(())
}

#[tokio::test]
async fn a_guest_is_backed_up_whole_and_then_what_changed() -> Result<()> {
    KUBEVIRT
        .run("backup", async |test| {
            {
                let _usual = gates::USUAL.read().await;
                gates::open(test)?;
            }
            let selector = json!({"virtualMachineLabelSelector": {"matchLabels": {LABEL: "true"}}});
            let tracked =
                json!({"changedBlockTrackingLabelSelectors": selector, "vmStateStorageClass": CLASS});
            gates::configure(test, &tracked)?;
            let outcome = is_backed_up(test).await;
            // However it went: others use the cluster too.
            let untracked = json!({"changedBlockTrackingLabelSelectors": null, "vmStateStorageClass": null});
            let cleaned = gates::configure(test, &untracked)
                .and_then(|()| {
                    let class = ["delete", "storageclass", CLASS, "--ignore-not-found"];
                    test.cluster().kubectl(&class).map(drop)
                })
                .and_then(|()| storage::release(test, &["state", "data", TARGET, PLUGGED]));
            outcome.and(cleaned)
        })
        .await
}
