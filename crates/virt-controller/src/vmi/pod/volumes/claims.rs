//! Claims and folders of the node that disks are on.

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, PersistentVolumeClaimVolumeSource, Volume, VolumeDevice,
};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::volumes::{HostDisk, HostDiskType, Volume as VmiVolume};
use kubevirt_domain::Layout;

use super::super::error::NoPod;
use super::super::instance;
use super::super::surroundings::Surroundings;
use super::{Volumes, mount};

/// Adds them, except what comes and goes while the machine runs.
pub(super) fn add(
    vmi: &VirtualMachineInstance,
    around: &Surroundings<'_>,
    layout: &Layout,
    all: &mut Volumes,
) -> Result<(), NoPod> {
    let plugged = instance::plugged(vmi);
    for volume in instance::volumes(vmi).filter(|volume| !plugged.contains(volume.name.as_str())) {
        if let Some(source) = claim(volume) {
            let name = &source.claim_name;
            let Some(known) = around.claims.get(name) else {
                return Err(NoPod::MissingClaim(name.clone()));
            };
            if known.block {
                let device_path = layout.claim_block(&volume.name);
                all.devices.push(VolumeDevice { name: volume.name.clone(), device_path });
            } else {
                all.mounts.push(mount(&volume.name, &folder_of(&layout.claim_file(&volume.name))));
            }
            all.volumes.push(Volume {
                name: volume.name.clone(),
                persistent_volume_claim: Some(source),
                ..Volume::default()
            });
        }
        if let Some(disk) = &volume.host_disk {
            all.volumes.push(host_folder(&volume.name, disk));
            all.mounts.push(mount(&volume.name, &folder_of(&layout.host_disk(&volume.name, &disk.path))));
        }
    }
    Ok(())
}

fn claim(volume: &VmiVolume) -> Option<PersistentVolumeClaimVolumeSource> {
    let source =
        |name: &str, read_only| PersistentVolumeClaimVolumeSource { claim_name: name.to_owned(), read_only };
    if let Some(claim) = &volume.persistent_volume_claim {
        return Some(source(&claim.claim_name, claim.read_only));
    }
    if let Some(data) = &volume.data_volume {
        return Some(source(&data.name, None));
    }
    volume.ephemeral.as_ref()?.persistent_volume_claim.clone()
}

fn host_folder(name: &str, disk: &HostDisk) -> Volume {
    let kind = match disk.type_ {
        HostDiskType::Disk => "Directory",
        HostDiskType::DiskOrCreate => "DirectoryOrCreate",
        HostDiskType::Other(_) => "",
    };
    let path = folder_of(&disk.path);
    Volume {
        name: name.to_owned(),
        host_path: Some(HostPathVolumeSource { path, type_: Some(kind.to_owned()) }),
        ..Volume::default()
    }
}

/// The folder of a file.
fn folder_of(path: &str) -> String {
    match path.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => ".".to_owned(),
    }
}
