//! Measurements of a running machine; what is not known is left out.

use serde::{Deserialize, Serialize};

/// Measurements of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DomainStats {
    /// `namespace_name` of the VMI.
    pub name: String,
    /// System UUID that the guest sees.
    pub uuid: String,
    /// CPU time of QEMU.
    pub cpu: CpuStats,
    /// Memory of the guest and of QEMU.
    pub memory: MemoryStats,
    /// Each virtual CPU.
    pub vcpus: Vec<VcpuStats>,
    /// Each interface.
    pub interfaces: Vec<InterfaceStats>,
    /// Each disk.
    pub disks: Vec<DiskStats>,
    /// The migration that runs.
    pub migration: Option<MigrationStats>,
    /// The guest's load over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
}

/// CPU time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct CpuStats {
    pub user: u64,
    pub system: u64,
}

/// Memory in bytes, as far as the guest tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryStats {
    /// What QEMU has resident.
    pub resident: Option<u64>,
    /// What the guest has, less what its balloon took.
    pub actual_balloon: Option<u64>,
    /// What the machine has in all.
    pub domain: Option<u64>,
    /// What the guest can see.
    pub available: Option<u64>,
    /// What the guest does not use.
    pub unused: Option<u64>,
    /// What the guest could use without swapping.
    pub usable: Option<u64>,
    /// Disk caches of the guest.
    pub cached: Option<u64>,
    /// Bytes swapped in.
    pub swap_in: Option<u64>,
    /// Bytes swapped out.
    pub swap_out: Option<u64>,
    /// Page faults with I/O.
    pub major_faults: Option<u64>,
    /// Page faults without.
    pub minor_faults: Option<u64>,
    /// When the guest told, in seconds since 1970.
    pub last_update: Option<i64>,
}

/// A virtual CPU; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VcpuStats {
    /// Its number.
    pub id: u32,
    /// Time it ran.
    pub time: u64,
    /// Time it could have run but the host ran something else.
    pub delay: Option<u64>,
    /// Time it waited for I/O of the host.
    pub wait: Option<u64>,
    /// On how many CPUs of the host it may run.
    pub host_cpus: Option<u32>,
}

/// An interface; what the guest received and sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct InterfaceStats {
    /// Name in the VMI.
    pub name: String,
    /// Name of the tap device.
    pub device: String,
    pub received_bytes: u64,
    pub received_packets: u64,
    pub received_errors: u64,
    pub received_dropped: u64,
    pub sent_bytes: u64,
    pub sent_packets: u64,
    pub sent_errors: u64,
    pub sent_dropped: u64,
}

/// A disk; times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct DiskStats {
    /// Name in the VMI.
    pub name: String,
    pub read_requests: u64,
    pub read_bytes: u64,
    pub read_time: u64,
    pub write_requests: u64,
    pub write_bytes: u64,
    pub write_time: u64,
    pub flush_requests: u64,
    pub flush_time: u64,
    /// Size that the guest sees.
    pub capacity: Option<u64>,
    /// Space that it takes.
    pub allocation: Option<u64>,
}

/// A migration that runs; bytes, and milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct MigrationStats {
    pub total: u64,
    pub transferred: u64,
    pub remaining: u64,
    /// Bytes per second that the guest writes.
    pub dirty_rate: u64,
    /// Bytes per second that move.
    pub speed: u64,
    pub elapsed_ms: u64,
    pub downtime_ms: Option<u64>,
}
