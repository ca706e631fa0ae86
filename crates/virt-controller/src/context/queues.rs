//! The work of each controller, as keys.

use kubevirt_component::{Metrics, Queue};

/// A queue for each controller, by what its keys name.
#[derive(Clone)]
pub struct Queues {
    /// Virtual machines.
    pub vms: Queue,
    /// Instances.
    pub vmis: Queue,
    /// Nodes.
    pub nodes: Queue,
    /// Replica sets.
    pub replica_sets: Queue,
    /// Pools.
    pub pools: Queue,
}

impl Queues {
    /// Empty queues.
    pub fn new() -> Self {
        Self {
            vms: Queue::new("virt-controller-vm"),
            vmis: Queue::new("virt-controller-vmi"),
            nodes: Queue::new("virt-controller-node"),
            replica_sets: Queue::new("virt-controller-replicaset"),
            pools: Queue::new("virt-controller-pool"),
        }
    }
}

impl Queues {
    /// Lets Prometheus see them all.
    pub fn measure(&self, metrics: &Metrics) {
        for queue in [&self.vms, &self.vmis, &self.nodes, &self.replica_sets, &self.pools] {
            queue.measure(metrics);
        }
    }
}

impl Default for Queues {
    fn default() -> Self {
        Self::new()
    }
}
