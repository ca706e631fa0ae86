//! What the handler counts itself.

use kubevirt_api::version::VERSION;
use kubevirt_component::Metrics;
use kubevirt_component::metrics::{Metric, Syncs};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

const PANICS: Metric = Metric::counter(
    "kubevirt_vmi_guest_os_panic_total",
    "How often the system of a guest gave up, by the way it told",
)
.by(&["namespace", "name", "type", "bugcheck_code"]);

const INFO: Metric =
    Metric::gauge("kubevirt_info", "The version that runs on a node; always 1").by(&["kubeversion"]);

/// Counts of the handler; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// How often each instance was written.
    pub syncs: Syncs,
    panics: Family<Vec<(String, String)>, Counter>,
}

impl Own {
    /// Adds them to what prometheus is told.
    pub fn new(metrics: &Metrics) -> Self {
        metrics.ask(&[INFO], |page| page.add(&INFO, &[VERSION], 1.0));
        Self { syncs: metrics.syncs(), panics: metrics.register(&PANICS, Family::default()) }
    }

    /// The system of a guest gave up. Windows tells a code.
    pub fn guest_panicked(&self, namespace: &str, name: &str, kind: &str, code: Option<u64>) {
        let code =
            code.filter(|code| *code != 0).map_or_else(|| "unknown".to_owned(), |code| format!("{code:#x}"));
        let labels = [("namespace", namespace), ("name", name), ("type", kind), ("bugcheck_code", &code)];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        self.panics.get_or_create(&labels).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_it_counted() {
        let metrics = Metrics::new();
        let own = Own::new(&metrics);
        own.guest_panicked("default", "one", "hyper-v", Some(0x1e));
        own.guest_panicked("default", "one", "pvpanic", None);
        own.guest_panicked("default", "one", "pvpanic", None);
        let told = metrics.text();
        for (kind, code, count) in [("hyper-v", "0x1e", 1), ("pvpanic", "unknown", 2)] {
            let line = format!(
                "kubevirt_vmi_guest_os_panic_total{{namespace=\"default\",name=\"one\",type=\"{kind}\",bugcheck_code=\"{code}\"}} {count}\n"
            );
            assert!(told.contains(&line), "{told}");
        }
    }
}
