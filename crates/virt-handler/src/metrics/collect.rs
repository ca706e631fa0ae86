//! What launchers measured, as metrics.

use std::sync::Arc;

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::guest_agent::GuestFilesystem;
use kubevirt_launcher_rpc::stats::{
    DiskStats, DomainStats, InterfaceStats, MemoryStats, MigrationStats, VcpuStats,
};

use kubevirt_component::metrics::Metric;

use super::family::{Families, Labels};
use super::list;
use crate::labels::facts::Facts;

/// What a launcher told of its instance.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The instance.
    pub vmi: Arc<VirtualMachineInstance>,
    /// Its machine.
    pub stats: DomainStats,
    /// The file systems of its guest, if there is an agent to tell.
    pub filesystems: Vec<GuestFilesystem>,
    /// Mebibytes per second that the guest writes to memory, if that was measured.
    pub dirty_rate: Option<i64>,
}

/// Metrics of all instances.
pub fn collect(measured: &[Measured]) -> Families {
    let mut families = Families::default();
    for one in measured {
        let mut report = Report { families: &mut families, common: common(&one.vmi, true) };
        report.machine(&one.stats);
        for filesystem in &one.filesystems {
            report.filesystem(filesystem);
        }
        if let Some(rate) = one.dirty_rate {
            report.add(list::DIRTY_RATE, &[], signed(rate) * 1_048_576.0);
        }
        if let Some(migration) = &one.stats.migration {
            // Dashboards tell migrations apart by the instance alone.
            let common = common(&one.vmi, false);
            Report { families: &mut families, common }.migration(migration);
        }
    }
    families
}

/// Metrics of the node itself.
pub fn of_node(facts: &Facts, node: &str) -> Families {
    let mut families = Families::default();
    for machine in facts.machine_types.iter().filter(|machine| machine.deprecated) {
        let labels = vec![label("machine_type", &machine.name), label("node", node)];
        families.add(list::DEPRECATED_MACHINE_TYPES, labels, 1.0);
    }
    families
}

/// What all metrics of an instance are told apart by; its labels become labels too.
fn common(vmi: &VirtualMachineInstance, with_labels: bool) -> Labels {
    let metadata = &vmi.metadata;
    let node = vmi.status.as_ref().and_then(|status| status.node_name.as_deref()).unwrap_or_default();
    let mut all = vec![
        label("node", node),
        label("namespace", metadata.namespace.as_deref().unwrap_or_default()),
        label("name", metadata.name.as_deref().unwrap_or_default()),
    ];
    for (key, value) in metadata.labels.iter().flatten().filter(|_| with_labels) {
        let name = format!("kubernetes_vmi_label_{}", key.replace(['.', '/', '-'], "_"));
        // Two labels may differ only in what is replaced; a name may be said only once.
        if !all.iter().any(|(known, _)| *known == name) {
            all.push((name, value.clone()));
        }
    }
    all
}

fn label(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

struct Report<'a> {
    families: &'a mut Families,
    common: Labels,
}

impl Report<'_> {
    fn add(&mut self, metric: Metric, own: &[(&str, &str)], value: f64) {
        let mut labels = self.common.clone();
        labels.extend(own.iter().map(|(name, value)| label(name, value)));
        self.families.add(metric, labels, value);
    }

    fn machine(&mut self, stats: &DomainStats) {
        let cpu = stats.cpu;
        self.add(list::CPU, &[], seconds(cpu.user.saturating_add(cpu.system)));
        self.add(list::CPU_USER, &[], seconds(cpu.user));
        self.add(list::CPU_SYSTEM, &[], seconds(cpu.system));
        if let Some(load) = stats.load {
            for (metric, value) in [list::LOAD_1M, list::LOAD_5M, list::LOAD_15M].into_iter().zip(load) {
                self.add(metric, &[], value);
            }
        }
        self.memory(&stats.memory);
        stats.vcpus.iter().for_each(|vcpu| self.vcpu(vcpu));
        let affinity: Vec<u32> = stats.vcpus.iter().filter_map(|vcpu| vcpu.host_cpus).collect();
        if !affinity.is_empty() {
            self.add(list::CPU_AFFINITY, &[], affinity.into_iter().map(f64::from).sum());
        }
        stats.disks.iter().for_each(|disk| self.disk(disk));
        stats.interfaces.iter().for_each(|interface| self.interface(interface));
    }

    fn memory(&mut self, memory: &MemoryStats) {
        for (metric, value) in [
            (list::MEMORY_RESIDENT, memory.resident),
            (list::MEMORY_AVAILABLE, memory.available),
            (list::MEMORY_UNUSED, memory.unused),
            (list::MEMORY_CACHED, memory.cached),
            (list::MEMORY_SWAP_IN, memory.swap_in),
            (list::MEMORY_SWAP_OUT, memory.swap_out),
            (list::MEMORY_MAJOR_FAULTS, memory.major_faults),
            (list::MEMORY_MINOR_FAULTS, memory.minor_faults),
            (list::MEMORY_BALLOON, memory.actual_balloon),
            (list::MEMORY_USABLE, memory.usable),
            (list::MEMORY_DOMAIN, memory.domain),
        ] {
            if let Some(value) = value {
                self.add(metric, &[], number(value));
            }
        }
    }

    fn vcpu(&mut self, vcpu: &VcpuStats) {
        let id = vcpu.id.to_string();
        // A machine has no other CPUs than those that run; what they do in the guest is not known.
        self.add(list::VCPU, &[("id", &id), ("state", "running")], seconds(vcpu.time));
        for (metric, time) in [(list::VCPU_WAIT, vcpu.wait), (list::VCPU_DELAY, vcpu.delay)] {
            if let Some(time) = time {
                self.add(metric, &[("id", &id)], seconds(time));
            }
        }
    }

    fn disk(&mut self, disk: &DiskStats) {
        let drive = [("drive", disk.name.as_str())];
        for (metric, value) in [
            (list::READS, number(disk.read_requests)),
            (list::WRITES, number(disk.write_requests)),
            (list::READ_BYTES, number(disk.read_bytes)),
            (list::WRITTEN_BYTES, number(disk.write_bytes)),
            (list::READ_TIME, seconds(disk.read_time)),
            (list::WRITE_TIME, seconds(disk.write_time)),
            (list::FLUSHES, number(disk.flush_requests)),
            (list::FLUSH_TIME, seconds(disk.flush_time)),
        ] {
            self.add(metric, &drive, value);
        }
    }

    fn interface(&mut self, interface: &InterfaceStats) {
        let name = if interface.name.is_empty() { &interface.device } else { &interface.name };
        let own = ("interface", name.as_str());
        self.add(list::TRAFFIC, &[own, ("type", "rx")], number(interface.received_bytes));
        self.add(list::TRAFFIC, &[own, ("type", "tx")], number(interface.sent_bytes));
        for (metric, value) in [
            (list::RECEIVED_BYTES, interface.received_bytes),
            (list::SENT_BYTES, interface.sent_bytes),
            (list::RECEIVED_PACKETS, interface.received_packets),
            (list::SENT_PACKETS, interface.sent_packets),
            (list::RECEIVED_ERRORS, interface.received_errors),
            (list::SENT_ERRORS, interface.sent_errors),
            (list::RECEIVED_DROPPED, interface.received_dropped),
            (list::SENT_DROPPED, interface.sent_dropped),
        ] {
            self.add(metric, &[own], number(value));
        }
    }

    fn filesystem(&mut self, filesystem: &GuestFilesystem) {
        let own = [
            ("disk_name", filesystem.disk_name.as_str()),
            ("mount_point", filesystem.mount_point.as_str()),
            ("file_system_type", filesystem.file_system_type.as_str()),
        ];
        self.add(list::FILESYSTEM_CAPACITY, &own, number(filesystem.total_bytes));
        self.add(list::FILESYSTEM_USED, &own, number(filesystem.used_bytes));
    }

    fn migration(&mut self, migration: &MigrationStats) {
        for (metric, value) in [
            (list::MIGRATION_TOTAL, migration.total),
            (list::MIGRATION_REMAINING, migration.remaining),
            (list::MIGRATION_PROCESSED, migration.transferred),
            (list::MIGRATION_DIRTY_RATE, migration.dirty_rate),
            (list::MIGRATION_SPEED, migration.speed),
        ] {
            self.add(metric, &[], number(value));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "prometheus knows no other numbers")]
fn number(value: u64) -> f64 {
    value as f64
}

#[expect(clippy::cast_precision_loss, reason = "prometheus knows no other numbers")]
fn signed(value: i64) -> f64 {
    value as f64
}

fn seconds(nanoseconds: u64) -> f64 {
    number(nanoseconds) / 1e9
}
