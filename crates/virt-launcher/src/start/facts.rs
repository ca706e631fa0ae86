//! Everything that shapes a domain and is not in its VMI.

use std::collections::BTreeMap;
use std::path::Path;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_disk_image::Allowance;
use kubevirt_domain::facts::{AllocatedDevices, FirmwareFiles, FlashFiles, NumaCell, SmbiosFacts};
use kubevirt_domain::{Domain, HostFacts, convert};
use kubevirt_host::cpus;
use kubevirt_host::device::{self, Device};
use kubevirt_host::kvm::Accelerator;
use kubevirt_host::locking::Lockable;
use kubevirt_launcher_rpc::cmd::{Topology, VirtualMachineOptions};

use super::network;
use crate::error::CommandError;
use crate::launcher::{Launcher, lock};
use crate::volumes::{self, Prepared, Purpose, Request, Seed, VolumeError};

impl Launcher {
    /// The domain of a VMI on this host.
    pub(crate) async fn describe(
        &self,
        vmi: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
        purpose: Purpose,
    ) -> Result<Domain, CommandError> {
        self.host.hear(&options.qemu_json).await;
        let prepared = self.prepare_volumes(vmi, purpose).await?;
        let wirings = network::wirings(&options.network_json)?;
        self.serve_dhcp(vmi, &wirings)?;
        let mut host = self.host_facts(vmi, options).await?;
        host.interfaces = network::facts(&wirings);
        host.volumes = {
            let mut known = lock(&self.volumes);
            known.extend(prepared.facts);
            known.clone()
        };
        for name in &options.preallocated_volumes {
            host.volumes.entry(name.clone()).or_default().preallocated = true;
        }
        let qemu = self.host.qemu().await?;
        let domain = convert(vmi, &host, &qemu, &self.layout)?;
        write_devices(vmi, &domain, prepared.seeds).await?;
        Ok(domain)
    }

    async fn prepare_volumes(
        &self,
        vmi: &VirtualMachineInstance,
        purpose: Purpose,
    ) -> Result<Prepared, CommandError> {
        let (vmi, layout) = (vmi.clone(), self.layout.clone());
        let tolerated_percent = self.arguments.less_pvc_space_toleration;
        let prepared = blocking(move || {
            let allowance = Allowance { tolerated_percent, ..volumes::DEFAULT_ALLOWANCE };
            volumes::prepare(&Request { purpose, allowance, ..Request::start(&vmi, &layout) })
        });
        let prepared = prepared.await?.map_err(CommandError::Volumes)?;
        for note in &prepared.notes {
            tracing::warn!(%note, "a volume is not quite as asked for");
        }
        Ok(prepared)
    }

    async fn host_facts(
        &self,
        vmi: &VirtualMachineInstance,
        options: &VirtualMachineOptions,
    ) -> Result<HostFacts, CommandError> {
        let cluster = options.cluster_config.unwrap_or_default();
        let environment: BTreeMap<String, String> = std::env::vars().collect();
        Ok(HostFacts {
            architecture: self.host.architecture,
            kvm: self.host.accelerator().await? == Accelerator::Kvm,
            allow_emulation: self.arguments.allow_emulation || self.arguments.use_emulation,
            numa: numa(options.topology.as_ref()),
            cpu: self.host.cpu().await?,
            cpuset: cpus::of_container().unwrap_or_default(),
            firmware: firmware(self.host.firmware()),
            devices: AllocatedDevices::from_env(&environment, device_names(vmi)),
            smbios: smbios(options),
            vhost_net: device::vhost_net() == Device::Usable,
            can_lock_memory: Lockable::of_children().is_ok_and(|lockable| lockable == Lockable::All),
            now: Some(jiff::Timestamp::now().as_second()),
            serial_log: !cluster.serial_console_log_disabled,
            free_page_reporting: !cluster.free_page_reporting_disabled,
            balloon_stats_period: options.mem_balloon_stats_period,
            bochs_for_efi: cluster.bochs_display_for_efi_guests,
            ..HostFacts::default()
        })
    }
}

/// Cloud-init tells the guest of devices that the VMI tags, whose places are known only now.
async fn write_devices(
    vmi: &VirtualMachineInstance,
    domain: &Domain,
    seeds: Vec<Seed>,
) -> Result<(), CommandError> {
    let devices = volumes::tagged_devices(vmi, domain);
    if devices.is_empty() {
        return Ok(());
    }
    let written = blocking(move || seeds.iter().try_for_each(|seed| seed.write(&devices)));
    written
        .await?
        .map_err(|problem| CommandError::Volumes(vec![VolumeError { volume: "cloud-init".into(), problem }]))
}

/// Does what blocks aside.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, CommandError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CommandError::io("the work was not done")(std::io::Error::other(error)))
}

/// Names of the device plugins' resources that the VMI asks for.
fn device_names(vmi: &VirtualMachineInstance) -> Vec<&str> {
    let devices = &vmi.spec.domain.devices;
    let gpus = devices.gpus.iter().flatten().filter_map(|gpu| gpu.device_name.as_deref());
    let others = devices.host_devices.iter().flatten().filter_map(|device| device.device_name.as_deref());
    gpus.chain(others).collect()
}

fn smbios(options: &VirtualMachineOptions) -> SmbiosFacts {
    let Some(told) = options.virtual_machine_smbios.clone() else { return SmbiosFacts::default() };
    SmbiosFacts {
        manufacturer: told.manufacturer,
        product: told.product,
        version: told.version,
        sku: told.sku,
        family: told.family,
    }
}

fn numa(topology: Option<&Topology>) -> Vec<NumaCell> {
    let cells = topology.map(|topology| topology.numa_cells.as_slice()).unwrap_or_default();
    let cell = |cell: &kubevirt_launcher_rpc::cmd::Cell| {
        let mut cores: Vec<Vec<u32>> = Vec::new();
        for cpu in &cell.cpus {
            let mut threads: Vec<u32> = cpu.siblings.iter().copied().chain([cpu.id]).collect();
            threads.sort_unstable();
            threads.dedup();
            if !cores.contains(&threads) {
                cores.push(threads);
            }
        }
        let distances = cell.distances.iter().map(|to| u32::try_from(to.value).unwrap_or(u32::MAX)).collect();
        NumaCell { id: cell.id, cores, distances }
    };
    cells.iter().map(cell).collect()
}

/// The UEFI images of a folder, by the names that distributions give them.
fn firmware(folder: &Path) -> FirmwareFiles {
    let pair = |pairs: &[(&str, &str)]| {
        pairs.iter().find_map(|(code, vars)| {
            let (code, vars) = (folder.join(code), folder.join(vars));
            let text = |path: &Path| path.to_string_lossy().into_owned();
            (code.exists() && vars.exists()).then(|| FlashFiles { code: text(&code), vars: text(&vars) })
        })
    };
    let single = |names: &[&str]| {
        names
            .iter()
            .map(|name| folder.join(name))
            .find(|path| path.exists())
            .map(|path| path.to_string_lossy().into_owned())
    };
    FirmwareFiles {
        plain: pair(&[
            ("OVMF_CODE.fd", "OVMF_VARS.fd"),
            ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"),
            ("AAVMF_CODE.fd", "AAVMF_VARS.fd"),
        ]),
        secure: pair(&[
            ("OVMF_CODE.secboot.fd", "OVMF_VARS.secboot.fd"),
            ("OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.ms.fd"),
            ("AAVMF_CODE.secboot.fd", "AAVMF_VARS.secboot.fd"),
        ]),
        sev: pair(&[("OVMF_CODE.cc.fd", "OVMF_VARS.fd"), ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd")]),
        snp: single(&["OVMF.amdsev.fd"]),
        tdx: single(&["OVMF.inteltdx.fd"]),
        tdx_secure: single(&["OVMF.inteltdx.secboot.fd"]),
    }
}
