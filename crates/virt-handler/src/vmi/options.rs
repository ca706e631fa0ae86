//! What the handler knows and the instance does not say, for the launcher.

use std::hash::{DefaultHasher, Hash, Hasher};

use kubevirt_admission::config::ClusterConfig;
use kubevirt_admission::gates::Gate;
use kubevirt_api::names::annotations;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_host::numa;
use kubevirt_launcher_rpc::cmd::{
    Cell, ClusterConfig as Switches, Cpu, Sibling, SmBios, Topology, VirtualMachineOptions,
};
use kubevirt_network::Wiring;

/// What the launcher is told beside the instance.
pub fn options(
    vmi: &VirtualMachineInstance,
    config: &ClusterConfig,
    topology: &Topology,
    network: &[Wiring],
) -> VirtualMachineOptions {
    let all = config.configuration();
    let smbios = all.smbios.clone().unwrap_or_default();
    let of_machines = all.virtual_machine_options.as_ref();
    VirtualMachineOptions {
        virtual_machine_smbios: Some(SmBios {
            manufacturer: smbios.manufacturer.unwrap_or_default(),
            product: smbios.product.unwrap_or_default(),
            version: smbios.version.unwrap_or_default(),
            sku: smbios.sku.unwrap_or_default(),
            family: smbios.family.unwrap_or_default(),
        }),
        mem_balloon_stats_period: all
            .mem_balloon_stats_period
            .and_then(|seconds| u32::try_from(seconds).ok())
            .unwrap_or_default(),
        preallocated_volumes: preallocated(vmi),
        topology: Some(topology.clone()),
        cluster_config: Some(Switches {
            expand_disks_enabled: config.enabled(Gate::ExpandDisks),
            free_page_reporting_disabled: of_machines
                .is_some_and(|options| options.disable_free_page_reporting.is_some()),
            bochs_display_for_efi_guests: config.annotation(annotations::VGA_DISPLAY_EFI_X86) != Some("true"),
            serial_console_log_disabled: of_machines
                .is_some_and(|options| options.disable_serial_console_log.is_some()),
            pci_numa_aware_topology_enabled: config.enabled(Gate::PciNumaAwareTopology),
            vgpu_live_migration_enabled: config.enabled(Gate::VgpuLiveMigration),
            grace_io_virtualization_enabled: config.enabled(Gate::GraceIoVirtualization),
        }),
        expand_disks_enabled: config.enabled(Gate::ExpandDisks),
        // Our own types always can be written.
        network_json: serde_json::to_vec(network).unwrap_or_default(),
        ..VirtualMachineOptions::default()
    }
}

fn preallocated(vmi: &VirtualMachineInstance) -> Vec<String> {
    let all = vmi.status.iter().flat_map(|status| status.volume_status.iter().flatten());
    let full = all.filter(|volume| {
        let claim = volume.persistent_volume_claim_info.as_ref();
        claim.is_some_and(|claim| claim.preallocated == Some(true))
    });
    full.map(|volume| volume.name.clone()).collect()
}

/// The NUMA nodes of this host. A host that does not tell has none, which only machines that ask for it notice.
pub fn topology() -> Topology {
    let cells = numa::cells().unwrap_or_else(|error| {
        tracing::warn!(%error, "the NUMA nodes of this host are not known");
        Vec::new()
    });
    Topology { numa_cells: cells.iter().map(cell).collect() }
}

fn cell(cell: &numa::Cell) -> Cell {
    let ids = 0_u32..;
    let distance = |(id, distance): (u32, &u32)| Sibling { id, value: u64::from(*distance) };
    let cpus =
        cell.cores.iter().flat_map(|core| core.iter().map(|id| Cpu { id: *id, siblings: core.clone() }));
    Cell {
        id: cell.id,
        distances: ids.zip(&cell.distances).map(distance).collect(),
        cpus: cpus.collect(),
        ..Cell::default()
    }
}

/// A fingerprint of all that a launcher makes a machine of: if it is the same, there is nothing to ask for.
pub fn fingerprint(vmi: &VirtualMachineInstance, options: &VirtualMachineOptions) -> u64 {
    let status = vmi.status.as_ref();
    let volumes = status.and_then(|status| status.volume_status.as_ref()).map(|all| {
        let plugged = all.iter().filter(|volume| volume.hotplug_volume.is_some());
        plugged.map(|volume| (&volume.name, &volume.phase)).collect::<Vec<_>>()
    });
    let claims: Vec<_> = status
        .iter()
        .flat_map(|status| status.volume_status.iter().flatten())
        .map(|volume| &volume.persistent_volume_claim_info)
        .collect();
    let all = (
        &vmi.spec,
        &vmi.metadata.annotations,
        &vmi.metadata.labels,
        volumes,
        claims,
        status
            .map(|status| (&status.topology_hints, &status.migrated_volumes, &status.changed_block_tracking)),
    );
    let mut hasher = DefaultHasher::new();
    serde_json::to_vec(&all).unwrap_or_default().hash(&mut hasher);
    format!("{options:?}").hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
    use kubevirt_api::vmi::status::VmiPhase;
    use serde_json::json;

    use super::*;

    fn vmi() -> VirtualMachineInstance {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"domain": {"devices": {}}},
            "status": {"phase": "Scheduled", "volumeStatus": [
                {"name": "a", "target": "", "persistentVolumeClaimInfo": {"preallocated": true}},
                {"name": "b", "target": "", "phase": "MountedToPod", "hotplugVolume": {}},
            ]},
        }))
        .unwrap()
    }

    #[test]
    fn only_what_a_machine_is_made_of_counts() {
        let options = options(&vmi(), &ClusterConfig::default(), &Topology::default(), &[]);
        assert_eq!(options.preallocated_volumes, ["a"]);
        assert_eq!(options.mem_balloon_stats_period, 10);
        let first = fingerprint(&vmi(), &options);
        let mut told = vmi();
        let status = told.status.as_mut().unwrap();
        status.phase = Some(VmiPhase::Running);
        status.volume_status.as_mut().unwrap()[0].target = "vda".into();
        assert_eq!(fingerprint(&told, &options), first);
        told.status.as_mut().unwrap().volume_status.as_mut().unwrap()[1].phase = None;
        assert_ne!(fingerprint(&told, &options), first);
        let mut grown = vmi();
        let volumes = grown.status.as_mut().unwrap().volume_status.as_mut().unwrap();
        let claim = volumes[0].persistent_volume_claim_info.as_mut().unwrap();
        claim.capacity = Some([("storage".to_owned(), Quantity("2Gi".into()))].into());
        assert_ne!(fingerprint(&grown, &options), first, "the disk of a claim that has grown grows too");
        let mut changed = vmi();
        changed.spec.hostname = Some("other".into());
        assert_ne!(fingerprint(&changed, &options), first);
    }
}
