//! Every metric of an instance: its name, what it tells and its kind.

use kubevirt_component::metrics::Metric;

// What all metrics of an instance have stands before what each has of its own.
macro_rules! metrics {
    ($($kind:ident $constant:ident = $name:literal, $help:literal $(, $labels:tt)?;)*) => {
        $(pub const $constant: Metric = Metric::$kind($name, $help).by(metrics!(@labels $($labels)?));)*

        /// All of them.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
    (@labels) => { &["node", "namespace", "name", "kubernetes_vmi_label_*"] };
    (@labels [$($label:literal),*]) => { &["node", "namespace", "name", "kubernetes_vmi_label_*" $(, $label)*] };
    (@labels ($($label:literal),*)) => { &[$($label),*] };
}

metrics! {
    counter CPU = "kubevirt_vmi_cpu_usage_seconds_total", "CPU time of the guest and of what runs it";
    counter CPU_USER = "kubevirt_vmi_cpu_user_usage_seconds_total", "CPU time in user mode";
    counter CPU_SYSTEM = "kubevirt_vmi_cpu_system_usage_seconds_total", "CPU time in the kernel";
    gauge LOAD_1M = "kubevirt_vmi_guest_load_1m", "Load of the guest over one minute, as its agent tells";
    gauge LOAD_5M = "kubevirt_vmi_guest_load_5m", "Load of the guest over five minutes, as its agent tells";
    gauge LOAD_15M = "kubevirt_vmi_guest_load_15m", "Load of the guest over fifteen minutes, as its agent tells";

    counter VCPU = "kubevirt_vmi_vcpu_seconds_total", "Time that a virtual CPU ran, by its id and state", ["id", "state"];
    counter VCPU_WAIT = "kubevirt_vmi_vcpu_wait_seconds_total", "Time that a virtual CPU waited for I/O", ["id"];
    counter VCPU_DELAY = "kubevirt_vmi_vcpu_delay_seconds_total",
        "Time that a virtual CPU could have run while the host ran something else", ["id"];
    gauge CPU_AFFINITY = "kubevirt_vmi_node_cpu_affinity",
        "On how many CPUs of the node each virtual CPU may run, in sum";

    gauge MEMORY_RESIDENT = "kubevirt_vmi_memory_resident_bytes", "Memory that the guest's process holds on the node";
    gauge MEMORY_AVAILABLE = "kubevirt_vmi_memory_available_bytes", "Memory that the guest's system sees";
    gauge MEMORY_UNUSED = "kubevirt_vmi_memory_unused_bytes", "Memory that the guest uses for nothing, not even caches";
    gauge MEMORY_CACHED = "kubevirt_vmi_memory_cached_bytes", "Memory that the guest uses for caches of disks";
    gauge MEMORY_SWAP_IN = "kubevirt_vmi_memory_swap_in_traffic_bytes", "What the guest has read back from its swap space";
    gauge MEMORY_SWAP_OUT = "kubevirt_vmi_memory_swap_out_traffic_bytes", "What the guest has written to its swap space";
    counter MEMORY_MAJOR_FAULTS = "kubevirt_vmi_memory_pgmajfault_total", "Page faults of the guest that had to read a disk";
    counter MEMORY_MINOR_FAULTS = "kubevirt_vmi_memory_pgminfault_total", "Page faults of the guest that read no disk";
    gauge MEMORY_BALLOON = "kubevirt_vmi_memory_actual_balloon_bytes", "Memory that the balloon leaves to the guest";
    gauge MEMORY_USABLE = "kubevirt_vmi_memory_usable_bytes", "Memory that the guest could give up without swapping";
    gauge MEMORY_DOMAIN = "kubevirt_vmi_memory_domain_bytes", "Memory that the machine was given";

    counter READS = "kubevirt_vmi_storage_iops_read_total", "Reads from a disk", ["drive"];
    counter WRITES = "kubevirt_vmi_storage_iops_write_total", "Writes to a disk", ["drive"];
    counter READ_BYTES = "kubevirt_vmi_storage_read_traffic_bytes_total", "Bytes read from a disk", ["drive"];
    counter WRITTEN_BYTES = "kubevirt_vmi_storage_write_traffic_bytes_total", "Bytes written to a disk", ["drive"];
    counter READ_TIME = "kubevirt_vmi_storage_read_times_seconds_total", "Time that reads from a disk took", ["drive"];
    counter WRITE_TIME = "kubevirt_vmi_storage_write_times_seconds_total", "Time that writes to a disk took", ["drive"];
    counter FLUSHES = "kubevirt_vmi_storage_flush_requests_total", "Requests to flush a disk", ["drive"];
    counter FLUSH_TIME = "kubevirt_vmi_storage_flush_times_seconds_total", "Time that flushing a disk took", ["drive"];

    counter TRAFFIC = "kubevirt_vmi_network_traffic_bytes_total",
        "Deprecated: bytes received (rx) and sent (tx); use the metrics of each", ["interface", "type"];
    counter RECEIVED_BYTES = "kubevirt_vmi_network_receive_bytes_total", "Bytes that the guest received", ["interface"];
    counter SENT_BYTES = "kubevirt_vmi_network_transmit_bytes_total", "Bytes that the guest sent", ["interface"];
    counter RECEIVED_PACKETS = "kubevirt_vmi_network_receive_packets_total", "Packets that the guest received", ["interface"];
    counter SENT_PACKETS = "kubevirt_vmi_network_transmit_packets_total", "Packets that the guest sent", ["interface"];
    counter RECEIVED_ERRORS = "kubevirt_vmi_network_receive_errors_total", "Packets to the guest with errors", ["interface"];
    counter SENT_ERRORS = "kubevirt_vmi_network_transmit_errors_total", "Packets of the guest with errors", ["interface"];
    counter RECEIVED_DROPPED = "kubevirt_vmi_network_receive_packets_dropped_total", "Packets to the guest that were dropped", ["interface"];
    counter SENT_DROPPED = "kubevirt_vmi_network_transmit_packets_dropped_total", "Packets of the guest that were dropped", ["interface"];

    gauge FILESYSTEM_CAPACITY = "kubevirt_vmi_filesystem_capacity_bytes", "Size of a file system in the guest", ["disk_name", "mount_point", "file_system_type"];
    gauge FILESYSTEM_USED = "kubevirt_vmi_filesystem_used_bytes", "What is used of a file system in the guest", ["disk_name", "mount_point", "file_system_type"];

    gauge DIRTY_RATE = "kubevirt_vmi_dirty_rate_bytes_per_second", "Memory that the guest changes in a second";
    counter MIGRATION_TOTAL = "kubevirt_vmi_migration_data_bytes_total", "What a migration has to move", ("node", "namespace", "name");
    gauge MIGRATION_REMAINING = "kubevirt_vmi_migration_data_remaining_bytes", "What a migration has yet to move", ("node", "namespace", "name");
    gauge MIGRATION_PROCESSED = "kubevirt_vmi_migration_data_processed_bytes", "What a migration has moved", ("node", "namespace", "name");
    gauge MIGRATION_DIRTY_RATE = "kubevirt_vmi_migration_dirty_memory_rate_bytes",
        "Memory that the guest changes in a second while it migrates", ("node", "namespace", "name");
    gauge MIGRATION_SPEED = "kubevirt_vmi_migration_memory_transfer_rate_bytes", "Memory that a migration moves in a second", ("node", "namespace", "name");

    gauge GPU = "kubevirt_vmi_gpu_info", "Which card, or part of one, an instance has: always 1",
        ("node", "namespace", "pod", "resource", "uuid");
    gauge DEPRECATED_MACHINE_TYPES = "kubevirt_node_deprecated_machine_types",
        "A machine type that the QEMU of this node will not have for long", ("machine_type", "node");
}
