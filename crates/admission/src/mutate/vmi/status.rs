//! The status that an instance starts out with, and who may change it.

use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{CpuTopology, MemoryStatus, PhaseTransition, VmiPhase};

use super::cpu::nonzero;
use crate::{Context, Gate};

/// The user that a launcher runs as: `qemu`, or root where the cluster asks for it.
const QEMU: i64 = 107;
const ROOT: i64 = 0;

/// Starts a new instance as pending.
pub fn begin(cx: &Context<'_>, vmi: &mut VirtualMachineInstance) {
    let status = vmi.status.get_or_insert_default();
    if !cx.config.enabled(Gate::Root) {
        status.runtime_user = Some(QEMU);
    }
    status.runtime_user.get_or_insert(ROOT);
    status.guest_os_info.get_or_insert_default();
    status.phase = Some(VmiPhase::Pending);
    status.phase_transition_timestamps.get_or_insert_default().push(PhaseTransition {
        phase: Some(VmiPhase::Pending),
        phase_transition_timestamp: Some(cx.now.clone()),
    });
}

/// Repeats the memory and the CPUs that the guest starts with, from which later changes are told.
pub fn repeat_resources(vmi: &mut VirtualMachineInstance) {
    let domain = &vmi.spec.domain;
    if let Some(guest) = domain.memory.as_ref().and_then(|memory| memory.guest.as_ref()) {
        vmi.status.get_or_insert_default().memory = Some(MemoryStatus {
            guest_at_boot: Some(guest.clone()),
            guest_current: Some(guest.clone()),
            guest_requested: Some(guest.clone()),
            memory_overhead: None,
        });
    }
    if let Some(cpu) = &domain.cpu {
        let count = |count: Option<i32>| count.and_then(nonzero);
        vmi.status.get_or_insert_default().current_cpu_topology.get_or_insert_with(|| CpuTopology {
            sockets: count(cpu.sockets),
            cores: count(cpu.cores),
            threads: count(cpu.threads),
        });
    }
}

/// Takes back a change of the status unless one of our own components makes it: there is no subresource for it.
pub fn keep_unless_own(cx: &Context<'_>, vmi: &mut VirtualMachineInstance, old: &VirtualMachineInstance) {
    if vmi.status != old.status && !cx.by_own_component() {
        vmi.status.clone_from(&old.status);
    }
}
