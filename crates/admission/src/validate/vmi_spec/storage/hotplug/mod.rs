//! Changes to the volumes of a running instance: what it started with stays, what is plugged in fits.

mod disk;

pub use disk::check_disk;

use std::collections::{HashMap, HashSet};

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::disks::Disk;
use kubevirt_api::vmi::volumes::Volume;

use super::{disks_of, volumes_of};
use crate::validate::same::same;
use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong with a change to the disks and volumes of a running instance.
///
/// Which volumes it started with is in the old status; volumes that are being migrated may be replaced.
pub fn check_change(
    cx: &Context<'_>,
    new: &VirtualMachineInstance,
    old: &VirtualMachineInstance,
    problems: &mut Problems,
) {
    if !each_volume_has_one_user(cx, new, problems) {
        return;
    }
    let change = Change {
        new_disks: disks_by_name(new),
        old_disks: disks_by_name(old),
        new_volumes: volumes_by_name(new),
        old_volumes: volumes_by_name(old),
        permanent: permanent_volumes(old),
        migrated: migrated_volumes(new),
    };
    // In the order of the lists, so that the same change always reads the same.
    for volume in
        volumes_of(&old.spec).iter().filter(|volume| change.permanent.contains(volume.name.as_str()))
    {
        change.check_permanent(volume, problems);
    }
    for volume in volumes_of(&new.spec) {
        if change.permanent.contains(volume.name.as_str()) {
            if !change.old_volumes.contains_key(volume.name.as_str()) {
                let message = format!("volume {:?} was there at the start and cannot come back", volume.name);
                problems.invalid(&Path::WHOLE, message);
            }
        } else {
            change.check_plugged(volume, problems);
        }
    }
}

/// A change, with everything by name.
struct Change<'a> {
    new_disks: HashMap<&'a str, &'a Disk>,
    old_disks: HashMap<&'a str, &'a Disk>,
    new_volumes: HashMap<&'a str, &'a Volume>,
    old_volumes: HashMap<&'a str, &'a Volume>,
    permanent: HashSet<&'a str>,
    migrated: HashSet<&'a str>,
}

impl Change<'_> {
    /// A volume that the instance started with stays as it is, and so does its disk.
    fn check_permanent(&self, old: &Volume, problems: &mut Problems) {
        let name = old.name.as_str();
        let Some(new) = self.new_volumes.get(name) else {
            let message =
                format!("volume {name:?} was there at the start and cannot be removed while running");
            problems.invalid(&Path::WHOLE, message);
            return;
        };
        if self.migrated.contains(name) {
            return;
        }
        if !same(*new, old) {
            let message = format!("volume {name:?} was there at the start and cannot change while running");
            problems.invalid(&Path::WHOLE, message);
        }
        if !self.same_disk(name) {
            let message = format!("disk {name:?} was there at the start and cannot change while running");
            problems.invalid(&Path::WHOLE, message);
        }
    }

    /// A volume that is plugged in stays as it is, and a new one can be plugged in.
    fn check_plugged(&self, volume: &Volume, problems: &mut Problems) {
        let name = volume.name.as_str();
        let old = self.old_volumes.get(name);
        match old {
            Some(old) if !same(volume, *old) && !self.migrated.contains(name) => {
                let message = format!("volume {name:?} is plugged in and cannot change: remove it first");
                problems.invalid(&Path::WHOLE, message);
            }
            None if volume.data_volume.is_none()
                && volume.persistent_volume_claim.is_none()
                && volume.memory_dump.is_none() =>
            {
                let message = format!("volume {name:?} is no persistentVolumeClaim or dataVolume to plug in");
                problems.invalid(&Path::WHOLE, message);
            }
            _ => {}
        }
        if volume.memory_dump.is_some() {
            return;
        }
        let Some(disk) = self.new_disks.get(name) else {
            problems.invalid(&Path::WHOLE, format!("volume {name:?} has no disk of its name"));
            return;
        };
        if old.is_some() && !self.same_disk(name) {
            let message = format!("disk {name:?} is plugged in and cannot change: remove it first");
            problems.invalid(&Path::WHOLE, message);
        }
        if old.is_none() && !self.old_disks.contains_key(name) {
            check_disk(disk, name, &Path::WHOLE, problems);
        }
    }

    fn same_disk(&self, name: &str) -> bool {
        match (self.new_disks.get(name), self.old_disks.get(name)) {
            (Some(new), Some(old)) => same(*new, *old),
            (new, old) => new.is_none() && old.is_none(),
        }
    }
}

/// Whether there are as many volumes as disks and file systems that need one.
fn each_volume_has_one_user(cx: &Context<'_>, vmi: &VirtualMachineInstance, problems: &mut Problems) -> bool {
    let volumes = volumes_of(&vmi.spec).iter().filter(|volume| volume.memory_dump.is_none());
    let names: HashSet<&str> = volumes.map(|volume| volume.name.as_str()).collect();
    let may_be_empty = cx.config.enabled(Gate::DeclarativeHotplugVolumes);
    let needs_volume =
        |disk: &&Disk| !(may_be_empty && disk.cdrom.is_some() && !names.contains(disk.name.as_str()));
    let filesystems = vmi.spec.domain.devices.filesystems.as_ref().map_or(0, Vec::len);
    let needed = filesystems + disks_of(&vmi.spec).iter().filter(needs_volume).count();
    if needed != names.len() {
        let message = format!("there are {} volumes for {needed} disks and file systems", names.len());
        problems.invalid(&Path::WHOLE, message);
    }
    needed == names.len()
}

fn disks_by_name(vmi: &VirtualMachineInstance) -> HashMap<&str, &Disk> {
    let named = disks_of(&vmi.spec).iter().filter(|disk| !disk.name.is_empty());
    named.map(|disk| (disk.name.as_str(), disk)).collect()
}

fn volumes_by_name(vmi: &VirtualMachineInstance) -> HashMap<&str, &Volume> {
    volumes_of(&vmi.spec).iter().map(|volume| (volume.name.as_str(), volume)).collect()
}

/// The volumes that an instance started with, by its status.
pub(super) fn permanent_volumes(vmi: &VirtualMachineInstance) -> HashSet<&str> {
    let statuses = vmi.status.as_ref().and_then(|status| status.volume_status.as_deref()).unwrap_or_default();
    statuses.iter().filter(|s| s.hotplug_volume.is_none()).map(|s| s.name.as_str()).collect()
}

fn migrated_volumes(vmi: &VirtualMachineInstance) -> HashSet<&str> {
    let volumes = vmi.status.as_ref().and_then(|status| status.migrated_volumes.as_deref());
    volumes.unwrap_or_default().iter().map(|volume| volume.volume_name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, read};

    /// An instance of volumes `v<n>` on claims, each with a disk on scsi.
    fn instance(volumes: &[u8], permanent: &[u8], plugged: &[u8]) -> Value {
        let volume = |n: &u8| json!({"name": format!("v{n}"), "persistentVolumeClaim": {"claimName": format!("c{n}")}});
        let disk = |n: &u8| json!({"name": format!("v{n}"), "disk": {"bus": "scsi"}});
        let started = |n: &u8| json!({"name": format!("v{n}"), "target": "x"});
        let added = |n: &u8| json!({"name": format!("v{n}"), "target": "x", "hotplugVolume": {}});
        let status: Vec<Value> = permanent.iter().map(started).chain(plugged.iter().map(added)).collect();
        json!({
            "spec": {
                "domain": {"devices": {"disks": volumes.iter().map(disk).collect::<Vec<_>>()}},
                "volumes": volumes.iter().map(volume).collect::<Vec<_>>(),
            },
            "status": {"volumeStatus": status},
        })
    }

    fn found(world: &World, new: &Value, old: &Value) -> Problems {
        let mut problems = Problems::default();
        world.run(|cx| check_change(cx, &read(new.clone()), &read(old.clone()), &mut problems));
        problems
    }

    /// `value` with another value at a JSON pointer.
    fn with(mut value: Value, pointer: &str, other: Value) -> Value {
        *value.pointer_mut(pointer).unwrap() = other;
        value
    }

    #[test]
    fn a_change_keeps_what_was_there_and_adds_what_fits() {
        let world = World::default();
        let old = instance(&[0, 1], &[0], &[1]);
        let base = instance(&[0, 1], &[0], &[1]);
        let more = instance(&[0, 1, 2], &[0], &[1]);
        let cases: Vec<(&str, Value, usize)> = vec![
            ("no change", base.clone(), 0),
            ("a volume plugged in", more.clone(), 0),
            ("a volume unplugged", instance(&[0], &[0], &[1]), 0),
            ("a permanent volume removed", instance(&[1], &[0], &[1]), 1),
            ("all removed", instance(&[], &[0], &[1]), 1),
            (
                "a permanent volume changed",
                with(base.clone(), "/spec/volumes/0/persistentVolumeClaim/claimName", json!("x")),
                1,
            ),
            (
                "a permanent disk changed",
                with(base.clone(), "/spec/domain/devices/disks/0/disk/bus", json!("sata")),
                1,
            ),
            (
                "a plugged volume changed",
                with(base.clone(), "/spec/volumes/1/persistentVolumeClaim/claimName", json!("x")),
                1,
            ),
            (
                "a plugged disk changed",
                with(base.clone(), "/spec/domain/devices/disks/1/disk/bus", json!("virtio")),
                1,
            ),
            ("a disk too few", with(base.clone(), "/spec/domain/devices/disks", json!([{"name": "v0"}])), 1),
            (
                "a disk of another name",
                with(more.clone(), "/spec/domain/devices/disks/2/name", json!("x")),
                1,
            ),
            (
                "a plugged disk renamed",
                with(base.clone(), "/spec/domain/devices/disks/1/name", json!("x")),
                1,
            ),
            (
                "a new image",
                with(more.clone(), "/spec/volumes/2", json!({"name": "v2", "containerDisk": {"image": "i"}})),
                1,
            ),
            (
                "a new data volume",
                with(more.clone(), "/spec/volumes/2", json!({"name": "v2", "dataVolume": {"name": "d"}})),
                0,
            ),
            (
                "a new disk on virtio",
                with(more.clone(), "/spec/domain/devices/disks/2/disk/bus", json!("virtio")),
                0,
            ),
            (
                "a new disk on sata",
                with(more.clone(), "/spec/domain/devices/disks/2/disk/bus", json!("sata")),
                1,
            ),
            (
                "a new CD-ROM",
                with(more.clone(), "/spec/domain/devices/disks/2", json!({"name": "v2", "cdrom": {}})),
                1,
            ),
            (
                "a new LUN",
                with(
                    more.clone(),
                    "/spec/domain/devices/disks/2",
                    json!({"name": "v2", "lun": {"bus": "scsi"}}),
                ),
                0,
            ),
            (
                "two things at once",
                with(
                    with(base.clone(), "/spec/domain/devices/disks/0/disk/bus", json!("sata")),
                    "/spec/volumes/1/persistentVolumeClaim/claimName",
                    json!("x"),
                ),
                2,
            ),
            (
                "written another way",
                with(
                    base.clone(),
                    "/spec/volumes/0/persistentVolumeClaim",
                    json!({"claimName": "c0", "readOnly": false}),
                ),
                0,
            ),
        ];
        for (case, new, expected) in cases {
            assert_fields(case, &found(&world, &new, &old), &vec![""; expected]);
        }
    }

    #[test]
    fn volumes_and_their_users_are_counted() {
        let disabled = World::default().with_configuration(
            json!({"developerConfiguration": {"disabledFeatureGates": ["DeclarativeHotplugVolumes"]}}),
        );
        let old = instance(&[0], &[0], &[]);
        let mut cdrom = old.clone();
        cdrom["spec"]["domain"]["devices"]["disks"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "e", "cdrom": {}}));
        assert_fields("an empty CD-ROM", &found(&World::default(), &cdrom, &old), &[]);
        assert_fields("an empty CD-ROM without the gate", &found(&disabled, &cdrom, &old), &[""]);

        let mut full = cdrom.clone();
        full["spec"]["volumes"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "e", "dataVolume": {"name": "d"}}));
        assert_fields("filling it", &found(&World::default(), &full, &cdrom), &[]);

        let mut dump = old.clone();
        dump["spec"]["volumes"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "d", "memoryDump": {"claimName": "d"}}));
        assert_fields("a memory dump", &found(&World::default(), &dump, &old), &[]);
        assert_fields("a memory dump that stays", &found(&World::default(), &dump, &dump), &[]);

        let mut shared = instance(&[0], &[0], &[]);
        shared["spec"]["domain"]["devices"]["filesystems"] = json!([{"name": "v0", "virtiofs": {}}]);
        assert_fields("a volume with two users", &found(&World::default(), &shared, &old), &[""]);
        shared["spec"]["domain"]["devices"]["disks"] = json!([]);
        assert_fields("a file system", &found(&World::default(), &shared, &shared), &[]);
    }

    #[test]
    fn a_migrated_volume_may_be_replaced() {
        let old = instance(&[0, 1], &[0], &[1]);
        let mut new = with(old.clone(), "/spec/volumes/0/persistentVolumeClaim/claimName", json!("x"));
        new = with(new, "/spec/volumes/1/persistentVolumeClaim/claimName", json!("y"));
        assert_fields("not migrated", &found(&World::default(), &new, &old), &["", ""]);
        new["status"]["migratedVolumes"] = json!([{"volumeName": "v0"}, {"volumeName": "v1"}]);
        assert_fields("migrated", &found(&World::default(), &new, &old), &[]);
    }
}
