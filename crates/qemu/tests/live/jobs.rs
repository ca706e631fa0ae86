//! Backups, mirrors and bitmaps on small disks.

use std::process::Command;
use std::time::Duration;

use kubevirt_qemu::machine::{Backup, JobError, JobStatus, Mirror};
use kubevirt_qemu::{Machine, Process};
use serde_json::json;

use crate::common::{Folder, start, within};
use crate::disks::add_raw;

const SIZE: usize = 4 << 20;

async fn machine(folder: &Folder) -> (Process, Machine) {
    let (process, machine) = start(&["-machine", "q35", "-device", "pcie-root-port,id=port1"]).await;
    add_raw(&machine, "source", &folder.disk("source.raw", SIZE, 7)).await;
    add_raw(&machine, "target", &folder.disk("target.raw", SIZE, 0)).await;
    (process, machine)
}

fn content(folder: &Folder, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

#[tokio::test]
async fn a_backup_is_complete() {
    let folder = Folder::new();
    let (_process, machine) = machine(&folder).await;
    let job = machine.backup("backup", &Backup::full("source", "target")).await.unwrap();
    within(job.finish()).await.unwrap();
    assert!(content(&folder, "target.raw").iter().all(|byte| *byte == 7));
    assert_eq!(machine.jobs().await.unwrap(), []);
    let unknown = machine.job("backup").finish().await;
    assert!(matches!(unknown, Err(JobError::Unknown { .. })), "{unknown:?}");
}

#[tokio::test]
async fn a_slow_backup_tells_its_progress_and_can_be_cancelled() {
    let folder = Folder::new();
    let (_process, machine) = machine(&folder).await;
    let slow = Backup { speed: Some(256 << 10), ..Backup::full("source", "target") };
    let mut job = machine.backup("slow", &slow).await.unwrap();
    let info = within(async {
        loop {
            let info = job.progress(Duration::from_millis(50)).await.unwrap();
            if info.status == JobStatus::Running && info.current_progress > 0 {
                return info;
            }
        }
    })
    .await;
    assert_eq!((info.id.as_str(), info.kind.as_str()), ("slow", "backup"));
    assert!(info.total_progress > info.current_progress);
    job.set_speed(128 << 10).await.unwrap();
    job.set_paused(true).await.unwrap();
    job.set_paused(false).await.unwrap();
    job.cancel().await.unwrap();
    let result = within(job.finish()).await;
    assert!(matches!(result, Err(JobError::Cancelled { .. })), "{result:?}");
    assert_eq!(machine.jobs().await.unwrap(), []);
}

#[tokio::test]
async fn a_mirror_follows_until_it_is_completed() {
    let folder = Folder::new();
    let (_process, machine) = machine(&folder).await;
    machine
        .plug(json!({ "driver": "virtio-blk-pci", "id": "vda", "drive": "source", "bus": "port1" }))
        .await
        .unwrap();
    let mut job = machine.mirror("mirror", &Mirror::full("source", "target")).await.unwrap();
    within(job.until_ready()).await.unwrap();
    job.complete().await.unwrap();
    within(job.finish()).await.unwrap();
    assert!(content(&folder, "target.raw").iter().all(|byte| *byte == 7));
    let drives = machine.drives().await.unwrap();
    assert_eq!(drives[0].node(), Some("target"), "the guest goes on with the copy");
}

#[tokio::test]
async fn a_mirror_can_be_detached() {
    let folder = Folder::new();
    let (_process, machine) = machine(&folder).await;
    let mut job = machine.mirror("mirror", &Mirror::full("source", "target")).await.unwrap();
    within(job.until_ready()).await.unwrap();
    job.detach().await.unwrap();
    within(job.finish()).await.unwrap();
    assert_eq!(content(&folder, "target.raw"), content(&folder, "source.raw"));
}

#[tokio::test]
async fn a_failed_job_says_why() {
    let folder = Folder::new();
    let (_process, machine) = machine(&folder).await;
    // A target that fails each write once the job runs.
    let broken = json!({
        "driver": "blkdebug", "node-name": "broken", "image": "target",
        "inject-error": [{ "event": "none", "iotype": "write", "errno": 28 }],
    });
    machine.add_block(broken).await.unwrap();
    let job = machine.backup("doomed", &Backup::full("source", "broken")).await.unwrap();
    let error = within(job.finish()).await.unwrap_err();
    assert!(matches!(&error, JobError::Failed { reason, .. } if reason.contains("space")), "{error}");
    assert!(machine.backup("x", &Backup::full("source", "nowhere")).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn increments_hold_only_what_changed() {
    let folder = Folder::new();
    let (_process, machine) = machine(&folder).await;
    // One transaction: the bitmap begins at the very point of the full backup.
    let steps =
        [Machine::add_bitmap_step("source", "since", false), Backup::full("source", "target").step("full")];
    machine.transaction(&steps).await.unwrap();
    within(machine.job("full").finish()).await.unwrap();
    let bitmap = &machine.bitmaps("source").await.unwrap()[0];
    assert_eq!((bitmap.name.as_str(), bitmap.count, bitmap.recording), ("since", 0, true));

    // Some other program writes through QEMU, as a guest would.
    let socket = folder.join("nbd");
    machine.start_nbd(&socket).await.unwrap();
    machine.export("export", "source", "disk", true, &[]).await.unwrap();
    let url = format!("nbd+unix:///disk?socket={}", socket.display());
    let write = tokio::task::spawn_blocking(move || {
        Command::new("qemu-io").args(["-f", "raw", "-c", "write -P 9 1M 64k", &url]).output().unwrap()
    });
    let output = within(write).await.unwrap();
    assert!(output.status.success(), "{output:?}");
    machine.remove_export("export", true).await.unwrap();
    machine.stop_nbd().await.unwrap();
    assert_eq!(machine.bitmaps("source").await.unwrap()[0].count, 64 << 10);

    machine.add_bitmap("source", "other", false).await.unwrap();
    machine.merge_bitmaps("source", &["since"], "other").await.unwrap();
    add_raw(&machine, "increment", &folder.disk("increment.raw", SIZE, 0)).await;
    let increment = Backup::incremental("source", "increment", "since");
    within(machine.backup("increment", &increment).await.unwrap().finish()).await.unwrap();
    let changed: Vec<usize> = content(&folder, "increment.raw")
        .iter()
        .enumerate()
        .filter(|(_, b)| **b != 0)
        .map(|(at, _)| at)
        .collect();
    assert_eq!((changed.first(), changed.len()), (Some(&(1 << 20)), 64 << 10));

    let bitmaps = machine.bitmaps("source").await.unwrap();
    let count = |name| bitmaps.iter().find(|one| one.name == name).unwrap().count;
    assert_eq!((count("since"), count("other")), (0, 64 << 10));
    machine.set_bitmap_recording("source", "other", false).await.unwrap();
    machine.clear_bitmap("source", "other").await.unwrap();
    for name in ["since", "other"] {
        machine.remove_bitmap("source", name).await.unwrap();
    }
    assert_eq!(machine.bitmaps("source").await.unwrap(), []);
}

#[tokio::test]
async fn bitmaps_outlive_qemu() {
    let folder = Folder::new();
    let file = folder.join("disk.qcow2");
    let image = Command::new("qemu-img").args(["create", "-q", "-f", "qcow2"]).arg(&file).arg("4M").status();
    assert!(image.unwrap().success());
    let disk = json!({
        "driver": "qcow2", "node-name": "disk", "file": { "driver": "file", "filename": file },
    });
    for first in [true, false] {
        let (process, machine) = start(&[]).await;
        machine.add_block(&disk).await.unwrap();
        if first {
            machine.add_bitmap("disk", "kept", true).await.unwrap();
        }
        let bitmaps = machine.bitmaps("disk").await.unwrap();
        assert!(bitmaps[0].name == "kept" && bitmaps[0].persistent && !bitmaps[0].inconsistent);
        assert!(within(process.quit(&machine, Duration::from_secs(30))).await.is_success());
    }
}

async fn overlay(folder: &Folder, machine: &Machine) -> String {
    let base = folder.disk("base.raw", SIZE, 5);
    let overlay = folder.join("overlay.qcow2");
    let mut image = Command::new("qemu-img");
    image.args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b", &base]).arg(&overlay);
    assert!(image.status().unwrap().success());
    let disk = json!({
        "driver": "qcow2", "node-name": "disk", "file": { "driver": "file", "filename": overlay },
    });
    machine.add_block(disk).await.unwrap();
    base
}

#[tokio::test]
async fn overlays_are_flattened() {
    let folder = Folder::new();
    let (_process, machine) = start(&[]).await;
    let base = overlay(&folder, &machine).await;
    let nodes = machine.blocks().await.unwrap();
    assert_eq!(nodes.iter().find(|node| node.name == "disk").unwrap().backing_file(), Some(base.as_str()));
    within(machine.flatten("flatten", "disk").await.unwrap().finish()).await.unwrap();
    let nodes = machine.blocks().await.unwrap();
    let disk = nodes.iter().find(|node| node.name == "disk").unwrap();
    assert_eq!(disk.backing_file(), None);
    assert!(disk.used().is_some_and(|used| used >= SIZE as u64));
}

#[tokio::test]
async fn overlays_are_committed() {
    let folder = Folder::new();
    let (_process, machine) = start(&["-machine", "q35", "-device", "pcie-root-port,id=port1"]).await;
    let base = overlay(&folder, &machine).await;
    machine
        .plug(json!({ "driver": "virtio-blk-pci", "id": "vda", "drive": "disk", "bus": "port1" }))
        .await
        .unwrap();
    let mut job = machine.commit("commit", "disk").await.unwrap();
    within(job.until_ready()).await.unwrap();
    job.complete().await.unwrap();
    within(job.finish()).await.unwrap();
    assert_eq!(machine.drives().await.unwrap()[0].file(), Some(base.as_str()));
}
