//! Annotations, which tell components and users more about an object.

/// On a pod: the name of the instance it runs.
pub const DOMAIN: &str = "kubevirt.io/domain";
/// On a target pod: the name of its migration.
pub const MIGRATION_JOB_NAME: &str = "kubevirt.io/migrationJobName";
/// The newest API version the controller knew when it wrote the object.
pub const LATEST_OBSERVED_API_VERSION: &str = "kubevirt.io/latest-observed-api-version";
/// The stored API version the controller knew when it wrote the object.
pub const STORAGE_OBSERVED_API_VERSION: &str = "kubevirt.io/storage-observed-api-version";
/// On an instance: the generation of the machine it was started from.
pub const VM_GENERATION: &str = "kubevirt.io/vm-generation";

/// On a machine that waits as receiver: the run strategy to go back to.
pub const RESTORE_RUN_STRATEGY: &str = "kubevirt.io/restore-run-strategy";
/// On an instance that starts as the target of a migration.
pub const CREATE_MIGRATION_TARGET: &str = "kubevirt.io/create-migration-target";

/// On a migration made to empty a node.
pub const EVACUATION_MIGRATION: &str = "kubevirt.io/evacuationMigration";
/// On a migration made to bring an instance up to date.
pub const WORKLOAD_UPDATE_MIGRATION: &str = "kubevirt.io/workloadUpdateMigration";
/// On an instance, in tests: gives up such a migration.
pub const WORKLOAD_UPDATE_MIGRATION_ABORTION: &str = "kubevirt.io/testWorkloadUpdateMigrationAbortion";
/// On a launcher pod that migrates through a unix socket.
pub const MIGRATION_TRANSPORT_UNIX: &str = "kubevirt.io/migrationTransportUnix";
/// On a migration: how long its pod may find no node.
pub const MIGRATION_UNSCHEDULABLE_TIMEOUT: &str = "kubevirt.io/migrationUnschedulablePodTimeoutSeconds";
/// On a migration: how long its pod may be pending.
pub const MIGRATION_PENDING_TIMEOUT: &str = "kubevirt.io/migrationPendingPodTimeoutSeconds";
/// On a migration: how long it waits for utility volumes to go.
pub const MIGRATION_UTILITY_VOLUMES_TIMEOUT: &str = "kubevirt.io/migrationUtilityVolumesTimeoutSeconds";
/// On a target pod: when the guest came alive on it.
pub const MIGRATION_TARGET_READY_TIMESTAMP: &str = "kubevirt.io/migration-target-ready-timestamp";
/// On an instance that may migrate although bridged to the pod network.
pub const ALLOW_POD_BRIDGE_LIVE_MIGRATION: &str = "kubevirt.io/allow-pod-bridge-network-live-migration";
/// On an instance: who asked to evict it, if known.
pub const EVICTION_SOURCE: &str = "kubevirt.io/eviction-source";

/// On a node: when its handler was last alive.
pub const NODE_HEARTBEAT: &str = "kubevirt.io/heartbeat";
/// On a node whose capability labels are left alone.
pub const LABELLER_SKIP_NODE: &str = "node-labeller.kubevirt.io/skip-node";
/// On a node where the handler switched page merging on.
pub const KSM_HANDLER_MANAGED: &str = "kubevirt.io/ksm-handler-managed";
/// On a node: how many more pages to scan under pressure.
pub const KSM_PAGES_BOOST: &str = "kubevirt.io/ksm-pages-boost-override";
/// On a node: how many fewer pages to scan without pressure.
pub const KSM_PAGES_DECAY: &str = "kubevirt.io/ksm-pages-decay-override";
/// On a node: the fewest pages to scan.
pub const KSM_PAGES_MIN: &str = "kubevirt.io/ksm-pages-min-override";
/// On a node: the most pages to scan.
pub const KSM_PAGES_MAX: &str = "kubevirt.io/ksm-pages-max-override";
/// On a node: how many pages to scan first.
pub const KSM_PAGES_INIT: &str = "kubevirt.io/ksm-pages-init-override";
/// On a node: the usual pause between scans, in milliseconds.
pub const KSM_SLEEP_BASELINE: &str = "kubevirt.io/ksm-sleep-ms-baseline-override";
/// On a node: the share of free memory below which there is pressure.
pub const KSM_FREE_PERCENT: &str = "kubevirt.io/ksm-free-percent-override";

/// On an instance: the instance type of its namespace it uses.
pub const INSTANCETYPE: &str = "kubevirt.io/instancetype-name";
/// On an instance: the cluster instance type it uses.
pub const CLUSTER_INSTANCETYPE: &str = "kubevirt.io/cluster-instancetype-name";
/// On an instance: the preference of its namespace it uses.
pub const PREFERENCE: &str = "kubevirt.io/preference-name";
/// On an instance: the cluster preference it uses.
pub const CLUSTER_PREFERENCE: &str = "kubevirt.io/cluster-preference-name";
/// On an instance, followed by a preset that was applied to it.
pub const PRESET_PREFIX: &str = "virtualmachinepreset.kubevirt.io/";
/// On an instance that takes no presets.
pub const PRESET_EXCLUDE: &str = "virtualmachineinstancepresets.admission.kubevirt.io/exclude";

/// On an instance: the hook sidecars to run beside it, as JSON.
pub const HOOK_SIDECARS: &str = "hooks.kubevirt.io/hookSidecars";
/// Read by the SMBIOS sidecar: the maker of the base board.
pub const SIDECAR_BASE_BOARD_MANUFACTURER: &str = "smbios.vm.kubevirt.io/baseBoardManufacturer";
/// Read by the disk sidecar: the image to boot from.
pub const SIDECAR_BOOT_IMAGE_NAME: &str = "diskimage.vm.kubevirt.io/bootImageName";

/// On an instance: ignition data for the guest.
pub const IGNITION_DATA: &str = "kubevirt.io/ignitiondata";
/// On an instance whose PCI devices all sit on the root.
pub const PLACE_PCI_DEVICES_ON_ROOT_COMPLEX: &str = "kubevirt.io/placePCIDevicesOnRootComplex";
/// On an instance: the scheme its PCI addresses follow.
pub const PCI_TOPOLOGY_VERSION: &str = "kubevirt.io/pci-topology-version";
/// On an instance: how many PCI slots its interfaces hold.
pub const PCI_INTERFACE_SLOT_COUNT: &str = "kubevirt.io/pci-interface-slot-count";
/// On an instance without the 64-bit PCI window.
pub const DISABLE_PCI_HOLE_64: &str = "kubevirt.io/disablePCIHole64";
/// On an instance: whether its memory may be an anonymous file.
pub const MEMFD: &str = "kubevirt.io/memfd";
/// On an instance whose balloon does not report free pages.
pub const FREE_PAGE_REPORTING_DISABLED: &str = "kubevirt.io/free-page-reporting-disabled";
/// Rounds dedicated CPUs up to an even count when the emulator has its own.
pub const EMULATOR_THREAD_EVEN_PARITY: &str = "alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity";
/// On an instance: the socket of the TDX quote service.
pub const QGS_SOCKET_PATH: &str = "kubevirt.io/qgs-socket-path";
/// On the installation: EFI guests get a VGA display.
pub const VGA_DISPLAY_EFI_X86: &str = "kubevirt.io/vga-display-efi-x86";
/// On an instance whose agent probes always succeed for now.
pub const PAUSE_GUEST_AGENT_PROBES: &str = "kubevirt.io/pause-guest-agent-probes";
/// On an instance: what the virtualization layer logs.
pub const LIBVIRT_LOG_FILTERS: &str = "kubevirt.io/libvirt-log-filters";
/// On an instance whose launcher stays for debugging.
pub const KEEP_LAUNCHER_AFTER_FAILURE: &str = "kubevirt.io/keep-launcher-alive-after-failure";
/// On an instance of an older release that runs without root.
pub const DEPRECATED_NON_ROOT: &str = "kubevirt.io/nonroot";

/// On a launcher pod: network devices for the guest side to read.
pub const NETWORK_INFO: &str = "kubevirt.io/network-info";
/// On a launcher pod: memory counted on top of the guest's.
pub const MEMORY_OVERHEAD_BYTES: &str = "kubevirt.io/memory-overhead-bytes";
/// Name of the VMI that a pod with plugged volumes is for.
pub const OWNER_VMI_NAME: &str = "kubevirt.io/owner-vmi-name";
/// UID of that VMI.
pub const OWNER_VMI_UID: &str = "kubevirt.io/owner-vmi-uid";
/// The images of a VMI's disks are taken by the names that they have, and no container tells their digests.
pub const SKIP_DIGEST_RESOLUTION: &str = "kubevirt.io/image-volume-skip-digest-resolution";
/// On a pod that only lives to have volumes provisioned.
pub const EPHEMERAL_PROVISIONING: &str = "kubevirt.io/ephemeral-provisioning";
/// On a machine: whether its data volumes are made before it starts.
pub const IMMEDIATE_DATA_VOLUME_CREATION: &str = "kubevirt.io/immediate-data-volume-creation";
/// On a claim: the memory dump it holds.
pub const MEMORY_DUMP: &str = "kubevirt.io/memory-dump";
/// On a machine or instance that Velero does not freeze.
pub const SKIP_BACKUP_HOOKS: &str = "kubevirt.io/skip-backup-hooks";

/// On a restored volume: the restore that made it.
pub const RESTORE_NAME: &str = "restore.kubevirt.io/name";
/// On a machine: the restore it was last restored by.
pub const LAST_RESTORE_UID: &str = "restore.kubevirt.io/lastRestoreUID";
/// On a restored claim that is yet to be given to its machine.
pub const RESTORE_OWNED_BY_VM: &str = "restore.kubevirt.io/owned-by-vm";
/// On an exporter pod: how its certificate is rotated.
pub const EXPORT_CERT_PARAMETERS: &str = "kubevirt.io/export.certParameters";
/// On the storage class that disks of machines use by default.
pub const DEFAULT_VIRT_STORAGE_CLASS: &str = "storageclass.kubevirt.io/is-default-virt-class";

/// On an instance, for metrics: the size it was made from.
pub const VM_FLAVOR: &str = "vm.kubevirt.io/flavor";
/// On an instance, for metrics: its operating system.
pub const VM_OS: &str = "vm.kubevirt.io/os";
/// On an instance, for metrics: what it is used for.
pub const VM_WORKLOAD: &str = "vm.kubevirt.io/workload";

/// On what the operator installs: the release it is of.
pub const INSTALL_STRATEGY_VERSION: &str = "kubevirt.io/install-strategy-version";
/// On what the operator installs: the registry of its images.
pub const INSTALL_STRATEGY_REGISTRY: &str = "kubevirt.io/install-strategy-registry";
/// On what the operator installs: a hash of how it is configured.
pub const INSTALL_STRATEGY_IDENTIFIER: &str = "kubevirt.io/install-strategy-identifier";
/// On a config map: how the manifests in it are packed.
pub const INSTALL_STRATEGY_ENCODING: &str = "kubevirt.io/install-strategy-cm-encoding";
/// On a component: a hash of the customizations in it.
pub const CUSTOMIZER_IDENTIFIER: &str = "kubevirt.io/customizer-identifier";
/// On what the operator installs: the generation of the installation.
pub const KUBEVIRT_GENERATION: &str = "kubevirt.io/generation";
/// On a copy the operator keeps during an update.
pub const EPHEMERAL_BACKUP: &str = "kubevirt.io/ephemeral-backup-object";
/// On a webhook or API service: the secret with its certificate.
pub const CERTIFICATE_SECRET: &str = "certificates.kubevirt.io/secret";
/// On a secret: how long its certificate is valid.
pub const CERTIFICATE_DURATION: &str = "kubevirt.io/duration";

/// In tests: makes the launcher fail a migration.
pub const TEST_FORCE_MIGRATION_FAILURE: &str = "kubevirt.io/func-test-force-launcher-migration-failure";
/// In tests: keeps the target from getting ready.
pub const TEST_BLOCK_TARGET_PREPARATION: &str = "kubevirt.io/func-test-block-migration-target-preparation";
/// In tests: another image for the target pod.
pub const TEST_TARGET_IMAGE_OVERRIDE: &str = "kubevirt.io/func-test-migration-target-image-override";
/// In tests: makes the launcher exit at once.
pub const TEST_LAUNCHER_FAIL_FAST: &str = "kubevirt.io/func-test-virt-launcher-fail-fast";
/// In tests: migrates again without waiting.
pub const TEST_IGNORE_MIGRATION_BACKOFF: &str = "kubevirt.io/func-test-ignore-migration-backoff";
/// In tests: makes memory hotplug fail.
pub const TEST_MEMORY_HOTPLUG_FAIL: &str = "kubevirt.io/func-test-memory-hotplug-fail";
