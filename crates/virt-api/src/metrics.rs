//! What virt-api tells Prometheus beside what all components do.

use kubevirt_component::{Metrics, leader};

use crate::counters::Counters;
use crate::subresources::Connections;

/// All of it, as it is counted.
pub struct Told {
    pub(crate) connections: Connections,
    pub(crate) counters: Counters,
}

impl Told {
    /// Nothing so far.
    pub fn new(metrics: &Metrics) -> Self {
        let counters = Counters::new(metrics, leader::identity());
        Self { connections: Connections::new(metrics), counters }
    }
}
