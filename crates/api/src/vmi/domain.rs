//! The virtual hardware as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::open_enum::open_enum;
use crate::vmi::clock::Clock;
use crate::vmi::cpu::Cpu;
use crate::vmi::devices::Devices;
use crate::vmi::disks::{DiskIoThreads, IoThreadsPolicy};
use crate::vmi::features::Features;
use crate::vmi::firmware::{Chassis, Firmware, Machine};
use crate::vmi::launch_security::LaunchSecurity;
use crate::vmi::memory::{Memory, ResourceRequirements};

/// Virtual hardware of the guest.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DomainSpec {
    /// CPU and memory requests and limits of the launcher pod, before overhead.
    pub resources: Option<ResourceRequirements>,
    /// CPU topology, model and pinning; one core if unset and no CPU resources are given.
    pub cpu: Option<Cpu>,
    /// Guest memory size and hugepages; taken from resources if unset.
    pub memory: Option<Memory>,
    /// QEMU machine type; the cluster default for the architecture if unset.
    pub machine: Option<Machine>,
    /// BIOS or UEFI, firmware UUID, serial and direct kernel boot.
    pub firmware: Option<Firmware>,
    /// Guest clock offset and timers.
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub clock: Option<Clock>,
    /// Hypervisor features such as ACPI, SMM and the Hyper-V enlightenments.
    pub features: Option<Features>,
    /// Disks, network interfaces and other devices; required, but may be empty.
    pub devices: Devices,
    /// How disks use I/O threads: shared, auto or supplementalPool; no I/O threads if unset.
    pub io_threads_policy: Option<IoThreadsPolicy>,
    /// Thread count for the supplementalPool policy.
    pub io_threads: Option<DiskIoThreads>,
    /// SMBIOS chassis information the guest can read.
    pub chassis: Option<Chassis>,
    /// Confidential computing: memory encryption such as AMD SEV; needs matching nodes.
    pub launch_security: Option<LaunchSecurity>,
    /// On guest reboot, `Reboot` in place or `Terminate` the VMI; Reboot if unset, needs a feature gate.
    #[schemars(extend("enum" = ["Reboot", "Terminate"]))]
    pub reboot_policy: Option<RebootPolicy>,
}

open_enum! {
    /// What a guest reboot does: `Reboot` in place, or `Terminate` so a new VMI picks up changes.
    pub enum RebootPolicy {
        Reboot = "Reboot",
        Terminate = "Terminate",
    }
}
