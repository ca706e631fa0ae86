//! Where the bytes of a volume are.

use kubevirt_api::vmi::volumes::Volume;

use super::Conversion;
use crate::domain::disk::{Image, Location};
use crate::facts::VolumeFacts;
use crate::layout::Iso;

/// The image of a volume that a disk shows; nothing, and a note, if it cannot be a disk.
pub(super) fn image(
    c: &mut Conversion<'_>,
    index: usize,
    volume: &Volume,
    facts: &VolumeFacts,
    hotplugged: bool,
) -> Option<Image> {
    let (layout, name) = (c.layout, volume.name.as_str());
    let claim = || match (hotplugged, facts.block) {
        (true, true) => Location::Block(layout.hotplug(name, true)),
        (true, false) => Location::File(layout.hotplug(name, false)),
        (false, true) => Location::Block(layout.claim_block(name)),
        (false, false) => Location::File(layout.claim_file(name)),
    };
    let file = |path: String| Some(Image::raw(Location::File(path)));
    if volume.persistent_volume_claim.is_some() || volume.data_volume.is_some() {
        return Some(Image::raw(claim()));
    }
    if volume.container_disk.is_some() {
        let base = Image {
            format: facts.format.unwrap_or_default(),
            ..Image::raw(Location::File(layout.container_disk(index)))
        };
        if facts.format.is_none() {
            c.unsupported(format!("spec.volumes[{index}]"), "the format of the container disk is not known");
        }
        return Some(over(layout.overlay(name), base));
    }
    if volume.ephemeral.is_some() {
        return Some(over(layout.overlay(name), Image::raw(claim())));
    }
    if volume.empty_disk.is_some() {
        return Some(Image::qcow2(layout.empty_disk(name)));
    }
    if let Some(disk) = &volume.host_disk {
        return file(layout.host_disk(name, &disk.path));
    }
    if volume.cloud_init_no_cloud.is_some() || volume.cloud_init_config_drive.is_some() {
        let config_drive = volume.cloud_init_no_cloud.is_none();
        return file(layout.cloud_init(c.namespace(), c.name(), config_drive));
    }
    if volume.service_account.is_some() {
        return file(layout.service_account());
    }
    if volume.downward_metrics.is_some() {
        return file(layout.downward_metrics_disk());
    }
    let isos = [
        (volume.config_map.is_some(), Iso::ConfigMap),
        (volume.secret.is_some(), Iso::Secret),
        (volume.downward_api.is_some(), Iso::DownwardApi),
        (volume.sysprep.is_some(), Iso::Sysprep),
    ];
    if let Some((_, iso)) = isos.into_iter().find(|(is, _)| *is) {
        return file(layout.iso(iso, name));
    }
    let reason = match (&volume.memory_dump, &volume.container_path) {
        (Some(_), _) => "a volume for memory dumps cannot be a disk",
        (_, Some(_)) => "a path of the container can be shared as a directory only",
        _ => "the volume has no source that can be a disk",
    };
    c.unsupported(format!("spec.volumes[{index}]"), reason);
    None
}

/// A layer for writes over an image that stays as it is.
fn over(path: String, base: Image) -> Image {
    Image { backing: Some(Box::new(base)), ..Image::qcow2(path) }
}
