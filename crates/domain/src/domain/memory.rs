//! Guest memory, what backs it and how it is spread over NUMA nodes.

use serde::{Deserialize, Serialize};

use crate::pci::Address;

/// Guest memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    /// Bytes at start.
    pub size: u64,
    /// What backs it.
    pub backing: MemoryBacking,
    /// Nodes that the guest sees; none if it sees no NUMA.
    pub nodes: Vec<NumaNode>,
    /// How it can grow.
    pub hotplug: Option<MemoryHotplug>,
    /// Keep all of the process in memory.
    pub locked: bool,
    /// Leave equal pages alone instead of merging them.
    pub no_merge: bool,
}

/// What backs guest memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryBacking {
    /// An anonymous file instead of plain memory.
    pub memfd: bool,
    /// Size in bytes of the huge pages it is made of.
    pub huge_page: Option<u64>,
    /// Other processes, such as file servers, can map it.
    pub shared: bool,
    /// All of it is taken at start.
    pub preallocated: bool,
}

/// A NUMA node of the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NumaNode {
    /// Virtual CPUs.
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// Bytes of memory.
    pub size: u64,
    /// NUMA node of the host that its memory comes from.
    pub host_node: Option<u32>,
    /// Distances to all nodes of the guest, where the host tells them.
    #[serde(default)]
    pub distances: Vec<u32>,
}

/// How memory can grow: one virtio-mem device that starts empty or filled in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryHotplug {
    /// Most bytes there can be, with those at start.
    pub max: u64,
    /// Bytes the device can give.
    pub size: u64,
    /// Bytes it shall give now.
    pub requested: u64,
    /// Bytes that come and go together.
    pub block: u64,
    /// Where the device sits.
    pub address: Address,
}

/// A memory object of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryObject {
    /// Name of the object.
    pub id: String,
    /// Bytes.
    pub size: u64,
    /// NUMA node of the host.
    pub host_node: Option<u32>,
}

impl Memory {
    /// The objects that together are the guest's memory at start.
    pub fn objects(&self) -> Vec<MemoryObject> {
        if self.nodes.is_empty() {
            return vec![MemoryObject { id: "ram0".into(), size: self.size, host_node: None }];
        }
        let node = |(index, node): (usize, &NumaNode)| MemoryObject {
            id: format!("ram{index}"),
            size: node.size,
            host_node: node.host_node,
        };
        self.nodes.iter().enumerate().map(node).collect()
    }
}
