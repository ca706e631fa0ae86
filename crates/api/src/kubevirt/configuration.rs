//! Cluster-wide settings.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::kubevirt::devices::{MediatedDevicesConfiguration, PermittedHostDevices};
use crate::kubevirt::migrations::MigrationConfiguration;
use crate::kubevirt::network::{NetworkConfiguration, ResourceRequirementsWithoutClaims};
use crate::open_enum::open_enum;
use crate::vmi::EvictionStrategy;

/// Cluster-wide settings for how KubeVirt and its virtual machines behave.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeVirtConfiguration {
    /// CPU model for VMs that name none; `host-model` if unset.
    pub cpu_model: Option<String>,
    /// CPU requested for VMs that ask for no specific amount; 100m if unset, ignored for dedicated CPUs.
    pub cpu_request: Option<Quantity>,
    /// Feature gates, overcommit, log levels and other tuning for developers and admins.
    pub developer_configuration: Option<DeveloperConfiguration>,
    /// Deprecated: accepted machine type globs for all architectures; use `architectureConfiguration`.
    pub emulated_machines: Option<Vec<String>>,
    /// Pull policy of launcher and exporter pods: Always, IfNotPresent (default) or Never.
    #[schemars(extend("x-strict" = { "enum": ["Always", "IfNotPresent", "Never"] }))]
    pub image_pull_policy: Option<String>,
    /// Limits and defaults for live migrations; a matching MigrationPolicy overrides some of them.
    pub migrations: Option<MigrationConfiguration>,
    /// Deprecated: default machine type for all architectures; use `architectureConfiguration`.
    pub machine_type: Option<String>,
    /// Default interface binding, permitted bindings and registered binding plugins.
    pub network: Option<NetworkConfiguration>,
    /// Deprecated: UEFI firmware directory for all architectures; use `architectureConfiguration`.
    pub ovmf_path: Option<String>,
    /// SELinux type of the virt-launcher compute container; left to the container runtime if empty.
    pub selinux_launcher_type: Option<String>,
    /// RuntimeClass for virt-launcher pods; the node's default runtime if empty.
    pub default_runtime_class: Option<String>,
    /// Vendor and product strings guests read from their SMBIOS tables.
    pub smbios: Option<SmBiosConfiguration>,
    /// Machine types and firmware paths, one set per CPU architecture.
    pub architecture_configuration: Option<ArchConfiguration>,
    /// What a node drain does to VMs that set no strategy themselves; `None` if unset.
    pub eviction_strategy: Option<EvictionStrategy>,
    /// Decimal multiplier on the estimated per-VM memory overhead, such as "1.5"; 1 if unset.
    pub additional_guest_memory_overhead_ratio: Option<String>,
    /// CPU and memory for helper containers, one entry per container type; built-in values otherwise.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub support_container_resources: Option<Vec<SupportContainerResources>>,
    /// Deprecated: version globs of the QEMU guest agent once treated as supported.
    pub supported_guest_agent_versions: Option<Vec<String>>,
    /// Seconds between guest memory statistics from the balloon; 10 if unset, 0 turns them off.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub mem_balloon_stats_period: Option<i32>,
    /// Host PCI, mediated and USB devices that VMs may be given.
    pub permitted_host_devices: Option<PermittedHostDevices>,
    /// Mediated device (vGPU) types that nodes should create.
    pub mediated_devices_configuration: Option<MediatedDevicesConfiguration>,
    /// Deprecated and without effect; formerly the oldest CPU model to consider.
    #[serde(rename = "minCPUModel")]
    pub min_cpu_model: Option<String>,
    /// CPU models to hide from node labels, each mapped to true; a built-in list if unset.
    #[serde(rename = "obsoleteCPUModels")]
    pub obsolete_cpu_models: Option<BTreeMap<String, bool>>,
    /// Most VMs a node can run, set through its KVM device count; 1000 if unset.
    #[schemars(extend("format" = null))]
    pub virtual_machine_instances_per_node: Option<i64>,
    /// Client settings of virt-api, applied without a restart.
    pub api_configuration: Option<ReloadableComponentConfiguration>,
    /// Client settings of the admission webhooks, applied without a restart.
    pub webhook_configuration: Option<ReloadableComponentConfiguration>,
    /// Client settings of virt-controller, applied without a restart.
    pub controller_configuration: Option<ReloadableComponentConfiguration>,
    /// Client settings of virt-handler, applied without a restart.
    pub handler_configuration: Option<ReloadableComponentConfiguration>,
    /// Oldest TLS version and the ciphers KubeVirt's own endpoints accept.
    pub tls_configuration: Option<TlsConfiguration>,
    /// Seccomp profile for virt-launcher pods.
    pub seccomp_configuration: Option<SeccompConfiguration>,
    /// StorageClass for persistent TPM and EFI state; the default virtualization or cluster class if empty.
    pub vm_state_storage_class: Option<String>,
    /// Features to switch off for every VM in the cluster.
    pub virtual_machine_options: Option<VirtualMachineOptions>,
    /// Nodes on which kernel same-page merging is turned on; none if unset.
    pub ksm_configuration: Option<KsmConfiguration>,
    /// Namespaces whose VMs get a CPU limit equal to their vCPU count, dedicated CPUs excepted.
    #[serde(rename = "autoCPULimitNamespaceLabelSelector")]
    pub auto_cpu_limit_namespace_label_selector: Option<LabelSelector>,
    /// Ceilings for CPU and memory hotplug on VMs that set none.
    pub live_update_configuration: Option<LiveUpdateConfiguration>,
    /// When edits reach a running VM: `LiveUpdate` at once where possible (default), `Stage` at next
    /// restart.
    #[schemars(extend("nullable" = true, "enum" = ["Stage", "LiveUpdate"]))]
    pub vm_rollout_strategy: Option<VmRolloutStrategy>,
    /// Whether the stock cluster instance types and preferences are installed.
    #[schemars(extend("nullable" = true))]
    pub common_instancetypes_deployment: Option<CommonInstancetypesDeployment>,
    /// Whether the virt-template components are installed; needs the Template feature gate.
    #[schemars(extend("nullable" = true))]
    pub virt_template_deployment: Option<VirtTemplateDeployment>,
    /// How VMs keep hold of their instance type and preference.
    #[schemars(extend("nullable" = true))]
    pub instancetype: Option<InstancetypeConfiguration>,
    /// Hypervisor the nodes run, at most one entry; needs the ConfigurableHypervisor feature gate.
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "maxItems" = 1))]
    pub hypervisors: Option<Vec<HypervisorConfiguration>>,
    /// Which VMs track changed disk blocks, a precondition for incremental backups.
    #[schemars(extend("nullable" = true))]
    pub changed_block_tracking_label_selectors: Option<ChangedBlockTrackingSelectors>,
    /// Whether VMs may use SCSI persistent reservations on LUN disks.
    #[schemars(extend("nullable" = true))]
    pub persistent_reservation_configuration: Option<PersistentReservationConfiguration>,
    /// Host services for confidential VMs, currently Intel TDX only.
    #[schemars(extend("nullable" = true))]
    pub confidential_compute: Option<ConfidentialComputeConfiguration>,
    /// Whether admin, edit and view roles gain KubeVirt rights: `AggregateToDefault` (default) or `Manual`.
    #[schemars(extend("enum" = ["AggregateToDefault", "Manual"]))]
    pub role_aggregation_strategy: Option<RoleAggregationStrategy>,
}

/// Feature gates and low-level tuning that most clusters leave alone.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeveloperConfiguration {
    /// Feature gates to turn on by name; must not overlap with `disabledFeatureGates`.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub feature_gates: Option<Vec<String>>,
    /// Feature gates to turn off by name; must not overlap with `featureGates`.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub disabled_feature_gates: Option<Vec<String>>,
    /// Percent by which a PVC may fall short of the disk size asked for, 0 to 100; 10 if unset.
    #[schemars(extend("format" = null))]
    pub pvc_tolerate_less_space_up_to_percent: Option<i64>,
    /// Bytes kept free on a PVC when a disk image is created on it; 131072 if unset.
    #[serde(rename = "minimumReservePVCBytes")]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub minimum_reserve_pvc_bytes: Option<i64>,
    /// Guest memory as a percent of pod memory, at least 10; 100 if unset, above it risks OOM kills.
    #[schemars(extend("format" = null, "minimum" = 10))]
    pub memory_overcommit: Option<i64>,
    /// Node labels every VM must match in addition to its own selector; none if unset.
    pub node_selectors: Option<BTreeMap<String, String>>,
    /// Run VMs in slow software emulation on nodes without hardware virtualization; false if unset.
    pub use_emulation: Option<bool>,
    /// vCPUs sharing one requested physical CPU; 10 if unset, ignored for dedicated CPUs.
    #[schemars(extend("format" = null))]
    pub cpu_allocation_ratio: Option<i64>,
    /// TSC frequency in Hz taken as the cluster's lowest; detected from the nodes if unset.
    #[serde(rename = "minimumClusterTSCFrequency")]
    pub minimum_cluster_tsc_frequency: Option<i64>,
    /// Limits on the check run over container disk images before use.
    pub disk_verification: Option<DiskVerification>,
    /// Log level of each KubeVirt component, overridable per node.
    pub log_verbosity: Option<LogVerbosity>,
    /// Let pprof profiles be taken of the control plane; false if unset.
    pub cluster_profiler: Option<bool>,
}

/// Limits on the process that inspects container disk images.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskVerification {
    /// Most memory the image inspection may use; 2000Mi if `diskVerification` is unset.
    pub memory_limit: Quantity,
}

/// Log levels by component; higher numbers log more.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogVerbosity {
    /// Log level of virt-api; 2 if unset.
    #[serde(rename = "virtAPI")]
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub virt_api: Option<i64>,
    /// Log level of virt-controller; 2 if unset.
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub virt_controller: Option<i64>,
    /// Log level of virt-handler; 2 if unset.
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub virt_handler: Option<i64>,
    /// Log level of virt-launcher pods; 2 if unset.
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub virt_launcher: Option<i64>,
    /// Log level of virt-operator; 2 if unset.
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub virt_operator: Option<i64>,
    /// Log level of the controller that coordinates migrations between clusters.
    #[schemars(extend("format" = null))]
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub virt_synchronization_controller: Option<i64>,
    /// Log level by node name, replacing the component levels on that node.
    #[schemars(extend("additionalProperties" = { "type": "integer" }))]
    #[schemars(extend("x-strict" = { "additionalProperties": { "type": "integer", "minimum": 0 } }))]
    pub node_verbosity: Option<BTreeMap<String, i64>>,
}

/// System identification strings shown to guests through SMBIOS.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SmBiosConfiguration {
    /// System manufacturer the guest sees; `KubeVirt` if unset.
    pub manufacturer: Option<String>,
    /// System product name the guest sees; `None` if unset.
    pub product: Option<String>,
    /// System version string the guest sees.
    pub version: Option<String>,
    /// System SKU number the guest sees.
    pub sku: Option<String>,
    /// System family the guest sees; `KubeVirt` if unset.
    pub family: Option<String>,
}

/// Machine and firmware defaults by CPU architecture.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArchConfiguration {
    /// Settings for x86-64 guests.
    pub amd64: Option<ArchSpecificConfiguration>,
    /// Settings for 64-bit Arm guests.
    pub arm64: Option<ArchSpecificConfiguration>,
    /// Settings for little-endian POWER guests; no longer used.
    pub ppc64le: Option<ArchSpecificConfiguration>,
    /// Settings for IBM Z guests.
    pub s390x: Option<ArchSpecificConfiguration>,
    /// Architecture of VMs that name none; that of the virt-operator binary if unset.
    pub default_architecture: Option<String>,
}

/// Machine types and firmware location for one CPU architecture.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArchSpecificConfiguration {
    /// Directory in the launcher image with UEFI firmware, such as /usr/share/edk2/ovmf on amd64.
    pub ovmf_path: Option<String>,
    /// Globs of machine types VMs may use, such as `q35*` and `pc-q35*` on amd64.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub emulated_machines: Option<Vec<String>>,
    /// Machine type for VMs that name none: q35 (amd64), virt (arm64), s390-ccw-virtio (s390x) if unset.
    pub machine_type: Option<String>,
}

/// CPU and memory for one type of helper container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupportContainerResources {
    /// Helper container type these resources go to; each type may appear once.
    pub type_: SupportContainerType,
    /// Requests and limits that replace the built-in ones.
    pub resources: ResourceRequirementsWithoutClaims,
}

/// Settings a component picks up while running.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReloadableComponentConfiguration {
    /// How the component talks to the Kubernetes API server.
    pub rest_client: Option<RestClientConfiguration>,
}

/// Kubernetes API client settings.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestClientConfiguration {
    /// Throttling of the component's requests to the API server.
    pub rate_limiter: Option<RateLimiter>,
}

/// Choice of client-side request throttling.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimiter {
    /// Steady request rate with room for short bursts.
    pub token_bucket_rate_limiter: Option<TokenBucketRateLimiter>,
}

/// Token bucket throttle for API requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenBucketRateLimiter {
    /// Sustained requests per second; components default to 200, virt-handler to 50.
    pub qps: f64,
    /// Requests that may be sent at once above the rate; components default to 400, virt-handler to 100.
    #[schemars(extend("format" = null))]
    pub burst: i64,
}

/// TLS policy of KubeVirt's own servers.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TlsConfiguration {
    /// Oldest TLS version accepted, `VersionTLS10` to `VersionTLS13`; 1.2 if unset.
    #[serde(rename = "minTLSVersion")]
    #[schemars(extend("enum" = ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"]))]
    pub min_tls_version: Option<TlsProtocolVersion>,
    /// IANA names of allowed cipher suites; only valid with a minimum version of TLS 1.0 to 1.2.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub ciphers: Option<Vec<String>>,
}

/// Seccomp settings by kind of workload.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeccompConfiguration {
    /// Seccomp profile for the pods that run VMs.
    pub virtual_machine_instance_profile: Option<VmiSeccompProfile>,
}

/// Seccomp profile for virt-launcher pods.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VmiSeccompProfile {
    /// Profile to apply; pods get none from KubeVirt if unset.
    pub custom_profile: Option<CustomProfile>,
}

/// A seccomp profile; set one of the two fields, not both.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomProfile {
    /// Profile file on the node, relative to the kubelet's seccomp directory.
    pub localhost_profile: Option<String>,
    /// Use the container runtime's default profile; false if unset.
    pub runtime_default_profile: Option<bool>,
}

/// Features that can be switched off cluster-wide.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineOptions {
    /// When present, guests stop handing unused memory pages back to the host.
    pub disable_free_page_reporting: Option<DisableFreePageReporting>,
    /// When present, serial console output is not logged unless a VM asks for it.
    pub disable_serial_console_log: Option<DisableSerialConsoleLog>,
}

/// Empty marker; its presence turns free page reporting off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisableFreePageReporting {}

/// Empty marker; its presence turns serial console logging off by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisableSerialConsoleLog {}

/// Where kernel same-page merging is managed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KsmConfiguration {
    /// Nodes to turn KSM on for; an empty selector matches all nodes.
    pub node_label_selector: Option<LabelSelector>,
}

/// Hotplug ceilings for VMs that do not set their own.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveUpdateConfiguration {
    /// Ceiling as a multiple of starting CPU sockets or memory when no maximum is set; 4 if unset.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub max_hotplug_ratio: Option<i32>,
    /// Most CPU sockets a VM can grow to; raised to its own count for VMs that start with more.
    #[schemars(extend("x-strict" = { "minimum": 0 }))]
    pub max_cpu_sockets: Option<i32>,
    /// Most memory a VM can grow to, such as 8Gi.
    pub max_guest: Option<Quantity>,
}

/// Installation of the stock instance types and preferences.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommonInstancetypesDeployment {
    /// Install the stock instance types and preferences; true if unset.
    #[schemars(extend("nullable" = true))]
    pub enabled: Option<bool>,
}

/// Installation of the virt-template components.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtTemplateDeployment {
    /// Install virt-template; true if unset, provided the Template feature gate is on.
    #[schemars(extend("nullable" = true))]
    pub enabled: Option<bool>,
}

/// Cluster policy for instance types and preferences.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstancetypeConfiguration {
    /// How a VM keeps its instance type: `reference` (default), `expand` or `expandAll`.
    #[schemars(extend("nullable" = true, "enum" = ["reference", "expand", "expandAll"]))]
    pub reference_policy: Option<InstancetypeReferencePolicy>,
}

/// A hypervisor present on the cluster's nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HypervisorConfiguration {
    /// Hypervisor in use: `kvm` or `hyperv-direct`.
    #[schemars(extend("enum" = ["kvm", "hyperv-direct"]))]
    pub name: Option<String>,
}

/// Selectors for VMs that track changed blocks; matching either one is enough.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedBlockTrackingSelectors {
    /// Track changed blocks for every VM in namespaces with these labels.
    pub namespace_label_selector: Option<LabelSelector>,
    /// Track changed blocks for VMs with these labels.
    pub virtual_machine_label_selector: Option<LabelSelector>,
}

/// Support for SCSI persistent reservations.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentReservationConfiguration {
    /// Run the pr-helper container next to virt-handler on each node; false if unset.
    #[schemars(extend("nullable" = true))]
    pub enabled: Option<bool>,
}

/// Cluster settings for confidential VMs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfidentialComputeConfiguration {
    /// Settings for Intel TDX guests.
    #[schemars(extend("nullable" = true))]
    pub tdx: Option<TdxConfiguration>,
}

/// Intel TDX settings.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TdxConfiguration {
    /// How TDX guests reach the host's quote generation service.
    pub attestation: Option<TdxAttestationConfiguration>,
}

/// Access to the quote generation service (QGS) used in TDX attestation.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TdxAttestationConfiguration {
    /// Schedule TDX VMs only on nodes where QGS is available; false if unset.
    #[schemars(extend("default" = false))]
    pub enforced: Option<bool>,
    /// QGS socket on the node; /var/run/tdx-qgs/qgs.socket if unset.
    #[schemars(extend("default" = "/var/run/tdx-qgs/qgs.socket"))]
    pub qgs_socket_path: Option<String>,
}

open_enum! {
    /// Helper container: hotplug-disk, container-disk, virtiofs, sidecar, vmexport or guest-console-log.
    pub enum SupportContainerType {
        HotplugDisk = "hotplug-disk",
        ContainerDisk = "container-disk",
        Virtiofs = "virtiofs",
        Sidecar = "sidecar",
        Vmexport = "vmexport",
        GuestConsoleLog = "guest-console-log",
    }
}

open_enum! {
    /// TLS version: `VersionTLS10`, `VersionTLS11`, `VersionTLS12` or `VersionTLS13`.
    pub enum TlsProtocolVersion {
        Tls10 = "VersionTLS10",
        Tls11 = "VersionTLS11",
        Tls12 = "VersionTLS12",
        Tls13 = "VersionTLS13",
    }
}

open_enum! {
    /// How VM edits reach a running guest: `LiveUpdate` right away where possible, `Stage` on restart.
    pub enum VmRolloutStrategy {
        Stage = "Stage",
        LiveUpdate = "LiveUpdate",
    }
}

open_enum! {
    /// `reference` pins a copy, `expand` inlines it into VMs not yet pinned, `expandAll` into all VMs.
    pub enum InstancetypeReferencePolicy {
        Reference = "reference",
        Expand = "expand",
        ExpandAll = "expandAll",
    }
}

open_enum! {
    /// `AggregateToDefault` adds KubeVirt rights to admin, edit and view; `Manual` leaves them alone.
    pub enum RoleAggregationStrategy {
        AggregateToDefault = "AggregateToDefault",
        Manual = "Manual",
    }
}
