//! Every metric of machines, instances, migrations and snapshots: its name, its labels and what it tells.

use kubevirt_component::metrics::Metric;

macro_rules! metrics {
    ($($kind:ident $constant:ident = $name:literal, $help:literal, $labels:expr;)*) => {
        $(pub const $constant: Metric = Metric::$kind($name, $help).by(&$labels);)*

        /// All that is told from stores when somebody asks.
        pub const STORED: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    gauge VM_INFO = "kubevirt_vm_info", "What a machine is and the state it is in; always 1",
        ["name", "namespace", "os", "workload", "flavor", "machine_type", "instance_type", "preference", "status",
         "status_group"];
    gauge VM_LABELS = "kubevirt_vm_labels",
        "Labels of a machine, as far as the ConfigMap kubevirt-vm-labels-config allows; always 1",
        ["name", "namespace", "label_*"];
    gauge VM_CREATED = "kubevirt_vm_create_date_timestamp_seconds", "When a machine was created", ["name", "namespace"];
    counter VM_STARTING = "kubevirt_vm_starting_status_last_transition_timestamp_seconds",
        "Since when a machine starts; 0 if it does not", ["name", "namespace"];
    counter VM_RUNNING = "kubevirt_vm_running_status_last_transition_timestamp_seconds",
        "Since when a machine runs; 0 if it does not", ["name", "namespace"];
    counter VM_MIGRATING = "kubevirt_vm_migrating_status_last_transition_timestamp_seconds",
        "Since when a machine migrates; 0 if it does not", ["name", "namespace"];
    counter VM_NON_RUNNING = "kubevirt_vm_non_running_status_last_transition_timestamp_seconds",
        "Since when a machine is paused or stopped; 0 if it is not", ["name", "namespace"];
    counter VM_ERROR = "kubevirt_vm_error_status_last_transition_timestamp_seconds",
        "Since when something is wrong with a machine; 0 if nothing is", ["name", "namespace"];
    gauge VM_REQUESTS = "kubevirt_vm_resource_requests",
        "CPU and memory that a machine asks for, by who says so: its domain, its requests, the guest, or nobody",
        ["name", "namespace", "resource", "unit", "source"];
    gauge VM_LIMITS = "kubevirt_vm_resource_limits", "CPU and memory that a machine may have at most, where it says so",
        ["name", "namespace", "resource", "unit"];
    gauge VM_DISK = "kubevirt_vm_disk_allocated_size_bytes", "Size of a disk of a machine that is a claim",
        ["name", "namespace", "persistentvolumeclaim", "volume_mode", "device"];
    gauge VM_VNIC = "kubevirt_vm_vnic_info", "A network interface that a machine is defined with; always 1",
        ["name", "namespace", "vnic_name", "binding_type", "network", "binding_name", "model"];

    gauge VMI_INFO = "kubevirt_vmi_info", "What an instance is, where it runs and its phase; always 1",
        ["node", "namespace", "name", "phase", "os", "workload", "flavor", "instance_type", "preference",
         "guest_os_kernel_release", "guest_os_machine", "guest_os_arch", "guest_os_name", "guest_os_version_id",
         "evictable", "outdated", "vmi_pod"];
    gauge VMI_NON_EVICTABLE = "kubevirt_vmi_non_evictable",
        "1 if an instance is to be migrated when its node is emptied, but cannot be", ["node", "namespace", "name"];
    gauge VMI_ADDRESS = "kubevirt_vmi_status_addresses", "An address of an instance; always 1",
        ["node", "namespace", "name", "vnic_name", "interface_name", "address", "type"];
    gauge VMI_MIGRATION_START = "kubevirt_vmi_migration_start_time_seconds", "When the last migration of an instance began",
        ["node", "namespace", "name", "migration_name"];
    gauge VMI_MIGRATION_END = "kubevirt_vmi_migration_end_time_seconds", "When the last migration of an instance ended",
        ["node", "namespace", "name", "migration_name", "status"];
    gauge VMI_VNIC = "kubevirt_vmi_vnic_info", "A network interface of an instance; always 1",
        ["name", "namespace", "vnic_name", "binding_type", "network", "binding_name", "model"];
    gauge VMI_OVERHEAD = "kubevirt_vmi_launcher_memory_overhead_bytes",
        "Memory that an instance costs beside what its guest sees", ["namespace", "name"];
    gauge VMI_OUTDATED = "kubevirt_vmi_number_of_outdated",
        "Instances whose launcher is not the one of this installation", [];

    gauge MIGRATIONS_PENDING = "kubevirt_vmi_migrations_in_pending_phase", "Migrations that wait for their turn", [];
    gauge MIGRATIONS_SCHEDULING = "kubevirt_vmi_migrations_in_scheduling_phase", "Migrations whose target has no node yet", [];
    gauge MIGRATIONS_UNSET = "kubevirt_vmi_migrations_in_unset_phase", "Migrations that nobody has looked at yet", [];
    gauge MIGRATIONS_RUNNING = "kubevirt_vmi_migrations_in_running_phase", "Migrations that are under way", [];
    gauge MIGRATION_SUCCEEDED = "kubevirt_vmi_migration_succeeded", "A migration that succeeded; always 1",
        ["vmi", "vmim", "namespace"];
    gauge MIGRATION_FAILED = "kubevirt_vmi_migration_failed", "A migration that failed; always 1",
        ["vmi", "vmim", "namespace"];

    gauge SNAPSHOT_SUCCEEDED = "kubevirt_vmsnapshot_succeeded_timestamp_seconds", "When a snapshot of a machine was taken",
        ["name", "snapshot_name", "namespace"];

    gauge EMULATION = "kubevirt_configuration_emulation_enabled", "1 if guests may run without KVM", [];
}
