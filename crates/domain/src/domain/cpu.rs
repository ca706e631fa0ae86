//! Virtual CPUs: how many, of what kind, and what the hypervisor tells them.

use serde::{Deserialize, Serialize};

/// Virtual CPUs of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cpu {
    /// What the VMI asks for, such as `host-model,vmx=optional`; what comes of it depends on the host.
    pub asked: String,
    /// QEMU's name of the model, or `host` or `max`.
    pub model: String,
    /// Flags that differ from the model, in the order given.
    pub features: Vec<CpuFeature>,
    /// Sockets, cores and threads.
    pub topology: Topology,
    /// What KVM and the board tell the guest.
    pub hints: CpuHints,
    /// Hyper-V enlightenments.
    pub hyperv: Hyperv,
    /// Frequency of the time stamp counter in Hz, where it is fixed.
    pub tsc_frequency: Option<i64>,
}

impl Cpu {
    /// Whether it is the CPU of the host where the machine began, in words that mean the same on any other.
    pub fn is_of_host(&self) -> bool {
        matches!(self.asked.as_str(), "" | "host-model") && !matches!(self.model.as_str(), "host" | "max")
    }
}

/// One CPU flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuFeature {
    /// Name as QEMU spells it.
    pub name: String,
    /// Whether the guest has it.
    pub enabled: bool,
}

/// Sockets, cores and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Topology {
    /// Sockets that have CPUs at start.
    pub sockets: u32,
    /// Sockets there can be.
    pub max_sockets: u32,
    /// Cores of a socket.
    pub cores: u32,
    /// Threads of a core.
    pub threads: u32,
}

impl Default for Topology {
    fn default() -> Self {
        Self { sockets: 1, max_sockets: 1, cores: 1, threads: 1 }
    }
}

impl Topology {
    /// Virtual CPUs at start.
    pub fn vcpus(&self) -> u32 {
        self.sockets.saturating_mul(self.per_socket())
    }

    /// Virtual CPUs there can be.
    pub fn max_vcpus(&self) -> u32 {
        self.max_sockets.saturating_mul(self.per_socket())
    }

    /// Virtual CPUs of one socket.
    pub fn per_socket(&self) -> u32 {
        self.cores.saturating_mul(self.threads)
    }
}

/// What KVM and the board tell the guest; unset is QEMU's own choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CpuHints {
    /// The guest cannot see that it runs on KVM.
    pub kvm_hidden: bool,
    /// KVM's paravirtual clock.
    pub kvm_clock: Option<bool>,
    /// Paravirtual spinlocks.
    pub pv_spinlock: Option<bool>,
    /// Paravirtual end of interrupt.
    pub pv_eoi: Option<bool>,
    /// Tells the guest that each of its CPUs is a host CPU of its own.
    pub dedicated: bool,
    /// Performance counters.
    pub pmu: Option<bool>,
    /// The local interrupt controller.
    pub apic: Option<bool>,
}

/// Hyper-V enlightenments; unset is QEMU's own choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hyperv {
    /// All that the host has.
    pub passthrough: bool,
    /// Switches, by QEMU's property name, in the order of the API.
    pub switches: Vec<CpuFeature>,
    /// Attempts at a lock before the host is told.
    pub spinlocks: Option<u32>,
    /// Vendor that the guest reads.
    pub vendor_id: Option<String>,
}
