//! What a launcher must find out about its host and its QEMU before a VMI can become a domain.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::domain::Architecture;
use crate::domain::disk::{BlockSize, ImageFormat};
use crate::domain::host_device::HostDeviceSource;

/// MiB for translated code when a machine runs without KVM, unless somebody knows better.
///
/// All of it is in use once a guest has booted, so it is part of what a machine costs: half as much makes a small Linux
/// guest boot a tenth slower, twice as much makes no difference.
pub const TRANSLATION_BUFFER: u32 = 32;

/// Facts about the host and the settings of the cluster that shape a domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostFacts {
    /// Architecture of the host.
    pub architecture: Architecture,
    /// KVM was tried and works.
    pub kvm: bool,
    /// Machines may run without KVM.
    pub allow_emulation: bool,
    /// MiB for translated code when a machine runs without KVM.
    pub translation_buffer: u32,
    /// The host's CPU, as far as machines can have it.
    pub cpu: HostCpu,
    /// Host CPUs that belong to this machine alone.
    pub cpuset: Vec<u32>,
    /// NUMA nodes of the host.
    pub numa: Vec<NumaCell>,
    /// UEFI images for the guest's architecture.
    pub firmware: FirmwareFiles,
    /// What is known of each volume, by name.
    pub volumes: BTreeMap<String, VolumeFacts>,
    /// What each interface is wired to, by name.
    pub interfaces: BTreeMap<String, InterfaceFacts>,
    /// Devices that were allocated to this machine.
    pub devices: AllocatedDevices,
    /// What machines say about themselves.
    pub smbios: SmbiosFacts,
    /// AMD SEV, if the host has it.
    pub sev: Option<SevFacts>,
    /// The kernel can move the packets of tap devices.
    pub vhost_net: bool,
    /// Seconds since 1970, for clocks with an offset.
    pub now: Option<i64>,
    /// Keep all console output in a file.
    pub serial_log: bool,
    /// Guests may give back pages that they do not use.
    pub free_page_reporting: bool,
    /// Seconds between two readings of a guest's memory statistics; 0 for none.
    pub balloon_stats_period: u32,
    /// UEFI guests get a plain display instead of VGA.
    pub bochs_for_efi: bool,
    /// The process may lock all of its memory.
    pub can_lock_memory: bool,
    /// File for what the firmware says while it starts, if somebody wants to know.
    pub firmware_log: Option<String>,
    /// The kernel's newer way to share memory with host devices, open and ready: the process inherits it.
    pub iommufd: Option<i32>,
    /// Guests that see NUMA nodes see host devices on the node that they are on.
    pub numa_aware_pci: bool,
}

impl Default for HostFacts {
    fn default() -> Self {
        Self {
            architecture: Architecture::Amd64,
            kvm: false,
            allow_emulation: true,
            translation_buffer: TRANSLATION_BUFFER,
            cpu: HostCpu::default(),
            cpuset: Vec::new(),
            numa: Vec::new(),
            firmware: FirmwareFiles::default(),
            volumes: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            devices: AllocatedDevices::default(),
            smbios: SmbiosFacts::default(),
            sev: None,
            vhost_net: false,
            now: None,
            serial_log: false,
            free_page_reporting: true,
            balloon_stats_period: 10,
            bochs_for_efi: false,
            can_lock_memory: false,
            firmware_log: None,
            iommufd: None,
            numa_aware_pci: false,
        }
    }
}

/// The host's CPU, as far as machines can have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostCpu {
    /// Nearest named model.
    pub model: Option<String>,
    /// Flags that the host has beyond the model.
    pub require: Vec<String>,
    /// Flags of the model that the host lacks.
    pub disable: Vec<String>,
    /// All flags a machine can have; empty if they are not known.
    pub features: BTreeSet<String>,
}

/// A NUMA node of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NumaCell {
    /// Number of the node.
    pub id: u32,
    /// Cores of the node, each with the CPU numbers of its threads.
    pub cores: Vec<Vec<u32>>,
    /// Distances to all nodes, by their order; empty if not known.
    pub distances: Vec<u32>,
}

/// UEFI images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FirmwareFiles {
    /// Code and variables without secure boot.
    pub plain: Option<FlashFiles>,
    /// Code and variables with secure boot.
    pub secure: Option<FlashFiles>,
    /// Code and variables for AMD SEV.
    pub sev: Option<FlashFiles>,
    /// Image for AMD SEV-SNP.
    pub snp: Option<String>,
    /// Image for Intel TDX.
    pub tdx: Option<String>,
    /// Image for Intel TDX with secure boot.
    pub tdx_secure: Option<String>,
}

/// Code of a firmware and what its variables start as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FlashFiles {
    /// Path of the code.
    pub code: String,
    /// Path of the variables' template.
    pub vars: String,
}

/// What is known of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeFacts {
    /// It is a block device.
    pub block: bool,
    /// Format of a container disk's image.
    pub format: Option<ImageFormat>,
    /// Its file system can go around the page cache.
    pub direct_io: bool,
    /// All of its space is taken already.
    pub preallocated: bool,
    /// Freed space may be given back.
    pub discard: bool,
    /// Sector sizes of the storage.
    pub block_size: Option<BlockSize>,
    /// Bytes that it has.
    pub size: Option<u64>,
    /// Bytes that it may come to have; a running machine's disk grows to it.
    pub room: Option<u64>,
}

impl Default for VolumeFacts {
    fn default() -> Self {
        Self {
            block: false,
            format: None,
            direct_io: true,
            preallocated: false,
            discard: true,
            block_size: None,
            size: None,
            room: None,
        }
    }
}

/// What an interface is wired to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InterfaceFacts {
    /// It is not there yet and will be plugged in later.
    pub pending: bool,
    /// Name of its tap device.
    pub tap: Option<String>,
    /// Open queues of the tap device that the process inherits; it opens the tap device by name if empty.
    pub fds: Vec<i32>,
    /// Largest packet.
    pub mtu: Option<u32>,
    /// Hardware address, where the network decides it.
    pub mac: Option<String>,
    /// PCI address of its virtual function on the host.
    pub pci_address: Option<String>,
}

/// Devices that were allocated to this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllocatedDevices {
    /// Devices of each resource of a device plugin, in the order allocated.
    pub resources: BTreeMap<String, Vec<HostDeviceSource>>,
    /// Devices of resource claims, by `claim/request`.
    pub claims: BTreeMap<String, HostDeviceSource>,
    /// NUMA node of the host that a PCI device is on, by its address there.
    pub nodes: BTreeMap<String, u32>,
}

/// What machines say about themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SmbiosFacts {
    /// Maker.
    pub manufacturer: String,
    /// Product.
    pub product: String,
    /// Version.
    pub version: String,
    /// Stock keeping unit.
    pub sku: String,
    /// Family.
    pub family: String,
}

impl Default for SmbiosFacts {
    fn default() -> Self {
        Self {
            manufacturer: "KubeVirt".into(),
            product: "None".into(),
            version: String::new(),
            sku: String::new(),
            family: "KubeVirt".into(),
        }
    }
}

/// AMD SEV of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SevFacts {
    /// Position of the encryption bit in an address.
    pub c_bit_position: u32,
    /// Address bits lost to encryption.
    pub reduced_phys_bits: u32,
}

/// Facts about QEMU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QemuFacts {
    /// Version, such as `(7, 2)`.
    pub version: (u32, u32),
    /// Devices it has; empty if they are not known.
    pub devices: BTreeSet<String>,
    /// Machine types it has, from alias or name to name; empty if they are not known.
    pub machines: BTreeMap<String, String>,
}

impl QemuFacts {
    /// Of what QEMU lists: types of devices, and machine types with the other name that some have.
    pub fn told(
        version: (u32, u32),
        devices: impl IntoIterator<Item = String>,
        machine_types: impl IntoIterator<Item = (String, Option<String>)>,
    ) -> Self {
        let both = |(name, alias): (String, Option<String>)| {
            let alias = alias.map(|alias| (alias, name.clone()));
            alias.into_iter().chain([(name.clone(), name)])
        };
        let machines = machine_types.into_iter().flat_map(both).collect();
        Self { version, devices: devices.into_iter().collect(), machines }
    }
}

impl Default for QemuFacts {
    fn default() -> Self {
        Self { version: (7, 2), devices: BTreeSet::new(), machines: BTreeMap::new() }
    }
}

impl AllocatedDevices {
    /// Reads what device plugins put into the environment of the container, for these resources.
    pub fn from_env<'a>(
        env: &BTreeMap<String, String>,
        resources: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut found = Self::default();
        for resource in resources {
            let suffix = resource.to_uppercase().replace(['/', '.'], "_");
            let values = |prefix: &str| {
                let value = env.get(&format!("{prefix}_{suffix}")).map_or("", String::as_str);
                value
                    .split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty())
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            let usb = |text: &str| {
                let (bus, device) = text.split_once(':')?;
                Some(HostDeviceSource::Usb { bus: bus.parse().ok()?, device: device.parse().ok()? })
            };
            let mut devices: Vec<_> = values("PCI_RESOURCE").into_iter().map(HostDeviceSource::Pci).collect();
            devices.extend(values("MDEV_PCI_RESOURCE").into_iter().map(HostDeviceSource::Mdev));
            devices.extend(values("USB_RESOURCE").iter().filter_map(|text| usb(text)));
            found.resources.insert(resource.to_owned(), devices);
        }
        found
    }
}
