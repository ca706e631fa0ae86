//! Backups of a disk.

use std::path::Path;

use kubevirt_launcher_rpc::report::BackupReport;
use serde_json::Value;

use super::*;
use crate::error::CommandError;

impl Bench {
    /// Writes to the disk as the guest would.
    async fn write(&self, byte: u8, from: &str) {
        self.write_much(byte, from, "64k").await;
    }

    async fn write_much(&self, byte: u8, from: &str, length: &str) {
        let drive = "/machine/peripheral/disk-root/virtio-backend";
        let line = format!("qemu-io -d {drive} \"write -P {byte} {from} {length}\"");
        let arguments = json!({ "command-line": line });
        let told: String = self.running.machine.qmp().call("human-monitor-command", arguments).await.unwrap();
        assert_eq!(told, "");
    }

    /// Lets the disk be read at no more than so many bytes a second.
    async fn slow_down(&self, bytes: u64) {
        let limits = json!({ "bps-read": bytes });
        let arguments = json!({ "path": "/objects/brake", "property": "limits", "value": limits });
        self.running.machine.qmp().run("qom-set", arguments).await.unwrap();
    }

    /// Nothing is left of a backup, and nothing of it can be started from.
    async fn has_nothing_of(&self, name: &str) {
        let left = self.folder.join(format!("backups/web/{name}-2024-05-06_07-08-09"));
        assert!(!left.exists(), "{}", left.display());
        let nodes = self.running.machine.blocks().await.unwrap();
        assert!(nodes.iter().all(|node| !node.name.starts_with("backup")), "{nodes:?}");
        let bitmaps = self.running.machine.bitmaps("v-root").await.unwrap();
        assert!(bitmaps.iter().all(|bitmap| !bitmap.name.starts_with(name)), "{bitmaps:?}");
    }

    async fn back_up(&self, options: Value) -> Result<(), CommandError> {
        self.launcher.back_up(options.to_string().as_bytes()).await
    }

    async fn until_backed_up(&self, name: &str) -> BackupReport {
        let over = |report: &DomainReport| {
            report
                .status
                .backup
                .as_ref()
                .is_some_and(|backup| backup.job.completed && backup.job.name == name)
        };
        self.until(over).await.status.backup.unwrap()
    }

    fn options(&self, name: &str, mode: &str) -> Value {
        json!({
            "backupName": name, "cmd": "Start", "mode": mode, "backupStartTime": "2024-05-06T07:08:09Z",
            "targetPath": self.folder.join("backups"), "skipQuiesce": true,
        })
    }
}

/// What an image or an export shows, at each of the first MiBs.
fn bytes(folder: &Path, image: &str) -> Vec<u8> {
    let raw = folder.join("read.raw");
    let read = Command::new("qemu-img").args(["convert", "-O", "raw", image]).arg(&raw).status();
    assert!(read.unwrap().success());
    let content = std::fs::read(raw).unwrap();
    (0..3).map(|mebibyte| content[mebibyte << 20]).collect()
}

#[tokio::test]
async fn a_backup_is_pushed_whole_and_then_what_changed() {
    let bench = Bench::start().await;
    bench.write(7, "0").await;
    bench.back_up(bench.options("one", "Push")).await.unwrap();
    let report = bench.until_backed_up("one").await;
    assert!(!report.job.failed, "{report:?}");
    assert_eq!((report.checkpoint.as_str(), report.quiesce.as_str()), ("one-2024-05-06_07-08-09", "Skipped"));
    assert_eq!((report.volumes.len(), report.volumes[0].volume_name.as_str()), (1, "root"));
    let file = |name: &str| {
        let folder = bench.folder.join(format!("backups/web/{name}-2024-05-06_07-08-09"));
        folder.join(format!("{name}-root.qcow2")).to_str().unwrap().to_owned()
    };
    assert_eq!(bytes(&bench.folder, &file("one")), [7, 0, 0]);
    let again = bench.back_up(bench.options("one", "Push")).await.unwrap_err();
    assert!(again.to_string().contains("already"), "{again}");

    bench.write(9, "1M").await;
    let mut next = bench.options("two", "Push");
    next["incremental"] = json!(report.checkpoint);
    bench.back_up(next).await.unwrap();
    let report = bench.until_backed_up("two").await;
    assert!(!report.job.failed, "{report:?}");
    assert_eq!(bytes(&bench.folder, &file("two")), [0, 9, 0]);

    let mut lost = bench.options("three", "Push");
    lost["incremental"] = json!("no-such-checkpoint");
    assert!(bench.back_up(lost).await.is_err());
    assert!(!Path::new(&file("three")).exists());
    let bitmaps = bench.running.machine.bitmaps("v-root").await.unwrap();
    assert_eq!(bitmaps.len(), 2, "{bitmaps:?}");
    for (name, valid) in [("two-2024-05-06_07-08-09", true), ("three-2024-05-06_07-08-09", false)] {
        let checkpoint = json!({ "name": name }).to_string();
        assert_eq!(bench.launcher.redefine_checkpoint(checkpoint.as_bytes()).await.unwrap(), valid, "{name}");
    }
}

#[tokio::test]
async fn a_backup_is_pulled_until_it_is_ended() {
    let bench = Bench::start().await;
    std::fs::create_dir(bench.folder.join("sockets")).unwrap();
    bench.write(7, "0").await;
    let mut options = bench.options("one", "Pull");
    options["skipQuiesce"] = json!(false);
    bench.back_up(options.clone()).await.unwrap();
    let status = bench.launcher.board.report().status.backup.unwrap();
    assert!(status.quiesce == "Failed" && !status.quiesce_message.is_empty(), "{status:?}");
    bench.write(9, "0").await;
    let export =
        format!("nbd+unix:///root?socket={}", bench.folder.join("sockets/backup-nbd-sock").display());
    assert_eq!(bytes(&bench.folder, &export), [7, 0, 0], "the disk as it was at the start");
    assert!(bench.back_up(bench.options("two", "Push")).await.is_err());

    options["cmd"] = json!("Abort");
    bench.back_up(options.clone()).await.unwrap();
    let report = bench.until_backed_up("one").await;
    assert!(!report.job.failed, "{report:?}");
    assert!(bench.back_up(options).await.is_err());
    let nodes = bench.running.machine.blocks().await.unwrap();
    assert!(nodes.iter().all(|node| !node.name.starts_with("backup")), "{nodes:?}");
    assert!(!bench.folder.join("backups/web/one-2024-05-06_07-08-09").exists());

    let mut next = bench.options("three", "Pull");
    next["incremental"] = json!(report.checkpoint);
    bench.back_up(next.clone()).await.unwrap();
    next["cmd"] = json!("Abort");
    bench.back_up(next).await.unwrap();
    assert!(!bench.until_backed_up("three").await.job.failed);
}

#[tokio::test]
async fn a_push_that_is_aborted_has_failed_and_leaves_nothing() {
    let bench = Bench::start().await;
    bench.write_much(7, "0", "4M").await;
    // Nothing runs for so long that it could not be aborted.
    bench.slow_down(512 << 10).await;
    bench.back_up(bench.options("one", "Push")).await.unwrap();
    let again = bench.back_up(bench.options("one", "Push")).await;
    assert!(again.is_ok(), "it runs, as it should: {again:?}");
    // This is all that a controller says.
    let abort =
        |name: &str| json!({ "backupName": name, "cmd": "Abort", "backupStartTime": "2024-05-06T07:08:09Z" });
    assert!(bench.back_up(abort("two")).await.is_err());
    bench.back_up(abort("one")).await.unwrap();
    let report = bench.until_backed_up("one").await;
    assert_eq!((report.job.failed, report.job.failure_reason.as_str()), (true, "backup aborted"));
    bench.has_nothing_of("one").await;

    // One that is only about to begin is aborted too.
    let (launcher, two) = (bench.launcher.clone(), bench.options("two", "Push").to_string());
    let begins = tokio::spawn(async move { launcher.back_up(two.as_bytes()).await });
    let is_two = |report: &DomainReport| report.status.backup.as_ref().is_some_and(|it| it.job.name == "two");
    bench.until(is_two).await;
    bench.back_up(abort("two")).await.unwrap();
    begins.await.unwrap().unwrap();
    assert!(bench.until_backed_up("two").await.job.failed);
    bench.has_nothing_of("two").await;

    bench.slow_down(0).await;
    bench.back_up(bench.options("three", "Push")).await.unwrap();
    assert!(!bench.until_backed_up("three").await.job.failed);
}

#[tokio::test]
async fn a_backup_fails_with_its_machine() {
    let bench = Bench::start().await;
    std::fs::create_dir(bench.folder.join("sockets")).unwrap();
    bench.back_up(bench.options("one", "Pull")).await.unwrap();
    bench.running.process.kill();
    let report = bench.until_backed_up("one").await;
    assert!(report.job.failed && !report.job.failure_reason.is_empty(), "{report:?}");
    assert!(report.job.end_timestamp.is_some(), "{report:?}");
    for left in ["sockets/backup-nbd-sock", "backups/web/one-2024-05-06_07-08-09"] {
        assert!(!bench.folder.join(left).exists(), "{left}");
    }
}
