//! Images of claims and host disks, where only root can make them or hand them over to the launcher.

use std::io;

use kubevirt_admission::ClusterConfig;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::volumes::{HostDiskType, Volume};
use kubevirt_disk_image::{Allocation, Allowance, Fit, create_raw, fit, free_space};
use kubevirt_domain::layout::Layout;
use kubevirt_domain::sizes::{self, SizeError};
use kubevirt_host::inside::{Inside, Kind};

use super::{is_block, status};
use crate::isolation::Place;
use crate::permissions::{self, Label};
use crate::prepare::{PrepareError, failed};

/// An image that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Image {
    volume: String,
    /// Folder in the launcher's container.
    folder: String,
    name: String,
    /// Size to make it with if it is missing; none if that is not for us to do.
    size: Option<u64>,
    /// Other machines use it too.
    shared: bool,
    /// It is the user's own, on storage that may know no owners: what cannot be done is left to the launcher.
    lenient: bool,
}

/// How images are made.
#[derive(Clone, Copy)]
struct Terms<'a> {
    allowance: Allowance,
    label: &'a Label,
    /// Who is to use them.
    user: u32,
}

/// Makes images that are missing and hands all over to the launcher. What the user should hear of is returned.
pub(crate) fn make(
    vmi: &VirtualMachineInstance,
    place: &Place,
    config: &ClusterConfig,
    label: &Label,
) -> Result<Vec<String>, PrepareError> {
    let terms = Terms { allowance: allowance(config), label, user: permissions::user(vmi) };
    let mut notes = Vec::new();
    for image in wanted(vmi)? {
        let error = |reason: String| failed(format_args!("volume {:?}: {reason}", image.volume));
        match one(&image, place, terms) {
            Ok(note) => notes.extend(note),
            Err(problem) if image.lenient && is_refusal(&problem) => {}
            Err(problem) => return Err(error(problem.to_string())),
        }
    }
    Ok(notes)
}

/// Storage that trusts no root, such as NFS, or that cannot be written.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn allowance(config: &ClusterConfig) -> Allowance {
    let developer = config.configuration().developer_configuration.clone().unwrap_or_default();
    let reserve = developer.minimum_reserve_pvc_bytes.and_then(|bytes| u64::try_from(bytes).ok());
    let percent = developer.pvc_tolerate_less_space_up_to_percent;
    Allowance {
        reserve: reserve.unwrap_or(0),
        tolerated_percent: percent.and_then(|percent| u8::try_from(percent).ok()).unwrap_or(0).min(100),
    }
}

fn wanted(vmi: &VirtualMachineInstance) -> Result<Vec<Image>, PrepareError> {
    let images = vmi.spec.volumes.iter().flatten().map(|volume| {
        wanted_one(vmi, volume).map_err(|reason| failed(format_args!("volume {:?}: {reason}", volume.name)))
    });
    images.filter_map(Result::transpose).collect()
}

fn wanted_one(vmi: &VirtualMachineInstance, volume: &Volume) -> Result<Option<Image>, String> {
    let layout = Layout::default();
    let words = |error: SizeError| error.to_string();
    let split = |path: String| {
        let (folder, name) = path.rsplit_once('/').unwrap_or_default();
        (folder.to_owned(), name.to_owned())
    };
    if let Some(disk) = &volume.host_disk {
        let (folder, name) = split(layout.host_disk(&volume.name, &disk.path));
        let create = disk.type_ == HostDiskType::DiskOrCreate;
        let size = create.then(|| sizes::of_host_disk(disk.capacity.as_ref())).transpose().map_err(words)?;
        let (volume, shared) = (volume.name.clone(), disk.shared == Some(true));
        return Ok(Some(Image { volume, folder, name, size, shared, lenient: false }));
    }
    let claim = volume.persistent_volume_claim.as_ref();
    if claim.is_none() && volume.data_volume.is_none()
        || claim.is_some_and(|claim| claim.read_only == Some(true))
    {
        return Ok(None);
    }
    let mut folders = vmi.spec.domain.devices.filesystems.iter().flatten();
    let Some(status) = status(vmi, &volume.name) else { return Ok(None) };
    let Some(info) = &status.persistent_volume_claim_info else { return Ok(None) };
    if is_block(status) || status.hotplug_volume.is_some() || folders.any(|folder| folder.name == volume.name)
    {
        return Ok(None);
    }
    let (folder, name) = split(layout.claim_file(&volume.name));
    let shared = info.access_modes.iter().flatten().any(|mode| mode == "ReadWriteMany");
    let size = Some(sizes::of_claim(info).map_err(words)?);
    Ok(Some(Image { volume: volume.name.clone(), folder, name, size, shared, lenient: true }))
}

fn one(image: &Image, place: &Place, terms: Terms<'_>) -> io::Result<Option<String>> {
    let folder = place.root().in_root(&image.folder)?;
    // Only what the kubelet mounted cannot have been put there by the launcher.
    if folder.kind()? != Kind::Folder || !folder.is_mount_point()? {
        let problem = format!("{} should have been mounted into the pod and is not", image.folder);
        return Err(io::Error::new(io::ErrorKind::NotFound, problem));
    }
    // A link may lead to another file of the same volume.
    match folder.in_root(&image.name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        there => {
            let there = there?;
            if there.kind()? != Kind::File {
                return Err(io::Error::other(format!("{} is no regular file", there.shown().display())));
            }
            return there.give_to(terms.user, terms.user).map(|_| None);
        }
    }
    let Some(wanted) = image.size else {
        let problem = format!("there is no {}, and hostDisk.type is not DiskOrCreate", image.name);
        return Err(io::Error::new(io::ErrorKind::NotFound, problem));
    };
    create(image, &folder, wanted, terms)
}

fn create(
    image: &Image,
    folder: &Inside,
    wanted: u64,
    Terms { allowance, label, user }: Terms<'_>,
) -> io::Result<Option<String>> {
    let path = folder.path();
    let error = |error: kubevirt_disk_image::ImageError| {
        let text = error.to_string().replace(&*path.to_string_lossy(), &folder.shown().to_string_lossy());
        let kind = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
        io::Error::new(kind.map_or(io::ErrorKind::Other, io::Error::kind), text)
    };
    let percent = allowance.tolerated_percent;
    let (size, note) = match fit(wanted, free_space(&path).map_err(error)?, allowance) {
        Fit::Whole(size) => (size, None),
        Fit::Smaller(size) => {
            let volume = &image.volume;
            let note = format!(
                "volume {volume:?} has {size} bytes instead of {wanted}, which is within the tolerated {percent}%"
            );
            (size, Some(note))
        }
        Fit::TooSmall { available } => {
            return Err(io::Error::other(format!(
                "there is no space for {}: it wants {wanted} bytes and {available} are available, which is more \
                 than the tolerated {percent}% less",
                image.name
            )));
        }
    };
    create_raw(&path.join(&image.name), size, Allocation::Sparse).map_err(error)?;
    let made = folder.beneath(&image.name)?;
    made.give_to(user, user)?;
    label.put_on(&made, image.shared)?;
    Ok(note)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vmi(volumes: Value, statuses: Value) -> VirtualMachineInstance {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"volumes": volumes, "domain": {"devices": {"filesystems": [{"name": "shared", "virtiofs": {}}]}}},
            "status": {"volumeStatus": statuses},
        }))
        .unwrap()
    }

    #[test]
    fn knows_what_must_be_made() {
        let claim = |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": "c"}});
        let info = |mode: &str, access: &str| json!({"volumeMode": mode, "accessModes": [access], "capacity": {"storage": "2Mi"}});
        let status =
            |name: &str, info: Value| json!({"name": name, "target": "", "persistentVolumeClaimInfo": info});
        let disk = |kind: &str| json!({"name": "host", "hostDisk": {"path": "/data/x.img", "type": kind, "capacity": "1500"}});
        let image = |volume: &str, name: &str, size, shared, lenient| Image {
            volume: volume.into(),
            folder: format!("/var/run/kubevirt-private/vmi-disks/{volume}"),
            name: name.into(),
            size,
            shared,
            lenient,
        };
        for (volume, status, expected) in [
            (
                claim("a"),
                json!([status("a", info("Filesystem", "ReadWriteOnce"))]),
                Some(image("a", "disk.img", Some(2 << 20), false, true)),
            ),
            (
                claim("a"),
                json!([status("a", info("Filesystem", "ReadWriteMany"))]),
                Some(image("a", "disk.img", Some(2 << 20), true, true)),
            ),
            (claim("a"), json!([status("a", info("Block", "ReadWriteOnce"))]), None),
            (claim("shared"), json!([status("shared", info("Filesystem", "ReadWriteMany"))]), None),
            (claim("a"), json!([]), None),
            (
                claim("a"),
                json!([{"name": "a", "target": "", "hotplugVolume": {},
                "persistentVolumeClaimInfo": info("Filesystem", "ReadWriteOnce")}]),
                None,
            ),
            (disk("DiskOrCreate"), json!([]), Some(image("host", "x.img", Some(1500), false, false))),
            (disk("Disk"), json!([]), Some(image("host", "x.img", None, false, false))),
            (json!({"name": "e", "emptyDisk": {"capacity": "1Gi"}}), json!([]), None),
        ] {
            let vmi = vmi(json!([volume]), status);
            assert_eq!(wanted(&vmi).unwrap(), Vec::from_iter(expected), "{volume}");
        }
    }
}
