//! Folders that every launcher needs, and those that a device needs.

use k8s_openapi::api::core::v1::{
    DownwardAPIVolumeFile, DownwardAPIVolumeSource, ObjectFieldSelector, Volume,
};
use kubevirt_api::names::annotations;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::Layout;

use super::super::surroundings::Surroundings;
use super::super::{command, networks};
use super::{BINARIES, CONTAINER_DISKS, FILESYSTEMS, HOTPLUG_DISKS, Volumes, folder, followed, mount};

/// Where the guest's side reads which devices networks are.
const NETWORK_INFO: (&str, &str, &str) = ("network-info-annotation", "/etc/podinfo", "network-info");

/// Adds them.
pub(super) fn add(
    vmi: &VirtualMachineInstance,
    around: &Surroundings<'_>,
    layout: &Layout,
    all: &mut Volumes,
) {
    all.volumes.extend(["private", "public", "sockets", BINARIES, "libvirt-runtime"].map(folder));
    all.mounts.push(mount("private", &layout.private));
    all.mounts.push(mount("public", command::SHARED));
    all.folder("ephemeral-disks", &layout.ephemeral);
    // Ours is not used; hooks and tools of others look for it.
    all.mounts.push(mount("libvirt-runtime", "/var/run/libvirt"));
    all.mounts.push(mount("sockets", &format!("{}/sockets", command::SHARED)));
    let devices = &vmi.spec.domain.devices;
    if !around.image_volumes {
        all.volumes.push(folder(CONTAINER_DISKS));
        all.mounts.push(followed(CONTAINER_DISKS, &layout.container_disks));
    }
    if devices.disable_hotplug != Some(true) {
        all.volumes.push(folder(HOTPLUG_DISKS));
        all.mounts.push(followed(HOTPLUG_DISKS, &layout.hotplug_disks));
    }
    if devices.filesystems.iter().flatten().next().is_some() {
        all.folder(FILESYSTEMS, &layout.filesystems);
    }
    if networks::needs_device_info(vmi, around.config) {
        all.volumes.push(network_info());
        all.mounts.push(mount(NETWORK_INFO.0, NETWORK_INFO.1));
    }
}

/// An annotation of the pod as a file, which follows it.
fn network_info() -> Volume {
    let field = ObjectFieldSelector {
        api_version: Some("v1".to_owned()),
        field_path: format!("metadata.annotations['{}']", annotations::NETWORK_INFO),
    };
    let file = DownwardAPIVolumeFile {
        path: NETWORK_INFO.2.to_owned(),
        field_ref: Some(field),
        ..DownwardAPIVolumeFile::default()
    };
    Volume {
        name: NETWORK_INFO.0.to_owned(),
        downward_api: Some(DownwardAPIVolumeSource {
            items: Some(vec![file]),
            ..DownwardAPIVolumeSource::default()
        }),
        ..Volume::default()
    }
}
