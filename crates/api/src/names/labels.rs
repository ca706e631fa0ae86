//! Labels, by which objects are selected; a name that ends in a slash or dash is the start of a key.

/// On everything that belongs to KubeVirt; the value may name the component.
pub const APP: &str = "kubevirt.io";
/// On the operator pods, with their component name.
pub const APP_NAME: &str = "name";
/// On a pod: the uid of the instance it runs.
pub const CREATED_BY: &str = "kubevirt.io/created-by";
/// In examples: the machine by its name, for services to select.
pub const VM: &str = "kubevirt.io/vm";
/// On a launcher pod: the name of the machine; older than [`VMI_ID`].
pub const VM_NAME: &str = "vm.kubevirt.io/name";
/// On a launcher pod: the instance, shortened so that services can select it.
pub const VMI_ID: &str = "vmi.kubevirt.io/id";

/// On an instance: the node it runs on.
pub const NODE_NAME: &str = "kubevirt.io/nodeName";
/// On an instance whose launcher is of an older release.
pub const OUTDATED_LAUNCHER_IMAGE: &str = "kubevirt.io/outdatedLauncherImage";

/// On a target pod: the uid of its migration.
pub const MIGRATION_JOB_UID: &str = "kubevirt.io/migrationJobUID";
/// On what is made for a migration, such as a state volume: its name.
pub const MIGRATION_NAME: &str = "kubevirt.io/migrationName";
/// On an instance: the node it moves to.
pub const MIGRATION_TARGET_NODE_NAME: &str = "kubevirt.io/migrationTargetNodeName";
/// On a migration: the instance it moves.
pub const MIGRATION_VMI_NAME: &str = "kubevirt.io/vmi-name";
/// On a migration that copies to other volumes.
pub const VOLUME_UPDATE_MIGRATION: &str = "kubevirt.io/volume-update-migration";

/// On an instance: the CPU limit its pod gets after hotplug.
pub const POD_CPU_LIMITS: &str = "kubevirt.io/vmi-pod-cpu-resource-limits";
/// On an instance: the memory request its pod gets after hotplug.
pub const POD_MEMORY_REQUESTS: &str = "kubevirt.io/vmi-pod-memory-resource-requests";
/// On an instance: the overhead ratio its memory hotplug began with.
pub const MEMORY_HOTPLUG_OVERHEAD_RATIO: &str = "kubevirt.io/memory-hotplug-overhead-ratio";
/// On a namespace: how many times the request a memory limit becomes.
pub const AUTO_MEMORY_LIMITS_RATIO: &str = "alpha.kubevirt.io/auto-memory-limits-ratio";
/// On a launcher pod, followed by the uid of a claim it reserves.
pub const PERSISTENT_RESERVATION_PREFIX: &str = "pr.kubevirt.io/";
/// On a claim: the machine whose firmware and TPM state it holds.
pub const PERSISTENT_STATE_FOR: &str = "persistent-state-for";
/// The usual key by which machines choose to track changed blocks.
pub const CHANGED_BLOCK_TRACKING: &str = "changedBlockTracking";
/// On a machine and its instance: the revision of the pool it was made from.
pub const POOL_REVISION_NAME: &str = "kubevirt.io/vm-pool-revision-name";

/// On a node: whether its handler takes instances.
pub const NODE_SCHEDULABLE: &str = "kubevirt.io/schedulable";
/// On a node whose kubelet gives out dedicated CPUs.
pub const CPU_MANAGER: &str = "kubevirt.io/cpumanager";
/// What older releases wrote for [`CPU_MANAGER`].
pub const DEPRECATED_CPU_MANAGER: &str = "cpumanager";
/// On a node, followed by a CPU feature it offers.
pub const CPU_FEATURE_PREFIX: &str = "cpu-feature.node.kubevirt.io/";
/// On a node, followed by a CPU model it offers.
pub const CPU_MODEL_PREFIX: &str = "cpu-model.node.kubevirt.io/";
/// On a node, followed by a host model it can receive.
pub const CPU_MODEL_MIGRATION_PREFIX: &str = "cpu-model-migration.node.kubevirt.io/";
/// On a node, followed by a property of its clock.
pub const CPU_TIMER_PREFIX: &str = "cpu-timer.node.kubevirt.io/";
/// On a node, followed by the maker of its CPU.
pub const CPU_VENDOR_PREFIX: &str = "cpu-vendor.node.kubevirt.io/";
/// On a node: the frequency of its time stamp counter.
pub const TSC_FREQUENCY: &str = "cpu-timer.node.kubevirt.io/tsc-frequency";
/// On a node: whether it can imitate other counter frequencies.
pub const TSC_SCALABLE: &str = "cpu-timer.node.kubevirt.io/tsc-scalable";
/// On a node, followed by a counter frequency it can run.
pub const TSC_FREQUENCY_SCHEDULING_PREFIX: &str = "scheduling.node.kubevirt.io/tsc-frequency-";
/// On a node, followed by a Hyper-V enlightenment it offers.
pub const HYPERV_PREFIX: &str = "hyperv.node.kubevirt.io/";
/// On a node, followed by a machine type it offers.
pub const MACHINE_TYPE_PREFIX: &str = "machine-type.node.kubevirt.io/";
/// On a node, followed by its own CPU model.
pub const HOST_MODEL_CPU_PREFIX: &str = "host-model-cpu.node.kubevirt.io/";
/// On a node, followed by a feature its own model needs.
pub const HOST_MODEL_REQUIRED_FEATURES_PREFIX: &str = "host-model-required-features.node.kubevirt.io/";
/// On a node whose own CPU model is too old to use.
pub const OBSOLETE_HOST_MODEL: &str = "node-labeller.kubevirt.io/obsolete-host-model";
/// On a node, followed by an architecture it can run.
pub const VM_ARCH_PREFIX: &str = "kubevirt.io/vm-arch-";
/// On a node fit for realtime guests.
pub const REALTIME: &str = "kubevirt.io/realtime";
/// On a node that can encrypt guest memory (AMD SEV).
pub const SEV: &str = "kubevirt.io/sev";
/// On a node that can also encrypt guest registers (AMD SEV-ES).
pub const SEV_ES: &str = "kubevirt.io/sev-es";
/// On a node that can also guard guest pages (AMD SEV-SNP).
pub const SEV_SNP: &str = "kubevirt.io/sev-snp";
/// On a node that offers IBM Secure Execution.
pub const SECURE_EXECUTION: &str = "kubevirt.io/s390-pv";
/// On a node that offers Intel trust domains.
pub const TDX: &str = "kubevirt.io/tdx";
/// On a node that merges same memory pages.
pub const KSM_ENABLED: &str = "kubevirt.io/ksm-enabled";
/// On a node meant for the components of the installation.
pub const CONTROL_PLANE: &str = "node-role.kubevirt.io/control-plane";

/// On a volume: the instance type to use with it.
pub const DEFAULT_INSTANCETYPE: &str = "instancetype.kubevirt.io/default-instancetype";
/// On a volume: the kind of [`DEFAULT_INSTANCETYPE`].
pub const DEFAULT_INSTANCETYPE_KIND: &str = "instancetype.kubevirt.io/default-instancetype-kind";
/// On a volume: the preference to use with it.
pub const DEFAULT_PREFERENCE: &str = "instancetype.kubevirt.io/default-preference";
/// On a volume: the kind of [`DEFAULT_PREFERENCE`].
pub const DEFAULT_PREFERENCE_KIND: &str = "instancetype.kubevirt.io/default-preference-kind";
/// On an instance type or preference: who publishes it.
pub const INSTANCETYPE_VENDOR: &str = "instancetype.kubevirt.io/vendor";

/// On a revision: the generation of what it keeps.
pub const REVISION_OBJECT_GENERATION: &str = "instancetype.kubevirt.io/object-generation";
/// On a revision: the kind of what it keeps.
pub const REVISION_OBJECT_KIND: &str = "instancetype.kubevirt.io/object-kind";
/// On a revision: the name of what it keeps.
pub const REVISION_OBJECT_NAME: &str = "instancetype.kubevirt.io/object-name";
/// On a revision: the uid of what it keeps.
pub const REVISION_OBJECT_UID: &str = "instancetype.kubevirt.io/object-uid";
/// On a revision: the API version of what it keeps.
pub const REVISION_OBJECT_VERSION: &str = "instancetype.kubevirt.io/object-version";

/// On a volume snapshot: the machine it came from.
pub const SNAPSHOT_SOURCE_NAME: &str = "snapshot.kubevirt.io/source-vm-name";
/// On a volume snapshot: the namespace of that machine.
pub const SNAPSHOT_SOURCE_NAMESPACE: &str = "snapshot.kubevirt.io/source-vm-namespace";
/// On a restored claim: the machine it came from.
pub const RESTORE_SOURCE_NAME: &str = "restore.kubevirt.io/source-vm-name";
/// On a restored claim: the namespace of that machine.
pub const RESTORE_SOURCE_NAMESPACE: &str = "restore.kubevirt.io/source-vm-namespace";
/// On a state claim that a restore replaces.
pub const RESTORE_CLEANUP_STATE_CLAIM: &str = "restore.kubevirt.io/cleanup-backend-pvc";
/// On an exporter pod, for its service to select.
pub const EXPORT_SERVICE: &str = "kubevirt.io.virt-export-service";
/// On a data source: the architecture of the guest in it.
pub const TEMPLATE_ARCHITECTURE: &str = "template.kubevirt.io/architecture";
/// In an object graph: storage, network, compute or config.
pub const DEPENDENCY_TYPE: &str = "kubevirt.io/dependency-type";

/// On a config map or job that holds or makes an install strategy.
pub const INSTALL_STRATEGY: &str = "kubevirt.io/install-strategy";
/// On the definition of the kind that the operator itself serves.
pub const OPERATOR: &str = "operator.kubevirt.io";
/// On services and pods whose metrics are collected.
pub const PROMETHEUS: &str = "prometheus.kubevirt.io";
/// On a handler whose certificates tell migration clients apart.
pub const SUPPORTS_MIGRATION_CN_TYPES: &str = "kubevirt.io/supports-migration-cn-types";
/// On component pods that network policies let reach the API server and DNS.
pub const ALLOW_ACCESS_CLUSTER_SERVICES: &str = "np.kubevirt.io/allow-access-cluster-services";
