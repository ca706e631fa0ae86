//! What the handler counts itself.

use kubevirt_component::Metrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// Counts of the handler; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Own {
    ready: Gauge,
    panics: Family<Vec<(String, String)>, Counter>,
}

impl Own {
    /// Adds them to what prometheus is told.
    pub fn register(&self, metrics: &Metrics) {
        metrics.add(
            "kubevirt_virt_handler_ready_status",
            "Whether this virt-handler takes care of instances",
            self.ready.clone(),
        );
        metrics.add(
            "kubevirt_vmi_guest_os_panic_total",
            "How often the system of a guest gave up, by the way it told",
            self.panics.clone(),
        );
    }

    /// The handler takes care of instances, or not.
    pub fn set_ready(&self, ready: bool) {
        self.ready.set(ready.into());
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
        let own = Own::default();
        own.set_ready(true);
        own.guest_panicked("default", "one", "hyper-v", Some(0x1e));
        own.guest_panicked("default", "one", "pvpanic", None);
        own.guest_panicked("default", "one", "pvpanic", None);
        let metrics = Metrics::new();
        own.register(&metrics);
        let told = metrics.text();
        assert!(told.contains("kubevirt_virt_handler_ready_status 1\n"), "{told}");
        for (kind, code, count) in [("hyper-v", "0x1e", 1), ("pvpanic", "unknown", 2)] {
            let line = format!(
                "kubevirt_vmi_guest_os_panic_total{{namespace=\"default\",name=\"one\",type=\"{kind}\",bugcheck_code=\"{code}\"}} {count}\n"
            );
            assert!(told.contains(&line), "{told}");
        }
    }
}
