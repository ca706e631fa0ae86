//! What virt-api counts.

use kubevirt_component::Metrics;
use kubevirt_component::metrics::Metric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

type Labels = [(&'static str, String); 2];

const CREATED: Metric = Metric::counter(
    "kubevirt_vm_created_by_pod_total",
    "Deprecated: machines that were created, by the pod that admitted them",
)
.by(&["namespace", "virt_api_pod"]);

/// What virt-api counts.
pub struct Counters {
    created: Family<Labels, Counter>,
    pod: String,
}

impl Counters {
    /// Counters of the pod of this name.
    pub fn new(metrics: &Metrics, pod: String) -> Self {
        Self { created: metrics.register(&CREATED, Family::default()), pod }
    }

    /// A virtual machine was admitted.
    pub fn vm_created(&self, namespace: &str) {
        let labels = [("namespace", namespace.to_owned()), ("virt_api_pod", self.pod.clone())];
        self.created.get_or_create_owned(&labels).inc();
    }
}
