//! The cluster configuration: what `KubeVirt` says, over the defaults.

mod defaults;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::kubevirt::KubeVirt;
use kubevirt_api::kubevirt::configuration::{
    ArchSpecificConfiguration, InstancetypeReferencePolicy, KubeVirtConfiguration, VmRolloutStrategy,
};
use kubevirt_api::kubevirt::devices::PermittedHostDevices;
use kubevirt_api::kubevirt::network::InterfaceBindingPlugin;

use crate::gates::Gate;

/// The architecture that is assumed where nothing says another.
pub const HOST_ARCHITECTURE: &str = match std::env::consts::ARCH.as_bytes() {
    b"aarch64" => "arm64",
    b"s390x" => "s390x",
    _ => "amd64",
};

/// What the installation is set to: every setting has a value, the user's or the default.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    configuration: KubeVirtConfiguration,
    annotations: BTreeMap<String, String>,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self::of(&KubeVirt::default())
    }
}

impl ClusterConfig {
    /// The configuration of an installation.
    pub fn of(kubevirt: &KubeVirt) -> Self {
        // Both sides are our own types, which always serialize.
        let own = kubevirt.spec.configuration.as_ref().and_then(|own| serde_json::to_value(own).ok());
        let mut merged = defaults::under(own.unwrap_or_default());
        let architecture = kubevirt.status.as_ref().and_then(|status| status.default_architecture.clone());
        if let Some(architecture) = architecture.filter(|name| !name.is_empty()) {
            merged["architectureConfiguration"]["defaultArchitecture"] = architecture.into();
        }
        let annotations = kubevirt.metadata.annotations.clone().unwrap_or_default();
        Self { configuration: serde_json::from_value(merged).unwrap_or_default(), annotations }
    }

    /// An annotation of `KubeVirt` itself, which is where experimental settings are made.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }

    /// The whole configuration, defaults filled in.
    pub fn configuration(&self) -> &KubeVirtConfiguration {
        &self.configuration
    }

    /// Whether a feature is on.
    pub fn enabled(&self, gate: Gate) -> bool {
        gate.enabled(self.configuration.developer_configuration.as_ref())
    }

    /// The architecture of VMs that name none.
    pub fn default_architecture(&self) -> &str {
        let architectures = self.configuration.architecture_configuration.as_ref();
        architectures.and_then(|a| a.default_architecture.as_deref()).unwrap_or(HOST_ARCHITECTURE)
    }

    /// The machine type of VMs of this architecture that name none.
    pub fn machine_type(&self, architecture: &str) -> &str {
        let own = self.configuration.machine_type.as_deref();
        own.or_else(|| self.per_architecture(architecture)?.machine_type.as_deref()).unwrap_or_default()
    }

    /// The machine types that VMs of this architecture may name, as globs such as `q35*`.
    pub fn emulated_machines(&self, architecture: &str) -> &[String] {
        let own = self.configuration.emulated_machines.as_deref();
        own.or_else(|| self.per_architecture(architecture)?.emulated_machines.as_deref()).unwrap_or_default()
    }

    fn per_architecture(&self, architecture: &str) -> Option<&ArchSpecificConfiguration> {
        let all = self.configuration.architecture_configuration.as_ref()?;
        match architecture {
            "arm64" => all.arm64.as_ref(),
            "s390x" => all.s390x.as_ref(),
            _ => all.amd64.as_ref(),
        }
    }

    /// The CPU model of VMs that name none, if the cluster sets one.
    pub fn cpu_model(&self) -> Option<&str> {
        self.configuration.cpu_model.as_deref()
    }

    /// The CPU that is requested for each virtual CPU of a VM that requests none.
    pub fn cpu_request(&self) -> Option<&Quantity> {
        self.configuration.cpu_request.as_ref()
    }

    /// Guest memory as a percentage of what is requested for it.
    pub fn memory_overcommit(&self) -> i64 {
        let developer = self.configuration.developer_configuration.as_ref();
        developer.and_then(|developer| developer.memory_overcommit).unwrap_or(100)
    }

    /// Whether disks may hold SCSI reservations that outlive a restart.
    pub fn persistent_reservation(&self) -> bool {
        let own = self.configuration.persistent_reservation_configuration.as_ref();
        own.and_then(|own| own.enabled).unwrap_or_else(|| {
            // The gate is open to all by now, but naming it still turns this on.
            let developer = self.configuration.developer_configuration.as_ref();
            let gates =
                developer.and_then(|developer| developer.feature_gates.as_deref()).unwrap_or_default();
            gates.iter().any(|gate| gate == Gate::PersistentReservation.name())
        })
    }

    /// Host devices that VMs may use.
    pub fn permitted_host_devices(&self) -> Option<&PermittedHostDevices> {
        self.configuration.permitted_host_devices.as_ref()
    }

    /// The network binding plugins, by name.
    pub fn network_bindings(&self) -> Option<&BTreeMap<String, InterfaceBindingPlugin>> {
        self.configuration.network.as_ref()?.binding.as_ref()
    }

    /// The binding of an interface that is added where none is given: bridge or masquerade.
    pub fn default_network_interface(&self) -> &str {
        let network = self.configuration.network.as_ref();
        network.and_then(|network| network.default_network_interface.as_deref()).unwrap_or("bridge")
    }

    /// Whether the pod network may be bound as a bridge.
    pub fn bridge_on_pod_network(&self) -> bool {
        let network = self.configuration.network.as_ref();
        network.and_then(|network| network.permit_bridge_interface_on_pod_network).unwrap_or(true)
    }

    /// Whether changes of a running VM are applied live where they can be.
    pub fn live_update(&self) -> bool {
        self.configuration.vm_rollout_strategy == Some(VmRolloutStrategy::LiveUpdate)
    }

    /// How many times its initial CPUs and memory a VM can be grown to while it runs.
    pub fn max_hotplug_ratio(&self) -> i32 {
        let live = self.configuration.live_update_configuration.as_ref();
        live.and_then(|live| live.max_hotplug_ratio).unwrap_or(4)
    }

    /// The most sockets that a VM can be grown to, if the cluster sets a limit.
    pub fn max_cpu_sockets(&self) -> Option<i32> {
        self.configuration.live_update_configuration.as_ref()?.max_cpu_sockets
    }

    /// The most memory that a VM can be grown to, if the cluster sets a limit.
    pub fn max_guest(&self) -> Option<&Quantity> {
        self.configuration.live_update_configuration.as_ref()?.max_guest.as_ref()
    }

    /// The socket on a node where TDX guests get their quotes made.
    pub fn quote_socket(&self) -> &str {
        let tdx = self.configuration.confidential_compute.as_ref().and_then(|own| own.tdx.as_ref());
        let attestation = tdx.and_then(|tdx| tdx.attestation.as_ref());
        let own = attestation.and_then(|attestation| attestation.qgs_socket_path.as_deref());
        own.unwrap_or("/var/run/tdx-qgs/qgs.socket")
    }

    /// What becomes of references to instance types in stored VMs.
    pub fn instancetype_reference_policy(&self) -> InstancetypeReferencePolicy {
        let instancetype = self.configuration.instancetype.as_ref();
        let policy = instancetype.and_then(|instancetype| instancetype.reference_policy.clone());
        policy.filter(|policy| !policy.is_empty()).unwrap_or(InstancetypeReferencePolicy::Reference)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_user_sets_goes_over_the_default_beside_it() {
        let kubevirt = serde_json::from_value(json!({
            "spec": { "configuration": {
                "developerConfiguration": { "featureGates": ["HostDisk"] },
                "architectureConfiguration": { "amd64": { "machineType": "pc-q35-9.0" } },
            } },
            "status": { "defaultArchitecture": "arm64" },
        }));
        let config = ClusterConfig::of(&kubevirt.unwrap());
        assert!(config.enabled(Gate::HostDisk));
        assert_eq!(config.memory_overcommit(), 100);
        assert_eq!(config.machine_type("amd64"), "pc-q35-9.0");
        assert_eq!(config.emulated_machines("amd64"), ["q35*", "pc-q35*"]);
        assert_eq!(config.default_architecture(), "arm64");
    }
}
