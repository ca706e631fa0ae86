//! Sizes for virtual machines: `VirtualMachineInstancetype`, per namespace and cluster-wide.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::kind::kind;
use crate::vmi::cpu::{Numa, Realtime};
use crate::vmi::disks::{DiskIoThreads, IoThreadsPolicy};
use crate::vmi::host_devices::{Gpu, HostDevice};
use crate::vmi::launch_security::LaunchSecurity;
use crate::vmi::memory::Hugepages;

kind! {
    /// Reusable VM size for one namespace: CPU, memory and devices that a VM takes by name.
    VirtualMachineInstancetype: INSTANCETYPE, "v1beta1", "virtualmachineinstancetypes", NamespaceResourceScope;
    spec: VirtualMachineInstancetypeSpec
}

kind! {
    /// Reusable VM size for the whole cluster: CPU, memory and devices that a VM takes by name.
    VirtualMachineClusterInstancetype: INSTANCETYPE, "v1beta1", "virtualmachineclusterinstancetypes", ClusterResourceScope;
    spec: VirtualMachineInstancetypeSpec
}

/// Resources and placement a VM takes over; the VM cannot set the same fields itself.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineInstancetypeSpec {
    /// Labels a node must have to run the VM.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Scheduler that places the VM; the cluster's default if unset.
    pub scheduler_name: Option<String>,
    /// Number of vCPUs and how they are placed.
    pub cpu: CpuInstancetype,
    /// Amount of guest memory and how it is backed.
    pub memory: MemoryInstancetype,
    /// GPUs passed through to the guest.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub gpus: Option<Vec<Gpu>>,
    /// Host devices passed through to the guest.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub host_devices: Option<Vec<HostDevice>>,
    /// How disks share I/O threads: `shared`, `auto` or `supplementalPool`; none if unset.
    pub io_threads_policy: Option<IoThreadsPolicy>,
    /// Size of the I/O thread pool; used with the `supplementalPool` policy.
    pub io_threads: Option<DiskIoThreads>,
    /// Confidential computing settings such as SEV; deprecated here, so prefer the VM's own.
    pub launch_security: Option<LaunchSecurity>,
    /// Annotations added to the running VM instance.
    pub annotations: Option<BTreeMap<String, String>>,
}

/// CPU part of an instance type.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuInstancetype {
    /// Number of vCPUs; a preference decides whether they appear as sockets, cores or threads.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub guest: i32,
    /// CPU model, e.g. `host-passthrough`, `host-model` or a libvirt name; host-model if unset.
    pub model: Option<String>,
    /// Pins each vCPU to a host CPU of its own; needs nodes with the CPU manager enabled.
    #[serde(rename = "dedicatedCPUPlacement")]
    pub dedicated_cpu_placement: Option<bool>,
    /// Guest NUMA layout, e.g. mirroring the host's.
    pub numa: Option<Numa>,
    /// Reserves one more host CPU for QEMU's own thread; needs dedicated CPUs.
    pub isolate_emulator_thread: Option<bool>,
    /// Tunes the vCPUs for low latency; needs dedicated CPUs and suitable nodes.
    pub realtime: Option<Realtime>,
    /// Most sockets CPU hotplug can reach; takes effect at boot.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub max_sockets: Option<i32>,
}

/// Memory part of an instance type.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryInstancetype {
    /// Memory the guest sees, e.g. `4Gi`.
    pub guest: Quantity,
    /// Backs guest memory with huge pages of the given size; nodes must have them set aside.
    pub hugepages: Option<Hugepages>,
    /// Percentage, 0 to 100, left out of the pod's memory request; 0 if unset, and high values risk OOM
    /// kills.
    #[schemars(extend("format" = null, "minimum" = 0, "maximum" = 100))]
    pub overcommit_percent: Option<i64>,
    /// Most memory hotplug can reach; must be at least `guest`.
    pub max_guest: Option<Quantity>,
}
