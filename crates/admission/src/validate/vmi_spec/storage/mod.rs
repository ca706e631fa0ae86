//! Disks, volumes and how they belong together.

mod block_size;
mod boot_order;
mod cloud_init;
mod container_path;
mod disk_bus;
pub mod disks;
mod host_disk;
pub mod hotplug;
mod io_threads;
pub mod mapping;
mod reservation;
pub mod utility_volumes;
pub mod volume_requests;
mod volumes;

use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::disks::Disk;
use kubevirt_api::vmi::volumes::Volume;

use crate::{Context, Path, Problems};

/// Everything that is wrong with the disks and volumes of an instance's specification that stands at `path`.
///
/// A new instance must also use all of its volumes, which a template need not: see [`mapping::check_volumes`].
pub fn check(cx: &Context<'_>, path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    mapping::check_disks(cx, path, spec, problems);
    boot_order::check(path, spec, problems);
    io_threads::check(path, &spec.domain, problems);
    disks::check(&path.at("domain.devices.disks"), disks_of(spec), problems);
    reservation::check(cx, path, disks_of(spec), problems);
    volumes::check(cx, &path.at("volumes"), volumes_of(spec), problems);
}

fn disks_of(spec: &VirtualMachineInstanceSpec) -> &[Disk] {
    spec.domain.devices.disks.as_deref().unwrap_or_default()
}

fn volumes_of(spec: &VirtualMachineInstanceSpec) -> &[Volume] {
    spec.volumes.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod testing {
    //! Specifications to try the rules on.

    use kubevirt_api::vmi::VirtualMachineInstanceSpec;
    use serde_json::{Value, json};

    use crate::testing::{World, assert_fields, read};
    use crate::{Path, Problems};

    /// A case: what it shows, the disks, the volumes, and the fields with problems.
    pub type Case = (&'static str, Value, Value, &'static [&'static str]);

    /// A specification with these disks and volumes.
    pub fn spec(disks: &Value, volumes: &Value) -> VirtualMachineInstanceSpec {
        read(json!({ "domain": { "devices": { "disks": disks } }, "volumes": volumes }))
    }

    /// What is wrong with it at `spec`, as far as storage goes.
    pub fn problems(world: &World, spec: &VirtualMachineInstanceSpec) -> Problems {
        let mut problems = Problems::default();
        world.run(|cx| super::check(cx, &Path::new("spec"), spec, &mut problems));
        problems
    }

    /// Fails unless every case has problems with its fields and no other.
    pub fn try_all(world: &World, cases: Vec<Case>) {
        for (case, disks, volumes, expected) in cases {
            assert_fields(case, &problems(world, &spec(&disks, &volumes)), expected);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::testing::{problems, spec};
    use crate::Reason;
    use crate::testing::World;

    #[test]
    fn problems_have_their_reasons() {
        let disks = json!([
            {"name": "a", "io": "x"},
            {"name": "b", "disk": {"bus": "sata"}, "dedicatedIOThread": true},
            {"name": "c", "cdrom": {}},
        ]);
        let volumes = json!([
            {"name": "a", "hostDisk": {"path": "", "type": "Disk"}},
            {"name": "b", "dataVolume": {"name": ""}},
            {"name": "c", "downwardMetrics": {}},
        ]);
        let world = World::default().with_gates(&["HostDisk", "DownwardMetrics"]);
        let found = problems(&world, &spec(&disks, &volumes));
        let found: Vec<(Reason, &str)> = found.iter().map(|p| (p.reason, p.field.as_str())).collect();
        let expected = [
            (Reason::Required, "spec.domain.devices.disks[2].disk"),
            (Reason::NotSupported, "spec.domain.devices.disks.domain.devices.disks[0].io"),
            (Reason::NotSupported, "spec.domain.devices.disks.domain.devices.disks[1]"),
            (Reason::NotFound, "spec.volumes[0].hostDisk.path"),
            (Reason::Required, "spec.volumes[1].name"),
        ];
        assert_eq!(found, expected);
    }
}
