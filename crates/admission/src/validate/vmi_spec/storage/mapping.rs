//! Which disk or file system belongs to which volume.

use std::collections::{HashMap, HashSet};

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::disks::{Disk, DiskBus};
use kubevirt_api::vmi::volumes::Volume;

use super::{container_path, disks_of, volumes_of};
use crate::{Context, Gate, Path, Problems};

/// What is wrong with the disks of a specification, given its volumes.
pub(super) fn check_disks(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let volumes: HashMap<&str, &Volume> = volumes_of(spec).iter().map(|v| (v.name.as_str(), v)).collect();
    let disks = path.at("domain.devices.disks");
    for (index, disk) in disks_of(spec).iter().enumerate() {
        let at = disks.index(index);
        match volumes.get(disk.name.as_str()) {
            Some(volume) => check_disk_of(&at, disk, volume, problems),
            None if disk.cdrom.is_none() => {
                let message = format!("{at}.Name '{}' not found: there is no volume of that name", disk.name);
                problems.invalid(&at.at("name"), message);
            }
            None if !cx.config.enabled(Gate::DeclarativeHotplugVolumes) => {
                let gate = Gate::DeclarativeHotplugVolumes.name();
                let message = format!("a CD-ROM without a volume needs the feature gate {gate}");
                problems.invalid(&at.at("name"), message);
            }
            None => {}
        }
    }
}

fn check_disk_of(at: &Path<'_>, disk: &Disk, volume: &Volume, problems: &mut Problems) {
    if disk.lun.is_some() && volume.persistent_volume_claim.is_none() && volume.data_volume.is_none() {
        problems
            .invalid(&at.at("lun"), "a LUN needs a volume that is a persistentVolumeClaim or a dataVolume");
    }
    if volume.downward_metrics.is_none() {
        return;
    }
    let Some(target) = &disk.disk else {
        problems.required(&at.at("disk"), "the volume holds downward metrics, which need a disk");
        return;
    };
    if let Some(bus) = target.bus.as_ref().filter(|bus| **bus != DiskBus::Virtio && !bus.is_empty()) {
        let message = format!("downward metrics need the bus virtio, not {bus}");
        problems.invalid(&at.at("disk.bus"), message);
    }
}

/// What is wrong with the volumes of a new instance, given its disks and file systems: each is used by one.
///
/// Templates of instances may hold volumes that wait for their disk, so this is for instances only.
pub fn check_volumes(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let disks: HashSet<&str> = disks_of(spec).iter().map(|disk| disk.name.as_str()).collect();
    let filesystems = spec.domain.devices.filesystems.as_deref().unwrap_or_default();
    let filesystems: HashSet<&str> = filesystems.iter().map(|fs| fs.name.as_str()).collect();
    let volumes = path.at("domain.volumes");
    for (index, volume) in volumes_of(spec).iter().enumerate() {
        if volume.memory_dump.is_some() {
            continue;
        }
        let at = volumes.index(index);
        let name = volume.name.as_str();
        let (on_disk, on_filesystem) = (disks.contains(name), filesystems.contains(name));
        if !on_disk && !on_filesystem {
            let message = format!("no disk and no file system is called {name:?} to use this volume");
            problems.invalid(&at.at("name"), message);
        }
        if let Some(source) = &volume.container_path {
            container_path::check_use(&at, source, on_disk, on_filesystem, problems);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{spec, try_all};
    use super::*;
    use crate::testing::{World, assert_fields};

    #[test]
    fn a_disk_has_a_volume_that_suits_it() {
        let claim = json!([{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}]);
        let data_volume = json!([{"name": "a", "dataVolume": {"name": "d"}}]);
        let container = json!([{"name": "a", "containerDisk": {"image": "i"}}]);
        let metrics = json!([{"name": "a", "downwardMetrics": {}}]);
        try_all(
            &World::default().with_gates(&["DownwardMetrics"]),
            vec![
                ("no disks", json!([]), json!([]), &[]),
                ("a disk and its volume", json!([{"name": "a"}]), claim.clone(), &[]),
                ("no volume", json!([{"name": "a"}]), json!([]), &["spec.domain.devices.disks[0].name"]),
                ("an empty CD-ROM", json!([{"name": "a", "cdrom": {}}]), json!([]), &[]),
                ("a LUN on a claim", json!([{"name": "a", "lun": {}}]), claim, &[]),
                ("a LUN on a data volume", json!([{"name": "a", "lun": {}}]), data_volume, &[]),
                (
                    "a LUN on an image",
                    json!([{"name": "a", "lun": {}}]),
                    container,
                    &["spec.domain.devices.disks[0].lun"],
                ),
                (
                    "a LUN on nothing",
                    json!([{"name": "a", "lun": {}}]),
                    json!([]),
                    &["spec.domain.devices.disks[0].name"],
                ),
                ("metrics on a disk", json!([{"name": "a", "disk": {}}]), metrics.clone(), &[]),
                (
                    "metrics on virtio",
                    json!([{"name": "a", "disk": {"bus": "virtio"}}]),
                    metrics.clone(),
                    &[],
                ),
                (
                    "metrics on sata",
                    json!([{"name": "a", "disk": {"bus": "sata"}}]),
                    metrics.clone(),
                    &["spec.domain.devices.disks[0].disk.bus"],
                ),
                (
                    "metrics on a CD-ROM",
                    json!([{"name": "a", "cdrom": {}}]),
                    metrics,
                    &["spec.domain.devices.disks[0].disk"],
                ),
            ],
        );
        let world = World::default().with_configuration(
            json!({"developerConfiguration": {"disabledFeatureGates": ["DeclarativeHotplugVolumes"]}}),
        );
        let cdrom = json!([{"name": "a", "cdrom": {}}]);
        try_all(
            &world,
            vec![
                (
                    "an empty CD-ROM without the gate",
                    cdrom.clone(),
                    json!([]),
                    &["spec.domain.devices.disks[0].name"],
                ),
                (
                    "a full CD-ROM without the gate",
                    cdrom,
                    json!([{"name": "a", "containerDisk": {"image": "i"}}]),
                    &[],
                ),
            ],
        );
    }

    #[test]
    fn an_instance_uses_its_volumes() {
        let disks = json!([{"name": "a"}]);
        let cases = [
            ("none", json!([]), &[][..]),
            ("on a disk", json!([{"name": "a"}]), &[]),
            ("on a file system", json!([{"name": "f"}]), &[]),
            ("on nothing", json!([{"name": "a"}, {"name": "x"}]), &["spec.domain.volumes[1].name"]),
            ("a memory dump", json!([{"name": "x", "memoryDump": {"claimName": "c"}}]), &[]),
        ];
        for (case, volumes, expected) in cases {
            let mut spec = spec(&disks, &volumes);
            spec.domain.devices.filesystems =
                serde_json::from_value(json!([{"name": "f", "virtiofs": {}}])).unwrap();
            let mut problems = Problems::default();
            check_volumes(&Path::new("spec"), &spec, &mut problems);
            assert_fields(case, &problems, expected);
        }
    }
}
