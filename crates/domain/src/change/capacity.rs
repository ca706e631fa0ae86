//! More CPUs, and more or less memory.

use super::{Change, Plan};

/// Fills sockets that are empty.
pub(super) fn cpus(plan: &mut Plan<'_>) {
    let (has, wants) = (plan.after.cpu.topology, plan.wanted.cpu.topology);
    if (has.cores, has.threads) != (wants.cores, wants.threads) || has.sockets == wants.sockets {
        return;
    }
    let what = "cpu.topology.sockets";
    if wants.sockets < has.sockets {
        plan.needs_restart(what, "CPUs cannot be taken from a machine that runs");
    } else if wants.sockets > has.max_sockets {
        plan.needs_restart(what, format_args!("the machine has places for {} sockets", has.max_sockets));
    } else {
        let pinning = plan.wanted.pinning.clone();
        plan.push(Change::PlugSockets { sockets: wants.sockets, pinning });
    }
}

/// Asks for memory up to the most there can be, and down to what there was at start.
pub(super) fn memory(plan: &mut Plan<'_>) {
    let (has, wants) = (&plan.after.memory, &plan.wanted.memory);
    let requested = |hotplug: &Option<crate::domain::memory::MemoryHotplug>| {
        hotplug.as_ref().map_or(0, |hotplug| hotplug.requested)
    };
    let total = wants.size.saturating_add(requested(&wants.hotplug));
    let now = has.size.saturating_add(requested(&has.hotplug));
    if total == now {
        return;
    }
    let what = "memory.size";
    let Some(room) = &has.hotplug else {
        return plan.needs_restart(what, "the machine has no room for other memory");
    };
    match total.checked_sub(has.size) {
        None => plan.needs_restart(what, "it is less than the machine started with"),
        Some(bytes) if bytes > room.size => {
            plan.needs_restart(what, "it is more than the machine has room for");
        }
        Some(bytes) if !bytes.is_multiple_of(room.block.max(1)) => {
            let reason = format!("memory grows in blocks of {} bytes only", room.block);
            plan.needs_restart(what, reason);
        }
        Some(bytes) => plan.push(Change::RequestMemory { bytes }),
    }
}
