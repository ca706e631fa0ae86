//! Volumes of a pod, and where the launcher finds them: at the places of [`Layout`].

mod base;
mod claims;
mod config;
pub(super) mod images;
mod state;

use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Volume, VolumeDevice, VolumeMount};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::volumes::Volume as VmiVolume;
use kubevirt_domain::Layout;
use kubevirt_domain::layout::Iso;

use super::error::NoPod;
use super::surroundings::Surroundings;

/// Folder of sockets and mounts of container disks.
pub(super) const CONTAINER_DISKS: &str = "container-disks";
/// Folder of plugged volumes.
pub(super) const HOTPLUG_DISKS: &str = "hotplug-disks";
/// Folder of programs that containers of foreign images run.
pub(super) const BINARIES: &str = "virt-bin-share-dir";
/// Folder of the sockets of file servers.
pub(super) const FILESYSTEMS: &str = "virtiofs-containers";

/// Volumes of a pod, and what the container that runs the machine sees of them.
#[derive(Default)]
pub(super) struct Volumes {
    /// The pod's volumes.
    pub volumes: Vec<Volume>,
    /// Folders.
    pub mounts: Vec<VolumeMount>,
    /// Block devices.
    pub devices: Vec<VolumeDevice>,
}

/// The volumes of a VMI's pod.
pub(super) fn of(vmi: &VirtualMachineInstance, around: &Surroundings<'_>) -> Result<Volumes, NoPod> {
    let (mut all, layout) = (Volumes::default(), Layout::default());
    base::add(vmi, around, &layout, &mut all);
    config::add(vmi, &layout, &mut all);
    claims::add(vmi, around, &layout, &mut all)?;
    state::add(vmi, around, &layout, &mut all)?;
    if around.image_volumes {
        images::add(vmi, around, &layout, &mut all);
    }
    Ok(all)
}

impl Volumes {
    /// An empty folder at this place.
    fn folder(&mut self, name: &str, path: &str) {
        self.volumes.push(folder(name));
        self.mounts.push(mount(name, path));
    }
}

/// An empty folder.
pub(super) fn folder(name: &str) -> Volume {
    Volume { name: name.to_owned(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() }
}

/// A volume at a place.
pub(super) fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount { name: name.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

/// A volume at a place where it cannot be changed.
pub(super) fn read_only(name: &str, path: &str) -> VolumeMount {
    VolumeMount { read_only: Some(true), ..mount(name, path) }
}

/// A volume at a place where what the node mounts later is seen.
pub(super) fn followed(name: &str, path: &str) -> VolumeMount {
    VolumeMount { mount_propagation: Some("HostToContainer".to_owned()), ..mount(name, path) }
}

/// A part of a volume at a place.
fn part(name: &str, part: &str, path: &str) -> VolumeMount {
    VolumeMount { sub_path: Some(part.to_owned()), ..mount(name, path) }
}

/// Where a file server finds what it shares of a volume.
pub(super) fn shared_source(volume: &VmiVolume, layout: &Layout) -> String {
    let name = &volume.name;
    if volume.config_map.is_some() {
        layout.iso_source(Iso::ConfigMap, name)
    } else if volume.secret.is_some() {
        layout.iso_source(Iso::Secret, name)
    } else if volume.downward_api.is_some() {
        layout.iso_source(Iso::DownwardApi, name)
    } else if volume.service_account.is_some() {
        format!("{}/", layout.service_account)
    } else {
        format!("/{name}")
    }
}
