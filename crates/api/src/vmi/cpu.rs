//! CPU topology, model, features, NUMA and realtime.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Virtual CPU layout, model and placement; vCPUs are sockets times cores times threads.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cpu {
    /// Cores per socket the guest sees; 1 if unset.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub cores: Option<i32>,
    /// Sockets the guest sees; 1 if unset, and can be raised live up to `maxSockets`.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub sockets: Option<i32>,
    /// Upper limit for CPU hotplug; by default a multiple (normally 4) of `sockets`.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub max_sockets: Option<i32>,
    /// Threads per core the guest sees; 1 if unset.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub threads: Option<i32>,
    /// libvirt CPU model, `host-model` (the usual default) or `host-passthrough`; limits where the VM can
    /// run.
    pub model: Option<String>,
    /// Single CPU flags to add to or remove from the model.
    pub features: Option<Vec<CpuFeature>>,
    /// Pin each vCPU to a host CPU of its own; needs a node with the static CPU manager.
    pub dedicated_cpu_placement: Option<bool>,
    /// NUMA layout of the guest.
    pub numa: Option<Numa>,
    /// Reserve extra host CPU for QEMU's own threads; needs `dedicatedCpuPlacement`.
    pub isolate_emulator_thread: Option<bool>,
    /// Tune for low latency; needs `dedicatedCpuPlacement` and NUMA passthrough.
    pub realtime: Option<Realtime>,
}

/// One CPU flag and how to treat it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuFeature {
    /// Flag name as libvirt spells it, such as `vmx` or `apic`.
    pub name: String,
    /// One of `force`, `require` (default), `optional`, `disable` or `forbid`.
    pub policy: Option<String>,
}

/// Guest NUMA layout.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Numa {
    /// Mirror the pinned host CPUs' NUMA nodes; needs dedicated CPUs and hugepages.
    pub guest_mapping_passthrough: Option<NumaGuestMappingPassthrough>,
}

/// Switch that mirrors host NUMA nodes in the guest; has no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumaGuestMappingPassthrough {}

/// Low-latency tuning of vCPUs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Realtime {
    /// vCPUs to run with real-time priority, such as `0-3,^1`; all if unset.
    pub mask: Option<String>,
}
