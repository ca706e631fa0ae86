//! What a component counts and measures, and how Prometheus reads it.

mod queue;
mod requests;

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::registry::{Metric, Registry};

pub use queue::QueueMetrics;
pub use requests::{RequestMetrics, SentRequest};

/// What [`Metrics::text`] is, as HTTP names it.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of a component; clones are the same.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Mutex<Registry>,
    queues: queue::Families,
    requests: requests::Families,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics of queues and requests, and nothing else so far.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let queues = queue::Families::register(&mut registry);
        let requests = requests::Families::register(&mut registry);
        Self(Arc::new(Inner { registry: Mutex::new(registry), queues, requests }))
    }

    /// Adds a metric under its whole name, as `kubevirt_vmi_info` or `kubevirt_workqueue_adds_total`, and gives it back
    /// to be used.
    pub fn add<M: Metric + Clone>(&self, name: &str, help: &str, metric: M) -> M {
        let mut registry = self.0.registry.lock().unwrap_or_else(PoisonError::into_inner);
        add(&mut registry, name, help, metric)
    }

    /// Adds something that is asked for its metrics whenever they are read.
    pub fn collect(&self, collector: impl prometheus_client::collector::Collector) {
        let mut registry = self.0.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.register_collector(Box::new(collector));
    }

    /// All of them in the text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.0.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
        text
    }

    pub(crate) fn requests(&self, host: &str) -> RequestMetrics {
        self.0.requests.to(host)
    }
}

/// Adds a metric under its whole name, of which the writer of the text makes the end of counters itself.
fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    let help = help.strip_suffix('.').unwrap_or(help);
    registry.register(name.strip_suffix("_total").unwrap_or(name), help, metric.clone());
    metric
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    use super::*;

    #[test]
    fn names_are_as_given() {
        let metrics = Metrics::new();
        let made: Counter = metrics.add("kubevirt_vm_created_total", "Machines made.", Counter::default());
        let ready: Gauge = metrics.add("kubevirt_virt_api_ready_status", "Ready", Gauge::default());
        made.inc();
        ready.set(1);
        let text = metrics.text();
        for line in [
            "kubevirt_vm_created_total 1",
            "kubevirt_virt_api_ready_status 1",
            "# HELP kubevirt_vm_created Machines made.",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
