//! NUMA nodes of the host: which CPUs are near which memory, and near each other.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cpus::parse_list;
use crate::read::{self, ReadError};

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its number.
    pub id: u32,
    /// Its cores, each with the CPU numbers of its threads. Empty for a node that has only memory.
    pub cores: Vec<Vec<u32>>,
    /// Distances to all nodes that are online, in the order of their numbers; empty if not known.
    pub distances: Vec<u32>,
}

/// The nodes of this host, in the order of their numbers. A kernel without NUMA has one.
pub fn cells() -> Result<Vec<Cell>, ReadError> {
    cells_below(Path::new("/sys/devices/system"))
}

fn cells_below(system: &Path) -> Result<Vec<Cell>, ReadError> {
    let siblings = |cpu: u32| siblings(system, cpu);
    let nodes = system.join("node/online");
    if !nodes.exists() {
        let cpus = read::parsed(&system.join("cpu/online"), parse_list)?;
        return Ok(vec![Cell { id: 0, cores: cores(&cpus, siblings), distances: Vec::new() }]);
    }
    let cell = |id: u32| {
        let node = system.join(format!("node/node{id}"));
        let cpus = read::parsed(&node.join("cpulist"), parse_list)?;
        // Nice to have: machines run without it.
        let distances = read::parsed(&node.join("distance"), distances).unwrap_or_default();
        Ok(Cell { id, cores: cores(&cpus, siblings), distances })
    };
    read::parsed(&nodes, parse_list)?.into_iter().map(cell).collect()
}

fn siblings(system: &Path, cpu: u32) -> Vec<u32> {
    let topology = system.join(format!("cpu/cpu{cpu}/topology"));
    // Linux 5.3 gave it the first name.
    let lists = ["core_cpus_list", "thread_siblings_list"].into_iter();
    lists.filter_map(|name| read::parsed(&topology.join(name), parse_list).ok()).next().unwrap_or_default()
}

/// Groups CPUs by core; one that nothing is known of is its own.
fn cores(cpus: &[u32], siblings: impl Fn(u32) -> Vec<u32>) -> Vec<Vec<u32>> {
    let mut cores: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for cpu in cpus.iter().copied() {
        let first = siblings(cpu).into_iter().find(|sibling| cpus.contains(sibling)).unwrap_or(cpu);
        cores.entry(first).or_default().push(cpu);
    }
    cores.into_values().collect()
}

fn distances(text: &str) -> Option<Vec<u32>> {
    text.split_whitespace().map(|distance| distance.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn groups_threads_by_core() {
        let pairs = |cpu: u32| vec![cpu % 2, cpu % 2 + 2];
        for (cpus, expected) in [
            (vec![0, 1, 2, 3], vec![vec![0, 2], vec![1, 3]]),
            (vec![0, 1, 3], vec![vec![0], vec![1, 3]]),
            (vec![2, 3], vec![vec![2], vec![3]]),
            (vec![], vec![]),
        ] {
            assert_eq!(cores(&cpus, pairs), expected, "{cpus:?}");
        }
        assert_eq!(cores(&[4, 5], |_| Vec::new()), [[4], [5]]);
    }

    #[test]
    fn reads_a_host_of_three_nodes() {
        let mut files = vec![
            ("node/online".to_owned(), "0-1,4\n"),
            ("node/node0/cpulist".to_owned(), "0-1,4-5\n"),
            ("node/node0/distance".to_owned(), "10 21 40\n"),
            ("node/node1/cpulist".to_owned(), "2-3\n"),
            ("node/node1/distance".to_owned(), "21 10 40\n"),
            ("node/node4/cpulist".to_owned(), "\n"),
        ];
        for (cpu, threads) in [(0, "0,4"), (1, "1,5"), (4, "0,4"), (5, "1,5")] {
            files.push((format!("cpu/cpu{cpu}/topology/core_cpus_list"), threads));
        }
        for cpu in [2, 3] {
            files.push((format!("cpu/cpu{cpu}/topology/thread_siblings_list"), "2-3\n"));
        }
        let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let folder = Folder::of(&files);
        let cells = cells_below(folder.path()).unwrap();
        assert_eq!(
            cells,
            [
                Cell { id: 0, cores: vec![vec![0, 4], vec![1, 5]], distances: vec![10, 21, 40] },
                Cell { id: 1, cores: vec![vec![2, 3]], distances: vec![21, 10, 40] },
                Cell { id: 4, cores: vec![], distances: vec![] },
            ]
        );
    }

    #[test]
    fn reads_a_host_without_nodes() {
        let folder = Folder::of(&[("cpu/online", "0-1\n")]);
        let expected = Cell { id: 0, cores: vec![vec![0], vec![1]], distances: vec![] };
        assert_eq!(cells_below(folder.path()).unwrap(), [expected]);
        let folder = Folder::of(&[("node/online", "0\n")]);
        assert!(matches!(cells_below(folder.path()), Err(ReadError::File { .. })));
    }

    #[test]
    fn reads_this_host() {
        let cells = cells().unwrap();
        println!("{cells:?}");
        assert!(cells.iter().any(|cell| !cell.cores.is_empty()));
    }
}
