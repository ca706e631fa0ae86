//! Which host CPU each thread of a machine with dedicated CPUs runs on.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::facts::NumaCell;

/// Host CPUs of a machine's threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pinning {
    /// Host CPU of each virtual CPU, by its number.
    pub vcpus: Vec<u32>,
    /// Host CPUs of the main thread and its helpers; those of the virtual CPUs if empty.
    pub emulator: Vec<u32>,
    /// Host CPUs of each IO thread, by its number from 1.
    pub io_threads: BTreeMap<u32, Vec<u32>>,
    /// Virtual CPUs that run with real-time priority.
    pub realtime: BTreeSet<u32>,
}

/// What has to be placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PinRequest {
    /// Cores of the guest, over all sockets.
    pub cores: u32,
    /// Threads of a core.
    pub threads: u32,
    /// The threads of a core must stay on one NUMA node.
    pub strict: bool,
    /// IO threads with host CPUs of their own.
    pub own_io_threads: u32,
    /// IO threads that share the virtual CPUs' or the main thread's host CPUs.
    pub shared_io_threads: u32,
    /// The main thread has a host CPU of its own.
    pub isolate_emulator: bool,
    /// The main thread gets a second host CPU if that makes the total even.
    pub even: bool,
}

/// Why threads cannot be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PinError {
    /// There are too few host CPUs.
    #[error("{missing} dedicated CPUs are missing")]
    TooFew {
        /// How many more it takes.
        missing: u32,
    },
    /// There are enough, but a core would span NUMA nodes.
    #[error("a core of the guest would span NUMA nodes of the host")]
    SpansNodes,
}

/// Places the threads of a machine on the host CPUs that belong to it.
///
/// A guest's core goes to a core of the host where one has enough free threads, else to one NUMA node, else
/// anywhere. Single threads take what is left over first, so whole cores stay whole.
pub fn plan(request: &PinRequest, numa: &[NumaCell], cpuset: &[u32]) -> Result<Pinning, PinError> {
    let mut pool = Pool::new(numa, cpuset);
    let singles = request.own_io_threads + u32::from(request.isolate_emulator);
    let needed = request.cores.saturating_mul(request.threads).saturating_add(singles);
    if pool.len() < needed {
        return Err(PinError::TooFew { missing: needed - pool.len() });
    }
    let mut pinning = Pinning::default();
    for _ in 0..request.cores {
        let core = pool.take_core(request.threads as usize, request.strict).ok_or(PinError::SpansNodes)?;
        pinning.vcpus.extend(core);
    }
    for thread in 1..=request.own_io_threads {
        pinning.io_threads.insert(thread, vec![pool.take_one()?]);
    }
    if request.isolate_emulator {
        pinning.emulator.push(pool.take_one()?);
        let pinned = request.cores * request.threads + request.own_io_threads;
        if request.even && pinned.is_multiple_of(2) {
            pinning.emulator.push(pool.take_one()?);
        }
    }
    share(&mut pinning, request);
    Ok(pinning)
}

/// Reads a mask such as `0-3,^1` of virtual CPUs.
pub fn parse_mask(mask: &str, vcpus: u32) -> Option<BTreeSet<u32>> {
    let (mut chosen, mut excluded) = (BTreeSet::new(), BTreeSet::new());
    for part in mask.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (part, set) = match part.strip_prefix('^') {
            Some(part) => (part, &mut excluded),
            None => (part, &mut chosen),
        };
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last {
            return None;
        }
        set.extend(first..=last.min(vcpus));
    }
    if chosen.is_empty() {
        chosen.extend(0..vcpus);
    }
    Some(chosen.into_iter().filter(|cpu| *cpu < vcpus && !excluded.contains(cpu)).collect())
}

/// IO threads without host CPUs of their own join the main thread, or are spread over the virtual CPUs.
fn share(pinning: &mut Pinning, request: &PinRequest) {
    let (count, cpus) = (request.shared_io_threads as usize, pinning.vcpus.clone());
    if request.isolate_emulator {
        let emulator = pinning.emulator.clone();
        pinning.io_threads.extend((1..=request.shared_io_threads).map(|thread| (thread, emulator.clone())));
    } else if count >= cpus.len() {
        let shared = (1..=count).zip(cpus.iter().cycle());
        pinning.io_threads.extend(shared.map(|(thread, cpu)| (thread as u32, vec![*cpu])));
    } else {
        let (each, longer) = (cpus.len() / count.max(1), cpus.len() % count.max(1));
        let mut rest = cpus.as_slice();
        for thread in 1..=count {
            let (mine, others) = rest.split_at(each + usize::from(thread <= longer));
            pinning.io_threads.insert(thread as u32, mine.to_vec());
            rest = others;
        }
    }
}

/// Free host CPUs: by node, by core, by thread.
struct Pool {
    nodes: Vec<Vec<Vec<u32>>>,
}

impl Pool {
    fn new(numa: &[NumaCell], cpuset: &[u32]) -> Self {
        let mut left: BTreeSet<u32> = cpuset.iter().copied().collect();
        let mut nodes: Vec<Vec<Vec<u32>>> = Vec::new();
        for cell in numa {
            let cores =
                cell.cores.iter().map(|core| core.iter().copied().filter(|cpu| left.remove(cpu)).collect());
            nodes.push(cores.collect());
        }
        // CPUs that no node lists count as cores of a node of their own.
        nodes.push(left.into_iter().map(|cpu| vec![cpu]).collect());
        Self { nodes }
    }

    fn len(&self) -> u32 {
        self.nodes.iter().flatten().map(Vec::len).sum::<usize>() as u32
    }

    fn take_core(&mut self, threads: usize, strict: bool) -> Option<Vec<u32>> {
        if let Some(core) = self.nodes.iter_mut().flatten().find(|core| core.len() >= threads) {
            return Some(core.drain(..threads).collect());
        }
        let fits = |node: &&mut Vec<Vec<u32>>| node.iter().map(Vec::len).sum::<usize>() >= threads;
        if let Some(node) = self.nodes.iter_mut().find(fits) {
            return Some(take_from(node.iter_mut(), threads));
        }
        let enough = !strict && self.len() as usize >= threads;
        enough.then(|| take_from(self.nodes.iter_mut().flatten(), threads))
    }

    fn take_one(&mut self) -> Result<u32, PinError> {
        let node = self.nodes.iter_mut().find(|node| node.iter().any(|core| !core.is_empty()));
        let core = node
            .and_then(|node| node.iter_mut().filter(|core| !core.is_empty()).min_by_key(|core| core.len()));
        core.map(|core| core.remove(0)).ok_or(PinError::TooFew { missing: 1 })
    }
}

fn take_from<'a>(cores: impl Iterator<Item = &'a mut Vec<u32>>, threads: usize) -> Vec<u32> {
    let mut taken = Vec::new();
    for core in cores {
        let want = core.len().min(threads - taken.len());
        taken.extend(core.drain(..want));
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u32, cores: &[&[u32]]) -> NumaCell {
        NumaCell { id, cores: cores.iter().map(|core| core.to_vec()).collect(), distances: Vec::new() }
    }

    fn request(cores: u32, threads: u32) -> PinRequest {
        PinRequest { cores, threads, ..PinRequest::default() }
    }

    #[test]
    fn guest_cores_go_to_host_cores() {
        let numa = [node(0, &[&[0, 4], &[1, 5]]), node(1, &[&[2, 6], &[3, 7]])];
        let pins = plan(&request(2, 2), &numa, &[1, 2, 5, 6]).unwrap();
        assert_eq!(pins.vcpus, [1, 5, 2, 6]);
    }

    #[test]
    fn fragments_serve_a_core_only_on_one_node_if_strict() {
        let numa = [node(0, &[&[0, 4]]), node(1, &[&[1, 5]])];
        assert_eq!(plan(&request(1, 2), &numa, &[0, 1]).unwrap().vcpus, [0, 1]);
        let strict = PinRequest { strict: true, ..request(1, 2) };
        assert_eq!(plan(&strict, &numa, &[0, 1]), Err(PinError::SpansNodes));
    }

    #[test]
    fn the_main_thread_and_io_threads_have_their_own() {
        let all = PinRequest { isolate_emulator: true, even: true, own_io_threads: 2, ..request(2, 1) };
        let pins = plan(&all, &[], &[0, 1, 2, 3, 4, 5]).unwrap();
        assert_eq!((pins.vcpus, pins.emulator), (vec![0, 1], vec![4, 5]));
        assert_eq!(pins.io_threads, BTreeMap::from([(1, vec![2]), (2, vec![3])]));
        assert_eq!(plan(&all, &[], &[0, 1, 2]), Err(PinError::TooFew { missing: 2 }));
    }

    #[test]
    fn shared_io_threads_are_spread() {
        let shared = PinRequest { shared_io_threads: 3, ..request(8, 1) };
        let pins = plan(&shared, &[], &[0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
        let expected = BTreeMap::from([(1, vec![0, 1, 2]), (2, vec![3, 4, 5]), (3, vec![6, 7])]);
        assert_eq!(pins.io_threads, expected);
    }

    #[test]
    fn masks() {
        assert_eq!(parse_mask("0-3,^1", 4), Some(BTreeSet::from([0, 2, 3])));
        assert_eq!(parse_mask("", 2), Some(BTreeSet::from([0, 1])));
        assert_eq!(parse_mask("a", 2), None);
    }
}
