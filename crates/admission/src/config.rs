//! The cluster configuration: what `KubeVirt` says, over the defaults.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::kubevirt::KubeVirt;
use kubevirt_api::kubevirt::configuration::{
    ArchSpecificConfiguration, InstancetypeReferencePolicy, KubeVirtConfiguration, VmRolloutStrategy,
};
use kubevirt_api::kubevirt::devices::PermittedHostDevices;
use kubevirt_api::kubevirt::network::InterfaceBindingPlugin;
use kubevirt_api::names::taints;
use serde_json::{Value, json};

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
        let mut merged = defaults();
        // Both sides are our own types, which always serialize.
        if let Some(Ok(mut own)) = kubevirt.spec.configuration.as_ref().map(serde_json::to_value) {
            remove_unset(&mut own);
            merge(&mut merged, own);
        }
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

/// What holds where `KubeVirt` says nothing.
fn defaults() -> Value {
    let limiter = |qps: u32, burst: u32| json!({ "restClient": { "rateLimiter": { "tokenBucketRateLimiter": { "qps": qps, "burst": burst } } } });
    let machine = |firmware: &str, machines: &[&str], machine: &str| json!({ "ovmfPath": firmware, "emulatedMachines": machines, "machineType": machine });
    json!({
        "imagePullPolicy": "IfNotPresent",
        "developerConfiguration": {
            "useEmulation": false,
            "memoryOvercommit": 100,
            "pvcTolerateLessSpaceUpToPercent": 10,
            "minimumReservePVCBytes": 131_072,
            "cpuAllocationRatio": 10,
            "diskVerification": { "memoryLimit": "2000Mi" },
            "logVerbosity": {
                "virtAPI": 2, "virtOperator": 2, "virtController": 2, "virtHandler": 2, "virtLauncher": 2,
            },
        },
        "evictionStrategy": "None",
        "migrations": {
            "parallelMigrationsPerCluster": 5,
            "parallelOutboundMigrationsPerNode": 2,
            "nodeDrainTaintKey": taints::DRAIN,
            "bandwidthPerMigration": "0Mi",
            "progressTimeout": 150,
            "completionTimeoutPerGiB": 150,
            "maxDowntimeMs": 900,
            "utilityVolumesTimeout": 150,
            "unsafeMigrationOverride": false,
            "allowAutoConverge": false,
            "allowPostCopy": false,
        },
        "cpuRequest": "100m",
        "network": {
            "defaultNetworkInterface": "bridge",
            "permitSlirpInterface": false,
            "permitBridgeInterfaceOnPodNetwork": true,
        },
        "smbios": { "family": "KubeVirt", "manufacturer": "KubeVirt", "product": "None" },
        "supportedGuestAgentVersions": ["2.*", "3.*", "4.*", "5.*"],
        "memBalloonStatsPeriod": 10,
        "apiConfiguration": limiter(200, 400),
        "controllerConfiguration": limiter(200, 400),
        "handlerConfiguration": limiter(50, 100),
        "webhookConfiguration": limiter(200, 400),
        "architectureConfiguration": {
            "amd64": machine("/usr/share/edk2/ovmf", &["q35*", "pc-q35*"], "q35"),
            "arm64": machine("/usr/share/AAVMF", &["virt*"], "virt"),
            "s390x": machine("", &["s390-ccw-virtio*"], "s390-ccw-virtio"),
            "defaultArchitecture": HOST_ARCHITECTURE,
        },
        "liveUpdateConfiguration": { "maxHotplugRatio": 4 },
        "vmRolloutStrategy": "LiveUpdate",
        "hypervisors": [{ "name": "kvm" }],
    })
}

/// Settings where a zero or an empty text is not stored by the original, so that the default holds.
///
/// Of the others a zero is a choice, such as no timeout or no bridges on the pod network.
const UNSET_IF_ZERO: [&str; 22] = [
    "cpuAllocationRatio",
    "cpuModel",
    "defaultArchitecture",
    "defaultNetworkInterface",
    "defaultRuntimeClass",
    "family",
    "imagePullPolicy",
    "machineType",
    "manufacturer",
    "maxHotplugRatio",
    "memoryOvercommit",
    "minimumReservePVCBytes",
    "ovmfPath",
    "product",
    "pvcTolerateLessSpaceUpToPercent",
    "selinuxLauncherType",
    "virtAPI",
    "virtController",
    "virtHandler",
    "virtLauncher",
    "virtOperator",
    "vmStateStorageClass",
];

/// Removes what counts as not set: such zeros, and lists without items.
fn remove_unset(settings: &mut Value) {
    let Value::Object(settings) = settings else { return };
    settings.retain(|name, value| match value {
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !(text.is_empty() && UNSET_IF_ZERO.contains(&name.as_str())),
        Value::Number(number) => !(number.as_f64() == Some(0.0) && UNSET_IF_ZERO.contains(&name.as_str())),
        _ => true,
    });
    settings.values_mut().for_each(remove_unset);
}

/// Lays `over` onto `base`: objects field by field, anything else whole.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_a_configuration_that_loses_nothing() {
        let back = serde_json::to_value(ClusterConfig::default().configuration()).unwrap();
        let integers = |value: &Value| value.to_string().replace(".0,", ",").replace(".0}", "}");
        assert_eq!(integers(&back), integers(&defaults()));
    }

    #[test]
    fn a_zero_that_means_nothing_leaves_the_default() {
        let developer = |field: &str, value: Value| json!({ "developerConfiguration": { field: value } });
        let migrations = |field: &str, value: Value| json!({ "migrations": { field: value } });
        let at = |section: &str, field: &str| format!("/{section}/{field}");
        let cases = [
            (
                developer("memoryOvercommit", json!(0)),
                at("developerConfiguration", "memoryOvercommit"),
                json!(100),
            ),
            (
                developer("memoryOvercommit", json!(150)),
                at("developerConfiguration", "memoryOvercommit"),
                json!(150),
            ),
            (
                developer("cpuAllocationRatio", json!(0)),
                at("developerConfiguration", "cpuAllocationRatio"),
                json!(10),
            ),
            (
                developer("cpuAllocationRatio", json!(1)),
                at("developerConfiguration", "cpuAllocationRatio"),
                json!(1),
            ),
            (
                developer("pvcTolerateLessSpaceUpToPercent", json!(0)),
                at("developerConfiguration", "pvcTolerateLessSpaceUpToPercent"),
                json!(10),
            ),
            (
                developer("minimumReservePVCBytes", json!(0)),
                at("developerConfiguration", "minimumReservePVCBytes"),
                json!(131_072),
            ),
            (
                developer("logVerbosity", json!({ "virtHandler": 0, "virtAPI": 5 })),
                at("developerConfiguration", "logVerbosity"),
                json!({ "virtAPI": 5, "virtOperator": 2, "virtController": 2, "virtHandler": 2, "virtLauncher": 2 }),
            ),
            (json!({ "imagePullPolicy": "" }), "/imagePullPolicy".into(), json!("IfNotPresent")),
            (
                json!({ "network": { "defaultNetworkInterface": "" } }),
                at("network", "defaultNetworkInterface"),
                json!("bridge"),
            ),
            (
                json!({ "network": { "permitBridgeInterfaceOnPodNetwork": false } }),
                at("network", "permitBridgeInterfaceOnPodNetwork"),
                json!(false),
            ),
            (
                json!({ "smbios": { "family": "", "product": "Own" } }),
                "/smbios".into(),
                json!({ "family": "KubeVirt", "manufacturer": "KubeVirt", "product": "Own" }),
            ),
            (
                json!({ "architectureConfiguration": { "amd64": { "machineType": "", "emulatedMachines": [] } } }),
                at("architectureConfiguration", "amd64"),
                json!({
                    "ovmfPath": "/usr/share/edk2/ovmf", "emulatedMachines": ["q35*", "pc-q35*"], "machineType": "q35",
                }),
            ),
            (
                json!({ "liveUpdateConfiguration": { "maxHotplugRatio": 0 } }),
                at("liveUpdateConfiguration", "maxHotplugRatio"),
                json!(4),
            ),
            (
                json!({ "liveUpdateConfiguration": { "maxCpuSockets": 0 } }),
                at("liveUpdateConfiguration", "maxCpuSockets"),
                json!(0),
            ),
            (json!({ "hypervisors": [] }), "/hypervisors".into(), json!([{ "name": "kvm" }])),
            (json!({ "cpuModel": "" }), "/cpuModel".into(), Value::Null),
            (json!({ "memBalloonStatsPeriod": 0 }), "/memBalloonStatsPeriod".into(), json!(0)),
            (migrations("progressTimeout", json!(0)), at("migrations", "progressTimeout"), json!(0)),
            (migrations("nodeDrainTaintKey", json!("")), at("migrations", "nodeDrainTaintKey"), json!("")),
            (json!({ "evictionStrategy": "" }), "/evictionStrategy".into(), json!("")),
        ];
        for (configuration, pointer, expected) in cases {
            let kubevirt = json!({ "spec": { "configuration": configuration } });
            let config = ClusterConfig::of(&serde_json::from_value(kubevirt).unwrap());
            let merged = serde_json::to_value(config.configuration()).unwrap();
            let found = merged.pointer(&pointer).cloned().unwrap_or_default();
            assert_eq!(found, expected, "{configuration}");
        }
    }

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
