//! The host that a machine is taken to run on: one where everything works, and always the same.
//!
//! KVM works unless the cluster allows emulation. Container disks are qcow2 images, claims are what their manifests say,
//! networks are wired, and host devices are at addresses that are made up.

use std::collections::BTreeMap;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_domain::HostFacts;
use kubevirt_domain::domain::Architecture;
use kubevirt_domain::domain::disk::ImageFormat;
use kubevirt_domain::domain::host_device::HostDeviceSource;
use kubevirt_domain::facts::{
    AllocatedDevices, FirmwareFiles, FlashFiles, InterfaceFacts, NumaCell, SevFacts, SmbiosFacts, VolumeFacts,
};
use kubevirt_network::names;

use super::machines::Cluster;
use super::surroundings;

/// The version of QEMU that is taken to be there: the launcher image's.
pub const QEMU: (u32, u32) = (10, 0);

/// The CPUs that a machine with CPUs of its own gets, all of one NUMA node.
const CPUS: u32 = 64;

/// The host of a machine.
pub fn of(vmi: &VirtualMachineInstance, cluster: &Cluster) -> HostFacts {
    let configuration = cluster.config.configuration();
    let developer = configuration.developer_configuration.as_ref();
    let options = configuration.virtual_machine_options.as_ref();
    let period = configuration.mem_balloon_stats_period.unwrap_or(0);
    let emulated = developer.and_then(|developer| developer.use_emulation) == Some(true);
    let architecture = vmi.spec.architecture.as_deref().and_then(Architecture::from_name);
    let cpus: Vec<u32> = (0..CPUS).collect();
    let cores = cpus.chunks(2).map(<[u32]>::to_vec).collect();
    HostFacts {
        architecture: architecture.unwrap_or_default(),
        kvm: !emulated,
        allow_emulation: emulated,
        cpuset: cpus,
        numa: vec![NumaCell { id: 0, cores, distances: vec![10] }],
        firmware: firmware(),
        volumes: volumes(vmi, cluster),
        interfaces: interfaces(vmi),
        devices: devices(vmi),
        sev: Some(SevFacts { c_bit_position: 51, reduced_phys_bits: 1 }),
        vhost_net: !emulated,
        now: Some(0),
        smbios: smbios(cluster),
        serial_log: options.is_none_or(|options| options.disable_serial_console_log.is_none()),
        free_page_reporting: options.is_none_or(|options| options.disable_free_page_reporting.is_none()),
        balloon_stats_period: u32::try_from(period).unwrap_or(0),
        can_lock_memory: true,
        ..HostFacts::default()
    }
}

fn smbios(cluster: &Cluster) -> SmbiosFacts {
    let Some(own) = cluster.config.configuration().smbios.clone() else { return SmbiosFacts::default() };
    SmbiosFacts {
        manufacturer: own.manufacturer.unwrap_or_default(),
        product: own.product.unwrap_or_default(),
        version: own.version.unwrap_or_default(),
        sku: own.sku.unwrap_or_default(),
        family: own.family.unwrap_or_default(),
    }
}

fn firmware() -> FirmwareFiles {
    let file = |name: &str| format!("/usr/share/OVMF/{name}");
    let pair = |code: &str, vars: &str| Some(FlashFiles { code: file(code), vars: file(vars) });
    FirmwareFiles {
        plain: pair("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"),
        secure: pair("OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.ms.fd"),
        sev: pair("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"),
        snp: Some(file("OVMF.amdsev.fd")),
        tdx: Some(file("OVMF.inteltdx.fd")),
        tdx_secure: Some(file("OVMF.inteltdx.secboot.fd")),
    }
}

fn volumes(vmi: &VirtualMachineInstance, cluster: &Cluster) -> BTreeMap<String, VolumeFacts> {
    let namespace = vmi.metadata.namespace.as_deref().unwrap_or_default();
    let mut all = BTreeMap::new();
    for volume in vmi.spec.volumes.iter().flatten() {
        let claim = volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str());
        let data = volume.data_volume.as_ref().map(|data| data.name.as_str());
        let base = volume.ephemeral.as_ref().and_then(|base| base.persistent_volume_claim.as_ref());
        let claim = claim.or(data).or(base.map(|base| base.claim_name.as_str()));
        let block = claim.is_some_and(|claim| surroundings::known(cluster, namespace, claim).block);
        let format = volume.container_disk.as_ref().map(|_| ImageFormat::Qcow2);
        all.insert(volume.name.clone(), VolumeFacts { block, format, ..VolumeFacts::default() });
    }
    all
}

fn interfaces(vmi: &VirtualMachineInstance) -> BTreeMap<String, InterfaceFacts> {
    let mut all = BTreeMap::new();
    for (index, network) in vmi.spec.networks.iter().flatten().enumerate() {
        let secondary = network.multus.as_ref().is_some_and(|multus| multus.default != Some(true));
        let pod = if secondary { names::hashed(&network.name) } else { names::PRIMARY.to_owned() };
        let facts = InterfaceFacts {
            tap: Some(names::tap(&pod, !secondary)),
            mtu: Some(1500),
            pci_address: Some(format!("0000:81:00.{}", index % 8)),
            ..InterfaceFacts::default()
        };
        all.insert(network.name.clone(), facts);
    }
    all
}

/// A device for every wish.
fn devices(vmi: &VirtualMachineInstance) -> AllocatedDevices {
    let mut all = AllocatedDevices::default();
    let devices = &vmi.spec.domain.devices;
    let gpus =
        devices.gpus.iter().flatten().map(|gpu| (&gpu.device_name, &gpu.claim_name, &gpu.request_name));
    let others = devices.host_devices.iter().flatten();
    let others = others.map(|device| (&device.device_name, &device.claim_name, &device.request_name));
    for (index, (name, claim, request)) in gpus.chain(others).enumerate() {
        let source = HostDeviceSource::Pci(format!("0000:82:{:02x}.0", index % 32));
        match (claim, name) {
            (Some(claim), _) => {
                let request = request.as_deref().unwrap_or_default();
                all.claims.insert(format!("{claim}/{request}"), source);
            }
            (None, Some(name)) => all.resources.entry(name.clone()).or_default().push(source),
            (None, None) => {}
        }
    }
    all
}
