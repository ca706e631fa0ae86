//! Whether it is tracked which blocks of disks change, and how far a backup is.

use kubevirt_api::backup::BackupVolumeInfo;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{BackupStatus, ChangedBlockTrackingState, ChangedBlockTrackingStatus};
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_domain::Domain;
use kubevirt_domain::domain::disk::{Disk, DiskKind};
use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::report::{BackupReport, BackupVolume};

use super::volumes::time;

/// The tracking as it is told; none if nobody wants it.
pub fn tracking(vmi: &VirtualMachineInstance, report: &DomainReport) -> Option<ChangedBlockTrackingStatus> {
    let mut told = vmi.status.as_ref()?.changed_block_tracking.clone()?;
    let begins = told.state == ChangedBlockTrackingState::Initializing;
    if begins && report.spec.as_ref().is_some_and(|domain| is_complete(vmi, domain)) {
        told.state = ChangedBlockTrackingState::Enabled;
    }
    // Which backup is told of is the controller's to say, and it may not know of the latest yet.
    if let (Some(status), Some(backup)) = (&mut told.backup_status, &report.status.backup)
        && is_of(status, backup)
    {
        progress(status, backup);
    }
    Some(told)
}

/// Whether no disk is left that should be tracked and is not.
fn is_complete(vmi: &VirtualMachineInstance, domain: &Domain) -> bool {
    let disks = vmi.spec.domain.devices.disks.iter().flatten();
    let lasting = disks.filter(|disk| volume(vmi, &disk.name).is_some_and(Volume::outlives_machine));
    lasting
        .map(|disk| domain.disks.iter().find(|known| known.name == disk.name))
        .all(|disk| disk.is_some_and(is_followed))
}

fn volume<'a>(vmi: &'a VirtualMachineInstance, name: &str) -> Option<&'a Volume> {
    vmi.spec.volumes.iter().flatten().find(|volume| volume.name == name)
}

/// Whether a disk is tracked, or never can be.
fn is_followed(disk: &Disk) -> bool {
    let is_written = disk.kind == DiskKind::Disk && !disk.read_only;
    !is_written || disk.image.as_ref().is_some_and(|image| image.data.is_some())
}

fn is_of(status: &BackupStatus, backup: &BackupReport) -> bool {
    let job = &backup.job;
    let name = status.backup_name.as_deref().unwrap_or_default();
    name == job.name && status.start_timestamp == time(job.start_timestamp.as_deref())
}

fn progress(status: &mut BackupStatus, backup: &BackupReport) {
    let job = &backup.job;
    let word = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let volume = |volume: &BackupVolume| BackupVolumeInfo {
        volume_name: volume.volume_name.clone(),
        disk_target: volume.disk_target.clone(),
        ..BackupVolumeInfo::default()
    };
    status.completed = job.completed.then_some(true);
    status.failed = job.failed.then_some(true);
    status.end_timestamp = time(job.end_timestamp.as_deref());
    status.backup_msg = word(&job.failure_reason).or_else(|| word(&backup.quiesce_message));
    status.checkpoint_name = word(&backup.checkpoint);
    status.volumes = Some(backup.volumes.iter().map(volume).collect());
    status.quiesce_status = word(&backup.quiesce);
}

#[cfg(test)]
mod tests {
    use kubevirt_launcher_rpc::report::{Reason, State};
    use serde_json::{Value, json};

    use super::super::testing::{domain, machine, vmi};
    use super::*;

    fn instance(disks: Value, volumes: Value, tracking: Value) -> VirtualMachineInstance {
        let spec = json!({"domain": {"devices": {"disks": disks}}, "volumes": volumes});
        vmi(spec, json!({"phase": "Running", "changedBlockTracking": tracking}))
    }

    fn told(vmi: &VirtualMachineInstance, backup: Option<BackupReport>) -> Value {
        let mut report = machine(domain(State::Running, Reason::Unknown), vmi);
        report.status.backup = backup;
        serde_json::to_value(tracking(vmi, &report)).unwrap()
    }

    #[test]
    fn tracking_is_enabled_once_all_disks_are_tracked() {
        let (disk, claim) = (
            json!([{"name": "data", "disk": {"bus": "virtio"}}]),
            json!([{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]),
        );
        let locked = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "c", "readOnly": true}}]);
        let later =
            json!([{"name": "data", "persistentVolumeClaim": {"claimName": "c", "hotpluggable": true}}]);
        let gone = json!([{"name": "data", "containerDisk": {"image": "i"}}]);
        for (volumes, before, after) in [
            (&claim, "Initializing", "Enabled"),
            (&claim, "Enabled", "Enabled"),
            (&claim, "Disabled", "Disabled"),
            (&locked, "Initializing", "Enabled"),
            (&later, "Initializing", "Initializing"),
            (&gone, "Initializing", "Enabled"),
        ] {
            let vmi = instance(disk.clone(), volumes.clone(), json!({"state": before}));
            assert_eq!(told(&vmi, None), json!({"state": after}), "{volumes} {before}");
        }
        assert_eq!(told(&instance(disk.clone(), claim.clone(), Value::Null), None), Value::Null);
        // A machine that does not track as it should is not said to.
        let vmi = instance(disk, claim, json!({"state": "Initializing"}));
        let mut report = machine(domain(State::Running, Reason::Unknown), &vmi);
        report.spec.as_mut().unwrap().disks[0].image.as_mut().unwrap().data = None;
        assert_eq!(tracking(&vmi, &report).unwrap().state, ChangedBlockTrackingState::Initializing);
    }

    #[test]
    fn only_the_backup_that_is_asked_about_is_told_of() {
        let backup: BackupReport = serde_json::from_value(json!({
            "name": "one", "startTimestamp": "2026-01-02T03:04:05Z", "endTimestamp": "2026-01-02T03:05:00Z",
            "completed": true, "checkpoint": "one-x", "quiesce": "Failed", "quiesceMessage": "no agent",
            "volumes": [{"volumeName": "data", "diskTarget": "vda"}],
        }))
        .unwrap();
        let asked = json!({"backupName": "one", "startTimestamp": "2026-01-02T03:04:05Z"});
        let at = |status: &Value| json!({"state": "Enabled", "backupStatus": status});
        let vmi = |status: &Value| instance(json!([]), json!([]), at(status));
        let done = json!({
            "backupName": "one", "startTimestamp": "2026-01-02T03:04:05Z", "endTimestamp": "2026-01-02T03:05:00Z",
            "completed": true, "backupMsg": "no agent", "checkpointName": "one-x", "quiesceStatus": "Failed",
            "volumes": [{"volumeName": "data", "diskTarget": "vda"}],
        });
        assert_eq!(told(&vmi(&asked), Some(backup.clone())), at(&done));
        assert_eq!(told(&vmi(&asked), None), at(&asked));
        let other = json!({"backupName": "one", "startTimestamp": "2026-01-02T03:04:06Z"});
        assert_eq!(told(&vmi(&other), Some(backup.clone())), at(&other));
        assert_eq!(told(&vmi(&Value::Null), Some(backup.clone())), json!({"state": "Enabled"}));
        let mut failed = backup;
        (failed.job.failed, failed.job.failure_reason) = (true, "no space".into());
        let told = told(&vmi(&asked), Some(failed));
        assert_eq!(told["backupStatus"]["failed"], true);
        assert_eq!(told["backupStatus"]["backupMsg"], "no space");
    }
}
