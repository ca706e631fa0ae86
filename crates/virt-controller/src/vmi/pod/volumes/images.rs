//! Container images with disks and kernels in them.

use k8s_openapi::api::core::v1::{ImageVolumeSource, Volume};
use kubevirt_api::names::annotations;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Layout;

use super::super::instance;
use super::super::surroundings::Surroundings;
use super::{Volumes, read_only};

/// The volume with the image of the machine's kernel.
const KERNEL: &str = "kernel-boot-volume";

/// The volume with the launcher's own image, for a program in it.
pub(in super::super) const LAUNCHER_VOLUME: &str = "launcher-volume";

/// Where that is mounted in containers of foreign images.
pub(in super::super) const LAUNCHER_MOUNT: &str = "/container-disk-binary";

/// An image that a disk or a kernel is in.
pub(in super::super) struct Image<'a> {
    /// The volume's name.
    pub volume: &'a str,
    /// The volume's place in the VMI; none for a kernel.
    pub index: Option<usize>,
    /// The image, by its digest where that must stay the same.
    pub reference: &'a str,
    /// When it is pulled.
    pub pull_policy: Option<&'a str>,
    /// The user wants it by its name, such as an artifact that no container can be made of.
    pub by_name: bool,
}

impl Image<'_> {
    /// Whether a container has to tell which image the name stands for.
    pub(in super::super) fn needs_digest(&self) -> bool {
        !self.by_name && !self.reference.contains("@sha256:")
    }

    /// Name of its container.
    pub(in super::super) fn container(&self) -> String {
        format!("volume{}", self.volume)
    }

    /// Name of its socket and of its disk.
    pub(in super::super) fn place(&self) -> String {
        self.index.map_or_else(|| "kernel-boot".to_owned(), |index| format!("disk_{index}"))
    }
}

/// The images that a VMI needs.
pub(in super::super) fn of<'a>(
    vmi: &'a VirtualMachineInstance,
    around: &'a Surroundings<'_>,
) -> Vec<Image<'a>> {
    let reference =
        |volume: &str, own: &'a str| around.images.get(volume).map_or(own, |pinned| pinned.as_str());
    let by_name = instance::annotation(vmi, annotations::SKIP_DIGEST_RESOLUTION) == Some("true");
    let disks = instance::volumes(vmi).enumerate().filter_map(|(index, volume)| {
        let disk = volume.container_disk.as_ref()?;
        Some(Image {
            volume: &volume.name,
            index: Some(index),
            reference: reference(&volume.name, &disk.image),
            pull_policy: policy(disk.image_pull_policy.as_ref()),
            by_name,
        })
    });
    let kernel = instance::kernel_container(vmi).map(|kernel| Image {
        volume: KERNEL,
        index: None,
        reference: reference(KERNEL, &kernel.image),
        pull_policy: policy(kernel.image_pull_policy.as_ref()),
        by_name,
    });
    disks.chain(kernel).collect()
}

fn policy(policy: Option<&String>) -> Option<&str> {
    policy.map(String::as_str).filter(|policy| !policy.is_empty())
}

/// The folder in which containers with disks listen, as they see it.
pub(in super::super) fn sockets(vmi: &VirtualMachineInstance) -> String {
    let uid = vmi.metadata.uid.as_deref().unwrap_or_default();
    format!("{}/container-disk-data/{uid}", Layout::default().ephemeral)
}

/// Adds them as volumes, which the cluster mounts by itself.
pub(super) fn add(
    vmi: &VirtualMachineInstance,
    around: &Surroundings<'_>,
    layout: &Layout,
    all: &mut Volumes,
) {
    let images = of(vmi, around);
    for image in &images {
        all.volumes.push(volume(image.volume, image.reference, image.pull_policy));
        let path =
            image.index.map_or_else(|| layout.kernel_image.clone(), |index| layout.image_volume(index));
        all.mounts.push(read_only(image.volume, &path));
    }
    if images.iter().any(Image::needs_digest) {
        let policy = around.config.configuration().image_pull_policy.as_deref();
        all.volumes.push(volume(LAUNCHER_VOLUME, around.launcher_image, policy));
    }
}

fn volume(name: &str, reference: &str, pull_policy: Option<&str>) -> Volume {
    let source = ImageVolumeSource {
        reference: Some(reference.to_owned()),
        pull_policy: pull_policy.map(str::to_owned),
    };
    Volume { name: name.to_owned(), image: Some(source), ..Volume::default() }
}
