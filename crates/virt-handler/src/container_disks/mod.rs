//! Disks and kernels that come in container images.
//!
//! Where the cluster mounts images itself, the launcher finds them in its own folders. Elsewhere each image runs as a
//! container of the pod, in which `container-disk` listens on a socket: behind it is the image's root folder.

mod crc32;
mod image;
mod waiting;

use std::io;
use std::time::Duration;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::layout::Layout;
use kubevirt_host::inside::{Inside, Kind};

use crate::isolation::{Place, isolated};
use crate::prepare::{Ledger, Mounted, PrepareError, failed};
use crate::volumes::bind::{self, Source};
use crate::volumes::{CONTAINER_DISKS, status};

/// Folder for kernels among the container disks.
const KERNELS: &str = "kernel-boot";
/// How long to wait for containers that start right after the launcher's.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checksums of what comes in container images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checksums {
    /// Of container disks, by the name of the volume.
    pub disks: Vec<(String, u32)>,
    /// Of the kernel.
    pub kernel: Option<u32>,
    /// Of the initial RAM disk.
    pub initrd: Option<u32>,
}

/// A file that comes in a container image.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    what: What,
    /// Where it is mounted.
    target: Mounted,
    /// Where the launcher finds it.
    seen_at: String,
    /// The socket of the image's container.
    socket: String,
    /// Where the launcher has the whole image, if the cluster mounts images.
    image: String,
    /// Path of the file in the image; if none, the only file in `/disk`.
    file: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Disk(String),
    Kernel,
    Initrd,
}

impl What {
    fn name(&self) -> &str {
        match self {
            Self::Disk(volume) => volume,
            Self::Kernel | Self::Initrd => "kernelBoot",
        }
    }
}

/// Mounts all that comes in container images, or finds it where the cluster mounted it.
pub(crate) fn mount(
    vmi: &VirtualMachineInstance,
    place: &Place,
    ledger: &mut Ledger,
) -> Result<(), PrepareError> {
    let mut in_containers = Vec::new();
    for wanted in wanted(vmi) {
        match whole_image(place, &wanted) {
            Some(image) => image::find(&image, wanted.file.as_deref())
                .and_then(|file| regular(&file))
                .map_err(|error| wrong(&wanted, &error))?,
            None => in_containers.push(wanted),
        }
    }
    if in_containers.is_empty() {
        return Ok(());
    }
    let error = |error: io::Error| failed(format_args!("container disks have no folder in the pod: {error}"));
    let folder = place.empty_dir(CONTAINER_DISKS).map_err(error)?;
    let sockets: Vec<_> = in_containers
        .iter()
        .filter(|wanted| !is_there(&folder, &wanted.target))
        .map(|wanted| wanted.socket.as_str())
        .collect();
    waiting::until_there(&folder, &sockets, PATIENCE).map_err(error)?;
    for wanted in &in_containers {
        let source = || source(&folder, wanted);
        bind::bind(place, ledger, &wanted.target, &wanted.seen_at, source)?;
    }
    Ok(())
}

fn is_there(folder: &Inside, target: &Mounted) -> bool {
    let folder = folder.beneath(target.folder.as_deref().unwrap_or("."));
    folder.and_then(|folder| bind::is_mounted(&folder, &target.name)).unwrap_or(false)
}

/// The whole image in the launcher's folders, if the cluster put it there.
fn whole_image(place: &Place, wanted: &Wanted) -> Option<Inside> {
    let image = place.root().in_root(&wanted.image).ok()?;
    image.is_mount_point().unwrap_or(false).then_some(image)
}

/// The file in the root folder of the process that listens for the image.
fn source(folder: &Inside, wanted: &Wanted) -> Result<Source, PrepareError> {
    let not_yet = |error: io::Error| {
        let name = wanted.what.name();
        PrepareError::NotYet(format!(
            "the container with the image of volume {name:?} is not there yet: {error}"
        ))
    };
    let socket = folder.beneath(&wanted.socket).map_err(not_yet)?;
    let process = isolated(&socket).map_err(not_yet)?;
    let (root, namespace) = (process.root().map_err(not_yet)?, process.mounts().map_err(not_yet)?);
    let found = image::find(&root, wanted.file.as_deref());
    let file = found.map_err(|error| wrong(wanted, &error))?;
    regular(&file).map_err(|error| wrong(wanted, &error))?;
    Ok(Source { file, namespace, read_only: true })
}

fn regular(file: &Inside) -> io::Result<()> {
    match file.kind()? {
        Kind::File => Ok(()),
        _ => Err(io::Error::other(format!("{} is no regular file", file.shown().display()))),
    }
}

fn wrong(wanted: &Wanted, error: &io::Error) -> PrepareError {
    failed(format_args!("the image of volume {:?} does not have its file: {error}", wanted.what.name()))
}

/// What comes in container images.
fn wanted(vmi: &VirtualMachineInstance) -> Vec<Wanted> {
    let layout = Layout::default();
    let given = |path: &Option<String>| path.clone().filter(|path| !path.is_empty());
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let target = |folder: Option<&str>, name: String| Mounted {
        volume: CONTAINER_DISKS.to_owned(),
        folder: folder.map(str::to_owned),
        name,
    };
    let volumes = vmi.spec.volumes.iter().flatten().enumerate();
    let disks = volumes.filter_map(|(index, volume)| {
        let disk = volume.container_disk.as_ref()?;
        let seen_at = layout.container_disk(index);
        Some(Wanted {
            what: What::Disk(volume.name.clone()),
            target: target(None, file_name(&seen_at)),
            seen_at,
            socket: format!("disk_{index}.sock"),
            image: layout.image_volume(index),
            file: given(&disk.path),
        })
    });
    let boot = vmi.spec.domain.firmware.as_ref().and_then(|firmware| firmware.kernel_boot.as_ref());
    let container = boot.and_then(|boot| boot.container.as_ref());
    let kernels = container.into_iter().flat_map(|container| {
        let files = [(What::Kernel, &container.kernel_path), (What::Initrd, &container.initrd_path)];
        files.into_iter().filter_map(|(what, path)| {
            let path = given(path)?;
            let seen_at = layout.kernel_artifact(&path);
            Some(Wanted {
                what,
                target: target(Some(KERNELS), file_name(&seen_at)),
                seen_at,
                socket: format!("{KERNELS}.sock"),
                image: layout.kernel_image.clone(),
                file: Some(path),
            })
        })
    });
    disks.chain(kernels).collect()
}

/// The checksums that the status does not have yet.
pub(crate) fn checksums(
    vmi: &VirtualMachineInstance,
    place: &Place,
) -> Result<Option<Checksums>, PrepareError> {
    let all = wanted(vmi);
    if all.iter().all(|wanted| is_known(vmi, &wanted.what))
        || all.iter().any(|wanted| whole_image(place, wanted).is_some())
    {
        return Ok(None);
    }
    let mut sums = Checksums::default();
    for wanted in all {
        let file = place.root().in_root(&wanted.seen_at).map_err(|error| wrong(&wanted, &error))?;
        let sum = crc32::of(&file).map_err(|error| wrong(&wanted, &error))?;
        match wanted.what {
            What::Disk(volume) => sums.disks.push((volume, sum)),
            What::Kernel => sums.kernel = Some(sum),
            What::Initrd => sums.initrd = Some(sum),
        }
    }
    Ok(Some(sums))
}

fn is_known(vmi: &VirtualMachineInstance, what: &What) -> bool {
    let boot = vmi.status.as_ref().and_then(|status| status.kernel_boot_status.as_ref());
    let sum = match what {
        What::Disk(volume) => {
            status(vmi, volume).and_then(|status| status.container_disk_volume.as_ref()?.checksum)
        }
        What::Kernel => boot.and_then(|boot| boot.kernel_info.as_ref()?.checksum),
        What::Initrd => boot.and_then(|boot| boot.initrd_info.as_ref()?.checksum),
    };
    sum.is_some_and(|sum| sum != 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_follow_from_the_volumes() {
        let vmi: VirtualMachineInstance = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {
                "volumes": [
                    {"name": "scratch", "emptyDisk": {"capacity": "1Gi"}},
                    {"name": "root", "containerDisk": {"image": "x"}},
                    {"name": "data", "containerDisk": {"image": "y", "path": "/images/d.qcow2"}},
                ],
                "domain": {"devices": {}, "firmware": {"kernelBoot": {"container": {
                    "image": "k", "kernelPath": "/boot/vmlinuz", "initrdPath": ""}}}},
            },
        }))
        .unwrap();
        let all = wanted(&vmi);
        let place = |wanted: &Wanted| {
            (wanted.seen_at.clone(), wanted.socket.clone(), wanted.file.clone().unwrap_or_default())
        };
        let expected = [
            ("/var/run/kubevirt/container-disks/disk_1.img", "disk_1.sock", ""),
            ("/var/run/kubevirt/container-disks/disk_2.img", "disk_2.sock", "/images/d.qcow2"),
            ("/var/run/kubevirt/container-disks/kernel-boot/vmlinuz", "kernel-boot.sock", "/boot/vmlinuz"),
        ];
        let expected: Vec<_> =
            expected.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect();
        assert_eq!(all.iter().map(place).collect::<Vec<_>>(), expected);
        assert_eq!(all[2].target.folder.as_deref(), Some("kernel-boot"));
        assert!(!is_known(&vmi, &all[0].what));
    }
}
