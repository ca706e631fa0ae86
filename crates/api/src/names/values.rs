//! Well-known values of labels and annotations.

/// Values of [`labels::APP`](super::labels::APP) on pods that belong to a machine.
pub mod app {
    /// The pod that runs a guest.
    pub const LAUNCHER: &str = "virt-launcher";
    /// The pod that holds plugged volumes.
    pub const HOTPLUG_DISK: &str = "hotplug-disk";
    /// The pod that serves an export.
    pub const EXPORTER: &str = "virt-exporter";
    /// The pod that writes down an install strategy.
    pub const STRATEGY_DUMPER: &str = "virt-operator-strategy-dumper";
}

/// Values of `app.kubernetes.io/managed-by`.
pub mod managed_by {
    /// Looked after by the operator.
    pub const OPERATOR: &str = "virt-operator";
    /// Looked after by the operator of an older release.
    pub const OPERATOR_OLD: &str = "kubevirt-operator";
}

/// Values of `app.kubernetes.io/component`.
pub mod component {
    /// Part of KubeVirt.
    pub const KUBEVIRT: &str = "kubevirt";
}

/// Values of [`annotations::PCI_TOPOLOGY_VERSION`](super::annotations::PCI_TOPOLOGY_VERSION).
pub mod pci_topology {
    /// Ports are counted from the devices, which moves addresses when these change.
    pub const V2: &str = "v2";
    /// Placeholders keep addresses in place, and further ports follow.
    pub const V3: &str = "v3";
}

/// Values of [`annotations::EVICTION_SOURCE`](super::annotations::EVICTION_SOURCE).
pub mod eviction_source {
    /// The descheduler asked.
    pub const DESCHEDULER: &str = "descheduler";
}

/// Values of [`labels::DEPENDENCY_TYPE`](super::labels::DEPENDENCY_TYPE).
pub mod dependency_type {
    /// Volumes.
    pub const STORAGE: &str = "storage";
    /// Networks.
    pub const NETWORK: &str = "network";
    /// Machines and pods.
    pub const COMPUTE: &str = "compute";
    /// Secrets, config maps, instance types and the like.
    pub const CONFIG: &str = "config";
}

/// Where the status of an interface comes from; several are joined by commas.
pub mod info_source {
    /// The machine has it.
    pub const DOMAIN: &str = "domain";
    /// The guest agent tells of it.
    pub const GUEST_AGENT: &str = "guest-agent";
    /// The pod has it.
    pub const MULTUS_STATUS: &str = "multus-status";
}
