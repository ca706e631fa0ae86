//! What virt-api counts.

use kubevirt_component::Metrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

type Labels = [(&'static str, String); 2];

/// What virt-api counts.
pub struct Counters {
    created: Family<Labels, Counter>,
    pod: String,
}

impl Counters {
    /// Counters of the pod of this name.
    pub fn new(metrics: &Metrics, pod: String) -> Self {
        let help = "Virtual machines that were created, by namespace and by the pod that admitted them";
        Self { created: metrics.add("kubevirt_vm_created_by_pod_total", help, Family::default()), pod }
    }

    /// A virtual machine was admitted.
    pub fn vm_created(&self, namespace: &str) {
        let labels = [("namespace", namespace.to_owned()), ("virt_api_pod", self.pod.clone())];
        self.created.get_or_create_owned(&labels).inc();
    }
}
