//! Which disks must be copied, since only this pod has them.

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiMigrationMethod;
use kubevirt_api::vmi::volumes::Volume;
use kubevirt_domain::Domain;
use kubevirt_domain::domain::disk::{Disk, DiskKind};
use kubevirt_launcher_rpc::migration::MigrationOptions;

use crate::error::CommandError;

/// The disks to copy, or why the machine cannot be moved with its disks.
pub(super) fn to_copy(
    domain: &Domain,
    vmi: &VirtualMachineInstance,
    options: &MigrationOptions,
) -> Result<Vec<String>, CommandError> {
    let is_local = |disk: &&Disk| is_written(disk) && !is_shared(vmi, &disk.name);
    let local: Vec<String> = domain.disks.iter().filter(is_local).map(|disk| disk.name.clone()).collect();
    let method = vmi.status.as_ref().and_then(|status| status.migration_method.as_ref());
    if method == Some(&VmiMigrationMethod::BlockMigration) || local.is_empty() {
        return Ok(local);
    }
    if options.unsafe_migration {
        return Ok(Vec::new());
    }
    Err(CommandError::CannotMigrate(format!(
        "the content of {} would be lost: it is not shared between nodes, and status.migrationMethod is not \
         BlockMigration",
        local.join(", ")
    )))
}

/// Whether the guest can write to it. What it cannot write to, the target makes anew.
fn is_written(disk: &Disk) -> bool {
    let is_cdrom = matches!(disk.kind, DiskKind::Cdrom { .. });
    disk.image.is_some() && !disk.read_only && !is_cdrom
}

/// Whether the target reaches the very same bytes.
fn is_shared(vmi: &VirtualMachineInstance, name: &str) -> bool {
    let status = vmi.status.as_ref();
    let moves = status.and_then(|status| status.migrated_volumes.as_deref()).unwrap_or_default();
    if moves.iter().any(|volume| volume.volume_name == name) {
        return false;
    }
    let mut volumes = vmi.spec.volumes.iter().flatten();
    volumes.find(|volume| volume.name == name).is_some_and(is_shared_source)
}

fn is_shared_source(volume: &Volume) -> bool {
    let claimed = volume.persistent_volume_claim.is_some() || volume.data_volume.is_some();
    claimed || volume.host_disk.as_ref().is_some_and(|disk| disk.shared == Some(true))
}

#[cfg(test)]
mod tests {
    use kubevirt_domain::domain::Architecture;
    use kubevirt_domain::domain::disk::ImageFormat;
    use kubevirt_domain::facts::VolumeFacts;
    use kubevirt_domain::{HostFacts, Layout, QemuFacts, convert};
    use serde_json::json;

    use super::*;

    fn machine(method: &str) -> (Domain, VirtualMachineInstance) {
        let disk = |name: &str| json!({ "name": name, "disk": { "bus": "virtio" } });
        let vmi = json!({
            "metadata": { "name": "web", "namespace": "default", "uid": "ad00" },
            "spec": {
                "domain": {
                    "memory": { "guest": "64Mi" },
                    "devices": { "disks": [
                        disk("claim"), disk("moved"), disk("scratch"), disk("image"), disk("shared"),
                        { "name": "seed", "cdrom": { "bus": "sata" } },
                        { "name": "fixed", "disk": { "bus": "virtio", "readonly": true } },
                    ] },
                },
                "volumes": [
                    { "name": "claim", "persistentVolumeClaim": { "claimName": "a" } },
                    { "name": "moved", "persistentVolumeClaim": { "claimName": "b" } },
                    { "name": "scratch", "emptyDisk": { "capacity": "1Gi" } },
                    { "name": "image", "containerDisk": { "image": "c" } },
                    { "name": "shared", "hostDisk": { "path": "/d/disk.img", "type": "Disk", "shared": true } },
                    { "name": "seed", "cloudInitNoCloud": { "userData": "x" } },
                    { "name": "fixed", "emptyDisk": { "capacity": "1Gi" } },
                ],
            },
            "status": { "migrationMethod": method, "migratedVolumes": [{ "volumeName": "moved" }] },
        });
        let vmi: VirtualMachineInstance = serde_json::from_value(vmi).unwrap();
        let image = VolumeFacts { format: Some(ImageFormat::Qcow2), ..VolumeFacts::default() };
        let host = HostFacts {
            architecture: Architecture::Amd64,
            allow_emulation: true,
            volumes: [("image".to_owned(), image)].into(),
            ..HostFacts::default()
        };
        let domain = convert(&vmi, &host, &QemuFacts::default(), &Layout::default()).unwrap();
        (domain, vmi)
    }

    #[test]
    fn what_only_this_pod_has_is_copied() {
        let (domain, vmi) = machine("BlockMigration");
        let copied = to_copy(&domain, &vmi, &MigrationOptions::default()).unwrap();
        assert_eq!(copied, ["moved", "scratch", "image"]);
    }

    #[test]
    fn nothing_is_lost_unless_asked_for() {
        let (domain, vmi) = machine("LiveMigration");
        let error = to_copy(&domain, &vmi, &MigrationOptions::default()).unwrap_err().to_string();
        assert!(error.contains("moved, scratch, image"), "{error}");
        let careless = MigrationOptions { unsafe_migration: true, ..MigrationOptions::default() };
        assert_eq!(to_copy(&domain, &vmi, &careless).unwrap(), Vec::<String>::new());
    }
}
