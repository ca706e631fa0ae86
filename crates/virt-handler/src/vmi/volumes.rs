//! The volumes of an instance, from what the domain and the pod have of them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_api::names::reasons;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{ContainerDiskInfo, VmiPhase, VolumePhase, VolumeStatus};
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_domain::Domain;
use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::report::JobReport;

use super::memory::OnNode;

/// The volumes, by name. Which there are is the controller's to say.
pub fn volumes(
    vmi: &VirtualMachineInstance,
    report: Option<&DomainReport>,
    on_node: &OnNode,
    now: Timestamp,
) -> Option<Vec<VolumeStatus>> {
    let seen = vmi.status.as_ref()?.volume_status.as_ref()?;
    let domain = report.and_then(|report| report.spec.as_ref());
    let dump = report.and_then(|report| report.status.memory_dump.as_ref());
    let mut all: Vec<VolumeStatus> = seen.clone();
    for status in &mut all {
        status.target = domain.and_then(|domain| target(domain, &status.name)).unwrap_or_default();
        if status.hotplug_volume.is_some() {
            plugged(vmi, status, &on_node.mounted);
        }
        if status.memory_dump_volume.is_some() {
            dumped(vmi, status, dump, now);
        }
        sized(vmi, status, domain);
        if let Some(checksum) = on_node.checksums.get(&status.name) {
            status.container_disk_volume = Some(ContainerDiskInfo { checksum: Some(i64::from(*checksum)) });
        }
    }
    all.sort_by(|left, right| left.name.cmp(&right.name));
    Some(all)
}

/// The name that the guest is likely to give a disk. An empty drive has none.
fn target(domain: &Domain, volume: &str) -> Option<String> {
    let disk = domain.disks.iter().find(|disk| disk.name == volume)?;
    disk.image.as_ref().map(|_| disk.target.clone())
}

fn in_spec<'a>(vmi: &'a VirtualMachineInstance, name: &str) -> Option<&'a Volume> {
    vmi.spec.volumes.iter().flatten().find(|volume| volume.name == name)
}

fn is_wanted(vmi: &VirtualMachineInstance, name: &str) -> bool {
    in_spec(vmi, name).is_some()
        || vmi.spec.utility_volumes.iter().flatten().any(|volume| volume.name == name)
}

/// How far a volume is that was added while the machine runs.
fn plugged(vmi: &VirtualMachineInstance, status: &mut VolumeStatus, mounted: &BTreeSet<String>) {
    use VolumePhase as Phase;
    let name = &status.name;
    let phase = status.phase.clone().unwrap_or_default();
    let before_mounted = matches!(phase, Phase::Bound | Phase::Pending | Phase::AttachedToNode);
    let after_mounted = matches!(phase, Phase::Ready | Phase::MountedToPod | Phase::AttachedToNode);
    let attached = !status.target.is_empty();
    let (phase, reason, message) = match (mounted.contains(name), is_wanted(vmi, name)) {
        _ if attached => (Phase::Ready, reasons::volume::READY, "is attached to the guest"),
        (true, true) if before_mounted => {
            (Phase::MountedToPod, reasons::volume::MOUNTED, "is in the launcher's pod")
        }
        (false, false) if after_mounted => {
            (Phase::UnMountedFromPod, reasons::volume::UNMOUNTED, "is no longer in the launcher's pod")
        }
        _ => return,
    };
    status.message = Some(format!("Volume {name} {message}"));
    (status.phase, status.reason) = (Some(phase), Some(reason.to_owned()));
}

/// How far a dump of the guest's memory is.
fn dumped(vmi: &VirtualMachineInstance, status: &mut VolumeStatus, job: Option<&JobReport>, now: Timestamp) {
    let Some(dump) = &mut status.memory_dump_volume else { return };
    let name = &status.name;
    match &status.phase {
        Some(VolumePhase::MountedToPod) => {
            let vmi = vmi.metadata.name.as_deref().unwrap_or_default();
            let time = now.strftime("%Y%m%d-%H%M%S");
            dump.target_file_name = Some(format!("{vmi}-{name}-{time}.memory.dump"));
            status.phase = Some(VolumePhase::MemoryDumpInProgress);
            status.reason = Some(reasons::volume::MOUNTED.to_owned());
            status.message = Some(format!("The guest's memory is written to volume {name}"));
        }
        Some(VolumePhase::MemoryDumpInProgress) => {
            let Some(job) = job.filter(|job| is_of(job, dump.target_file_name.as_deref())) else { return };
            dump.start_timestamp = time(job.start_timestamp.as_deref()).or(dump.start_timestamp.take());
            if job.failed && job.end_timestamp.is_some() {
                dump.end_timestamp = time(job.end_timestamp.as_deref());
                status.phase = Some(VolumePhase::MemoryDumpFailed);
                let why = &job.failure_reason;
                status.message =
                    Some(format!("The guest's memory could not be written to volume {name}: {why}"));
            } else if job.completed {
                dump.end_timestamp = time(job.end_timestamp.as_deref());
                status.phase = Some(VolumePhase::MemoryDumpCompleted);
                status.reason = Some(reasons::volume::READY.to_owned());
                status.message = Some(format!("The guest's memory is on volume {name}"));
            }
        }
        _ => {}
    }
}

/// Whether a job of the launcher is the one that writes this file.
pub fn is_of(job: &JobReport, file: Option<&str>) -> bool {
    let name = job.name.rsplit('/').next().unwrap_or_default();
    file.is_some_and(|file| file == name)
}

/// A time as launchers tell it.
pub fn time(text: Option<&str>) -> Option<Time> {
    text?.parse().ok().map(Time)
}

/// What is made for the guest alone has a size that nobody else tells.
fn sized(vmi: &VirtualMachineInstance, status: &mut VolumeStatus, domain: Option<&Domain>) {
    let running = vmi.status.as_ref().is_some_and(|status| status.phase == Some(VmiPhase::Running));
    let made = in_spec(vmi, &status.name).is_some_and(is_made_image);
    let disk = domain.and_then(|domain| domain.disks.iter().find(|disk| disk.name == status.name));
    if let Some(size) = disk.and_then(|disk| disk.size).filter(|_| made && running) {
        status.size = i64::try_from(size).ok();
    }
}

/// Whether the launcher makes the image itself, from words.
fn is_made_image(volume: &Volume) -> bool {
    volume.cloud_init_no_cloud.is_some()
        || volume.cloud_init_config_drive.is_some()
        || volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.downward_api.is_some()
        || volume.service_account.is_some()
        || volume.sysprep.is_some()
}

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod tests;
