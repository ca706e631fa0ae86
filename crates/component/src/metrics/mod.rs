//! What a component counts and measures, and how Prometheus reads it.
//!
//! What is counted as it happens is in a registry. What can be told from what is stored anyway is written by a source,
//! into a [`Page`], whenever somebody reads: so nothing is kept for it in between.

mod classic;
mod describe;
mod page;
mod queue;
mod requests;
mod syncs;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::registry::{Metric as Registered, Registry};

pub use describe::{Description, Kind, Metric};
pub use page::Page;
pub use queue::QueueMetrics;
pub use requests::{RequestMetrics, SentRequest};
pub use syncs::Syncs;

use crate::answers::Answers;

/// What [`Metrics::text`] is, as HTTP names it.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics of a component; clones are the same.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    told: Mutex<Told>,
    queues: queue::Families,
    requests: requests::Families,
    syncs: Syncs,
}

#[derive(Default)]
struct Told {
    registry: Registry,
    sources: Vec<Source>,
    descriptions: Vec<Description>,
}

type Source = Arc<dyn Fn(&mut Page) + Send + Sync>;

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics of queues and requests, and nothing else so far.
    pub fn new() -> Self {
        let mut told = Told::default();
        let queues = queue::Families::register(&mut told);
        let requests = requests::Families::register(&mut told);
        let syncs = Syncs::default();
        Self(Arc::new(Inner { told: Mutex::new(told), queues, requests, syncs }))
    }

    /// Adds a metric under its whole name, as `kubevirt_vmi_info` or `kubevirt_workqueue_adds_total`, and gives it back
    /// to be used.
    pub fn add<M: Registered + Clone>(&self, name: &str, help: &str, metric: M) -> M {
        self.told().add(name, help, None, metric)
    }

    /// The same for one that has no labels.
    pub(crate) fn add_plain<M: Registered + Clone>(&self, name: &str, help: &str, metric: M) -> M {
        self.told().add(name, help, Some(&[]), metric)
    }

    /// The same for one that is described.
    pub fn register<M: Registered + Clone>(&self, what: &Metric, metric: M) -> M {
        self.told().register(what, metric)
    }

    /// Has the source asked for these metrics whenever somebody reads.
    pub fn ask(&self, metrics: &[Metric], source: impl Fn(&mut Page) + Send + Sync + 'static) {
        let mut told = self.told();
        told.descriptions.extend(metrics.iter().map(Description::from));
        told.sources.push(Arc::new(source));
    }

    /// Says that some metrics are told elsewhere, beside this text.
    pub fn describe(&self, metrics: &[Metric]) {
        self.told().descriptions.extend(metrics.iter().map(Description::from));
    }

    /// How often each instance was written. From now on it is told.
    pub fn syncs(&self) -> Syncs {
        let syncs = self.0.syncs.clone();
        self.ask(&[syncs::SYNCS], {
            let syncs = syncs.clone();
            move |page| syncs.tell(page)
        });
        syncs
    }

    /// Every metric that may be told.
    pub fn descriptions(&self) -> Vec<Description> {
        self.told().descriptions.clone()
    }

    /// All of them in the text format.
    pub fn text(&self) -> String {
        let (mut open, sources) = (String::new(), self.told().sources.clone());
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut open, &self.told().registry);
        let mut text = classic::classic(&open);
        // Without our lock, since a source may take its time.
        for source in sources {
            let mut page = Page::default();
            source(&mut page);
            page.write_to(&mut text);
        }
        text
    }

    pub(crate) fn requests(&self, host: &str) -> RequestMetrics {
        self.0.requests.to(host)
    }

    /// Whether requests are answered.
    pub(crate) fn answers(&self) -> Answers {
        self.0.requests.latest.clone()
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn register<M: Registered + Clone>(&mut self, what: &Metric, metric: M) -> M {
        self.add(what.name, what.help, Some(what.labels), metric)
    }

    /// The writer of the text makes the end of counters itself.
    fn add<M: Registered + Clone>(
        &mut self,
        name: &str,
        help: &str,
        labels: Option<&'static [&'static str]>,
        metric: M,
    ) -> M {
        let help = help.strip_suffix('.').unwrap_or(help);
        let kind = Kind::of(metric.metric_type());
        self.descriptions.push(Description { name: name.to_owned(), help: help.to_owned(), kind, labels });
        self.registry.register(name.strip_suffix("_total").unwrap_or(name), help, metric.clone());
        metric
    }
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
        const LATE: Metric = Metric::counter("kubevirt_late_timestamp_seconds", "When");
        metrics.ask(&[LATE], |page| page.add(&LATE, &[], 5.0));
        let text = metrics.text();
        for line in [
            "kubevirt_vm_created_total 1",
            "kubevirt_virt_api_ready_status 1",
            "# HELP kubevirt_vm_created_total Machines made.",
            "# TYPE kubevirt_late_timestamp_seconds counter",
            "kubevirt_late_timestamp_seconds 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }

    #[test]
    fn every_metric_is_described() {
        let metrics = Metrics::new();
        metrics.syncs();
        metrics.add("kubevirt_x_total", "X", Counter::<u64>::default());
        let all = metrics.descriptions();
        let of = |name: &str| all.iter().find(|one| one.name == name).unwrap();
        assert_eq!(of("kubevirt_workqueue_depth").labels, Some(&["name"][..]));
        assert_eq!(of("kubevirt_rest_client_request_latency_seconds").kind, Kind::Histogram);
        assert_eq!((of("kubevirt_x_total").kind, of("kubevirt_x_total").labels), (Kind::Counter, None));
        assert_eq!(of("kubevirt_vmi_sync_total").labels, Some(&["namespace", "name"][..]));
    }
}
