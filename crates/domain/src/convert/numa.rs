//! Dedicated CPUs, and the NUMA nodes that follow from where they are.

use std::collections::BTreeSet;

use kubevirt_api::names::annotations;

use super::Conversion;
use super::io_threads::IoThreads;
use crate::domain::memory::{Memory, NumaNode};
use crate::facts::NumaCell;
use crate::pinning::{self, PinRequest, Pinning};

/// Where threads run and which NUMA nodes the guest sees.
pub(super) fn convert(
    c: &mut Conversion<'_>,
    memory: &Memory,
    io: &IoThreads,
) -> (Option<Pinning>, Vec<NumaNode>) {
    let cpu = c.spec.cpu.clone().unwrap_or_default();
    let mirror = cpu.numa.is_some_and(|numa| numa.guest_mapping_passthrough.is_some());
    if !c.has_dedicated_cpus() {
        if mirror {
            c.unsupported("spec.domain.cpu.numa.guestMappingPassthrough", "it needs dedicatedCpuPlacement");
        }
        return (None, Vec::new());
    }
    let request = PinRequest {
        cores: c.topology.sockets.saturating_mul(c.topology.cores),
        threads: c.topology.threads,
        strict: mirror,
        own_io_threads: io.supplemental,
        shared_io_threads: io.count - io.supplemental,
        isolate_emulator: c.isolates_emulator(),
        even: c.annotation(annotations::EMULATOR_THREAD_EVEN_PARITY).is_some(),
    };
    let mut pinning = match pinning::plan(&request, &c.host.numa, &c.host.cpuset) {
        Ok(pinning) => pinning,
        Err(error) => {
            c.unsupported("spec.domain.cpu.dedicatedCpuPlacement", error);
            return (None, Vec::new());
        }
    };
    if let Some(realtime) = &cpu.realtime {
        match pinning::parse_mask(realtime.mask.as_deref().unwrap_or(""), c.topology.vcpus()) {
            Some(mask) => pinning.realtime = mask,
            None => c.unsupported("spec.domain.cpu.realtime.mask", "it is not of the form 0-3,^1"),
        }
    }
    let nodes = if mirror { nodes(c, memory, &pinning) } else { Vec::new() };
    (Some(pinning), nodes)
}

/// One node for each node of the host that the virtual CPUs are on, with its share of the huge pages.
fn nodes(c: &mut Conversion<'_>, memory: &Memory, pinning: &Pinning) -> Vec<NumaNode> {
    let field = "spec.domain.cpu.numa.guestMappingPassthrough";
    let Some(page) = memory.backing.huge_page else {
        c.unsupported(field, "it needs huge pages");
        return Vec::new();
    };
    let is_used =
        |cell: &&NumaCell| pinning.vcpus.iter().any(|cpu| cell.cores.iter().flatten().any(|own| own == cpu));
    let cells: Vec<_> = c.host.numa.iter().filter(is_used).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    let (count, pages) = (cells.len() as u64, memory.size / page);
    if pages < count {
        c.unsupported(
            "spec.domain.memory.guest",
            format_args!("it has less than one huge page for each of {count} nodes"),
        );
        return Vec::new();
    }
    let used: BTreeSet<u32> = cells.iter().map(|cell| cell.id).collect();
    let mut nodes: Vec<_> = cells
        .iter()
        .zip(0_u64..)
        .map(|(cell, index)| NumaNode {
            cpus: vcpus_on(cell, pinning),
            size: (pages / count + u64::from(index < pages % count)) * page,
            host_node: Some(cell.id),
            distances: distances(c, cell, &used),
        })
        .collect();
    if let Some(first) = nodes.first_mut() {
        first.cpus.extend(c.topology.vcpus()..c.topology.max_vcpus());
    }
    nodes
}

fn vcpus_on(cell: &NumaCell, pinning: &Pinning) -> Vec<u32> {
    let here = |cpu: &u32| cell.cores.iter().flatten().any(|own| own == cpu);
    (0..).zip(&pinning.vcpus).filter(|(_, cpu)| here(cpu)).map(|(vcpu, _)| vcpu).collect()
}

/// Distances among the used nodes, where the host tells all of them.
fn distances(c: &Conversion<'_>, cell: &NumaCell, used: &BTreeSet<u32>) -> Vec<u32> {
    if c.host.numa.iter().any(|cell| cell.distances.len() != c.host.numa.len()) {
        return Vec::new();
    }
    let pairs = c.host.numa.iter().zip(&cell.distances);
    pairs.filter(|(other, _)| used.contains(&other.id)).map(|(_, distance)| *distance).collect()
}
