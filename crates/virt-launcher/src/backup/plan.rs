//! What a backup consists of.

use std::path::{Path, PathBuf};

use kubevirt_api::backup::{BackupMode, BackupOptions};
use kubevirt_domain::Domain;
use kubevirt_domain::qemu::names;
use kubevirt_launcher_rpc::report::{BackupReport, BackupVolume, JobReport};
use kubevirt_qemu::Machine;
use kubevirt_qemu::machine::{Backup, Sync};
use serde_json::{Value, json};

/// Why there is nothing to back up.
pub(super) const NOT_TRACKED: &str =
    "changed block tracking is not enabled: no disk of the virtual machine has it";

/// Name of the socket from which pull backups are read.
const SOCKET: &str = "backup-nbd-sock";

/// Bitmap of what an incremental backup copies.
const CHANGED: &str = "backup";

/// A disk whose changes are tracked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tracked {
    pub(super) volume: BackupVolume,
    pub(super) node: String,
}

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// What is told of it.
    pub(super) report: BackupReport,
    /// Checkpoint from which it starts, if it is incremental.
    since: Option<String>,
    /// Folder of its files.
    pub(super) folder: PathBuf,
    /// Socket from which it is read, if it is pulled.
    pub(super) socket: Option<PathBuf>,
    /// Its disks.
    pub(super) disks: Vec<Copy>,
}

/// The copy of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    /// The disk.
    pub(super) source: Tracked,
    /// Its job, its block node and, with an ending, the block node of its file.
    pub(super) id: String,
    /// Its file.
    pub(super) file: PathBuf,
}

/// Disks whose changes are tracked.
pub(super) fn tracked(domain: &Domain) -> Vec<Tracked> {
    let disks =
        domain.disks.iter().filter(|disk| disk.image.as_ref().is_some_and(|image| image.data.is_some()));
    disks
        .map(|disk| Tracked {
            volume: BackupVolume { volume_name: disk.name.clone(), disk_target: disk.target.clone() },
            node: names::node(&disk.name),
        })
        .collect()
}

/// What tells one backup from another.
pub(super) fn job(options: &BackupOptions) -> JobReport {
    let start = options.backup_start_time.as_ref();
    JobReport {
        name: options.backup_name.clone(),
        start_timestamp: start.map(|time| time.0.to_string()),
        ..JobReport::default()
    }
}

impl Plan {
    /// Plans a backup; in words why it cannot be.
    pub(super) fn new(domain: &Domain, options: &BackupOptions, sockets: &Path) -> Result<Self, String> {
        let name = &options.backup_name;
        let start = options.backup_start_time.as_ref().ok_or("the backup has no start time")?;
        let path = options.target_path.as_deref().ok_or("the backup has no folder to write to")?;
        let pull = match &options.mode {
            Some(BackupMode::Push) => false,
            Some(BackupMode::Pull) => true,
            other => {
                return Err(format!(
                    "there is no backup mode {:?}",
                    other.as_ref().map_or("", |mode| mode.as_str())
                ));
            }
        };
        let checkpoint = format!("{name}-{}", start.0.strftime("%Y-%m-%d_%H-%M-%S")).to_lowercase();
        let folder = Path::new(path).join(&domain.identity.name).join(&checkpoint);
        let disks: Vec<Copy> = tracked(domain)
            .into_iter()
            .enumerate()
            .map(|(index, source)| Copy {
                file: folder.join(format!("{name}-{}.qcow2", source.volume.volume_name)),
                id: format!("backup{index}"),
                source,
            })
            .collect();
        if disks.is_empty() {
            return Err(NOT_TRACKED.into());
        }
        let report = BackupReport {
            job: job(options),
            mode: if pull { "Pull" } else { "Push" }.into(),
            checkpoint,
            volumes: disks.iter().map(|disk| disk.source.volume.clone()).collect(),
            ..BackupReport::default()
        };
        let since = options.incremental.clone().filter(|since| !since.is_empty());
        Ok(Self { report, since, folder, socket: pull.then(|| sockets.join(SOCKET)), disks })
    }

    /// Everything that must happen at the same point in time: checkpoints begin and jobs start.
    pub(super) fn steps(&self) -> Vec<Value> {
        self.disks.iter().flat_map(|disk| self.steps_of(disk)).collect()
    }

    fn steps_of(&self, disk: &Copy) -> Vec<Value> {
        let node = &disk.source.node;
        let mut steps = Vec::new();
        if let Some(since) = &self.since {
            let (of, name) = self.changed(disk).unwrap_or((node, CHANGED));
            let data = json!({ "node": of, "name": name, "persistent": false, "disabled": true });
            steps.push(json!({ "type": "block-dirty-bitmap-add", "data": data }));
            let from = json!([{ "node": node, "name": since }]);
            let data = json!({ "node": of, "target": name, "bitmaps": from });
            steps.push(json!({ "type": "block-dirty-bitmap-merge", "data": data }));
        }
        steps.push(Machine::add_bitmap_step(node, &self.report.checkpoint, true));
        let full = Backup::full(node, &disk.id);
        let backup = match (&self.socket, &self.since) {
            // Only what the guest overwrites is kept; all else is read from the disk itself.
            (Some(_), _) => Backup { sync: Sync::None, ..full },
            (None, Some(_)) => Backup::incremental(node, &disk.id, CHANGED),
            (None, None) => full,
        };
        steps.push(backup.step(&disk.id));
        steps
    }

    /// The bitmap that says what an incremental backup holds: its node and its name. Whoever pulls a backup reads
    /// it too, by the name of the checkpoint.
    pub(super) fn changed<'a>(&'a self, disk: &'a Copy) -> Option<(&'a str, &'a str)> {
        self.since.as_ref()?;
        Some(match self.socket {
            Some(_) => (&disk.id, &self.report.checkpoint),
            None => (&disk.source.node, CHANGED),
        })
    }
}

impl Copy {
    /// Block node of its file.
    pub(super) fn file_node(&self) -> String {
        format!("{}-file", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(mode: &str, since: Option<&str>) -> Plan {
        let volume = BackupVolume { volume_name: "root".into(), disk_target: "vda".into() };
        let source = Tracked { volume, node: "v-root".into() };
        let disks = vec![Copy { source, id: "backup0".into(), file: "/b/x-root.qcow2".into() }];
        let report = BackupReport { checkpoint: "x-1".into(), mode: mode.into(), ..BackupReport::default() };
        Plan {
            report,
            since: since.map(str::to_owned),
            folder: "/b".into(),
            socket: (mode == "Pull").then(|| "/s".into()),
            disks,
        }
    }

    #[test]
    fn a_checkpoint_begins_where_the_copy_is_taken() {
        let kinds = |plan: &Plan| -> Vec<String> {
            plan.steps().iter().map(|step| step["type"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(kinds(&plan("Push", None)), ["block-dirty-bitmap-add", "blockdev-backup"]);
        let steps = plan("Push", Some("w-0")).steps();
        assert_eq!(steps[1]["data"]["bitmaps"], json!([{ "node": "v-root", "name": "w-0" }]));
        assert_eq!(steps[2]["data"]["name"], "x-1");
        assert_eq!(
            (&steps[3]["data"]["sync"], &steps[3]["data"]["bitmap"]),
            (&json!("incremental"), &json!("backup"))
        );
    }

    #[test]
    fn a_pulled_backup_carries_its_bitmap() {
        let pull = plan("Pull", Some("w-0"));
        let steps = pull.steps();
        assert_eq!(
            (&steps[0]["data"]["node"], &steps[0]["data"]["name"]),
            (&json!("backup0"), &json!("x-1"))
        );
        assert_eq!(steps[3]["data"]["sync"], "none");
        assert_eq!(pull.changed(&pull.disks[0]), Some(("backup0", "x-1")));
        assert_eq!(plan("Pull", None).steps()[1]["data"]["sync"], "none");
    }
}
