//! Preferred settings for a guest system: `VirtualMachinePreference`, per namespace and cluster-wide.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::kind::kind;
use crate::open_enum::open_enum;
use crate::vmi::clock::{ClockOffset, Timer};
use crate::vmi::cpu::CpuFeature;
use crate::vmi::devices::{InputBus, InputType, PanicDeviceModel, Rng, TpmDevice};
use crate::vmi::disks::{BlockSize, DiskBus, DriverCache, DriverIo};
use crate::vmi::features::{FeatureApic, FeatureHyperv, FeatureKvm, FeatureState};
use crate::vmi::firmware::Efi;
use crate::vmi::host_devices::VgpuOptions;
use crate::vmi::launch_security::LaunchSecurity;
use crate::vmi::network::InterfaceMasquerade;

kind! {
    /// Cluster-wide preference, usable by VMs in every namespace.
    VirtualMachineClusterPreference: INSTANCETYPE, "v1beta1", "virtualmachineclusterpreferences", ClusterResourceScope;
    spec: VirtualMachinePreferenceSpec
}

kind! {
    /// Reusable guest defaults for VMs in the same namespace; values set in the VM itself normally win.
    VirtualMachinePreference: INSTANCETYPE, "v1beta1", "virtualmachinepreferences", NamespaceResourceScope;
    spec: VirtualMachinePreferenceSpec
}

/// Defaults filled into a VM where it is silent, plus minimum resources it must have.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachinePreferenceSpec {
    /// Default guest clock and timers.
    pub clock: Option<ClockPreferences>,
    /// Default vCPU layout and CPU features.
    pub cpu: Option<CpuPreferences>,
    /// Default buses, models and options for virtual devices.
    pub devices: Option<DevicePreferences>,
    /// Default hypervisor features such as ACPI, SMM and the Hyper-V set.
    pub features: Option<FeaturePreferences>,
    /// Default boot firmware, BIOS or EFI.
    pub firmware: Option<FirmwarePreferences>,
    /// Default emulated machine type.
    pub machine: Option<MachinePreferences>,
    /// Default storage settings for the VM's DataVolume templates.
    pub volumes: Option<VolumePreferences>,
    /// DNS subdomain for VMs that set none.
    pub preferred_subdomain: Option<String>,
    /// Seconds a guest gets to shut down before being killed, for VMs that do not say.
    pub preferred_termination_grace_period_seconds: Option<i64>,
    /// Minimum resources; a VM that falls short is rejected.
    pub requirements: Option<PreferenceRequirements>,
    /// Annotations added to the VMI unless it already has the same key.
    pub annotations: Option<BTreeMap<String, String>>,
    /// Older form of `cpu.spreadOptions.ratio`, which overrides it; cores per socket, 2 if unset.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub prefer_spread_socket_to_core_ratio: Option<i32>,
    /// CPU architecture for VMs that set none, such as `amd64`, `arm64` or `s390x`.
    pub preferred_architecture: Option<String>,
    /// Memory encryption setup for VMs that configure none of their own.
    pub preferred_launch_security: Option<LaunchSecurity>,
}

/// Guest clock defaults.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClockPreferences {
    /// Clock base, used only if the VM sets neither `utc` nor `timezone`.
    pub preferred_clock_offset: Option<ClockOffset>,
    /// Timer setup, used as a whole and only if the VM configures no timers.
    pub preferred_timer: Option<Timer>,
}

/// vCPU layout and feature defaults.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuPreferences {
    /// How an instance type's vCPUs are presented to the guest; `sockets` if unset.
    #[serde(rename = "preferredCPUTopology")]
    pub preferred_cpu_topology: Option<PreferredCpuTopology>,
    /// Fine-tunes the `spread` topology; ignored with any other.
    pub spread_options: Option<SpreadOptions>,
    /// CPU features added unless the VM already lists one of the same name.
    #[serde(rename = "preferredCPUFeatures")]
    pub preferred_cpu_features: Option<Vec<CpuFeature>>,
}

/// How vCPUs are divided up under the `spread` topology.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadOptions {
    /// Levels to divide over: `SocketsCores` (default), `SocketsCoresThreads` or `CoresThreads`.
    pub across: Option<SpreadAcross>,
    /// Cores per socket, 2 if unset; with `CoresThreads` it is threads per core and must be 2.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub ratio: Option<i32>,
}

/// Device defaults, used where the VM leaves the matching setting out.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevicePreferences {
    /// Whether VMs get a graphics card and VNC console by default.
    pub preferred_autoattach_graphics_device: Option<bool>,
    /// Whether VMs get a memory balloon by default; without it memory statistics are missing.
    pub preferred_autoattach_mem_balloon: Option<bool>,
    /// Whether VMs that list no interfaces are connected to the pod network.
    pub preferred_autoattach_pod_interface: Option<bool>,
    /// Whether VMs get a serial console by default; `virtctl console` needs it.
    pub preferred_autoattach_serial_console: Option<bool>,
    /// Whether VMs that list no inputs get one added automatically.
    pub preferred_autoattach_input_device: Option<bool>,
    /// Whether disk hotplug is turned off; overrides what the VM says.
    pub preferred_disable_hotplug: Option<bool>,
    /// Default display options for vGPUs.
    #[serde(rename = "preferredVirtualGPUOptions")]
    pub preferred_virtual_gpu_options: Option<VgpuOptions>,
    /// Sound card model, `ich9` or `ac97`, for sound devices that name none.
    pub preferred_sound_model: Option<String>,
    /// Whether virtio devices use the legacy-compatible variant that old guests need.
    pub preferred_use_virtio_transitional: Option<bool>,
    /// Bus for input devices that name none: `usb` or `virtio`.
    pub preferred_input_bus: Option<InputBus>,
    /// Type for input devices that name none; only `tablet` exists.
    pub preferred_input_type: Option<InputType>,
    /// Bus for plain disks that name none: `virtio`, `sata`, `scsi` or `usb`.
    pub preferred_disk_bus: Option<DiskBus>,
    /// Bus for LUN disks that name none: `virtio`, `sata`, `scsi` or `usb`.
    pub preferred_lun_bus: Option<DiskBus>,
    /// Bus for CD-ROM drives that name none: `sata`, `scsi` or `usb`.
    pub preferred_cdrom_bus: Option<DiskBus>,
    /// Whether each disk gets its own I/O thread; only affects plain disks on the virtio bus.
    pub preferred_disk_dedicated_io_thread: Option<bool>,
    /// Host cache mode for plain disks that set none: `none`, `writethrough` or `writeback`.
    pub preferred_disk_cache: Option<DriverCache>,
    /// Host I/O mode for plain disks that set none: `native` or `threads`.
    #[serde(rename = "preferredDiskIO")]
    pub preferred_disk_io: Option<DriverIo>,
    /// Sector sizes shown to the guest for plain disks that set none.
    pub preferred_disk_block_size: Option<BlockSize>,
    /// NIC model, such as `virtio` or `e1000e`, for interfaces that name none.
    pub preferred_interface_model: Option<String>,
    /// Gives VMs a virtio random number generator by default.
    pub preferred_rng: Option<Rng>,
    /// Whether virtio disks get several request queues by default.
    pub preferred_block_multi_queue: Option<bool>,
    /// Whether virtio interfaces get several queues by default, for more throughput.
    pub preferred_network_interface_multi_queue: Option<bool>,
    /// TPM device for VMs that configure none.
    #[serde(rename = "preferredTPM")]
    pub preferred_tpm: Option<TpmDevice>,
    /// Makes pod-network interfaces without a binding use NAT (masquerade).
    pub preferred_interface_masquerade: Option<InterfaceMasquerade>,
    /// Model for panic devices that name none; a VM without a panic device gets one.
    pub preferred_panic_device_model: Option<PanicDeviceModel>,
    /// Video card type, such as `virtio`, `vga` or `bochs`, for VMs that name none.
    pub preferred_video_type: Option<String>,
}

/// Hypervisor feature defaults.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeaturePreferences {
    /// ACPI setting; replaces whatever the VM says.
    pub preferred_acpi: Option<FeatureState>,
    /// APIC setting for VMs that have none.
    pub preferred_apic: Option<FeatureApic>,
    /// Hyper-V features to add, each one only if the VM does not set it.
    pub preferred_hyperv: Option<FeatureHyperv>,
    /// KVM visibility setting for VMs that have none.
    pub preferred_kvm: Option<FeatureKvm>,
    /// Paravirtual spinlock setting for VMs that have none.
    pub preferred_pvspinlock: Option<FeatureState>,
    /// System Management Mode setting for VMs that have none; Secure Boot needs it on.
    pub preferred_smm: Option<FeatureState>,
}

/// Boot firmware defaults, applied only to VMs that pick no bootloader.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirmwarePreferences {
    /// True boots VMs that choose no bootloader with BIOS.
    pub preferred_use_bios: Option<bool>,
    /// Whether BIOS messages also go to the serial console; matters only for BIOS guests.
    pub preferred_use_bios_serial: Option<bool>,
    /// Deprecated in favour of `preferredEfi`; true boots with EFI.
    pub preferred_use_efi: Option<bool>,
    /// Deprecated in favour of `preferredEfi`; turns Secure Boot on or off for EFI guests.
    pub preferred_use_secure_boot: Option<bool>,
    /// EFI settings for VMs that choose no bootloader; makes the deprecated EFI fields moot.
    pub preferred_efi: Option<Efi>,
}

/// Machine type defaults.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinePreferences {
    /// Emulated machine, such as `q35` or `pc-q35-rhel9.4.0`, for VMs that name none.
    pub preferred_machine_type: Option<String>,
}

/// Storage defaults for DataVolume templates.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumePreferences {
    /// Storage class for DataVolume templates that name none.
    pub preferred_storage_class_name: Option<String>,
}

/// What a VM, or its instance type, must offer to be allowed to use the preference.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreferenceRequirements {
    /// Smallest acceptable vCPU count.
    pub cpu: Option<CpuPreferenceRequirement>,
    /// Smallest acceptable guest memory.
    pub memory: Option<MemoryPreferenceRequirement>,
    /// CPU architecture the VM must have; any if unset.
    pub architecture: Option<String>,
}

/// Lower bound on vCPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuPreferenceRequirement {
    /// Fewest vCPUs a VM may have.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub guest: i32,
}

/// Lower bound on memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryPreferenceRequirement {
    /// Least guest memory a VM may have, as a quantity such as `2Gi`.
    pub guest: Quantity,
}

open_enum! {
    /// Topology level vCPUs become: `sockets`, `cores`, `threads`, `spread` or `any`; prefer* names are
    /// old.
    pub enum PreferredCpuTopology {
        PreferCores = "preferCores",
        PreferSockets = "preferSockets",
        PreferThreads = "preferThreads",
        PreferSpread = "preferSpread",
        PreferAny = "preferAny",
        Cores = "cores",
        Sockets = "sockets",
        Threads = "threads",
        Spread = "spread",
        Any = "any",
    }
}

open_enum! {
    /// Levels vCPUs are divided over: `SocketsCores`, `SocketsCoresThreads` or `CoresThreads`.
    pub enum SpreadAcross {
        SocketsCoresThreads = "SocketsCoresThreads",
        SocketsCores = "SocketsCores",
        CoresThreads = "CoresThreads",
    }
}
