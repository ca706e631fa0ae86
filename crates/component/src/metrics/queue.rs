//! How much work waits, how long it waits and how long it takes.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::{Description, Metric, Metrics, Page, Told};

const BY_QUEUE: &[&str] = &["name"];
const DEPTH: Metric = Metric::gauge("kubevirt_workqueue_depth", "Items that wait").by(BY_QUEUE);
const ADDS: Metric = Metric::counter("kubevirt_workqueue_adds_total", "Items that were added").by(BY_QUEUE);
const WAITS: Metric = Metric::histogram(
    "kubevirt_workqueue_queue_duration_seconds",
    "How long items waited before a worker took them",
)
.by(BY_QUEUE);
const WORKS: Metric =
    Metric::histogram("kubevirt_workqueue_work_duration_seconds", "How long the work on an item took")
        .by(BY_QUEUE);
const RETRIES: Metric =
    Metric::counter("kubevirt_workqueue_retries_total", "Items that failed and were added again")
        .by(BY_QUEUE);
const LONGEST: Metric = Metric::gauge(
    "kubevirt_workqueue_longest_running_processor_seconds",
    "How long the longest work that goes on takes already",
)
.by(BY_QUEUE);
const UNFINISHED: Metric = Metric::gauge(
    "kubevirt_workqueue_unfinished_work_seconds",
    "How long all work that goes on takes already",
)
.by(BY_QUEUE);

type Name = [(&'static str, String); 1];
type Histograms = Family<Name, Histogram, fn() -> Histogram>;

/// The metrics of all queues.
pub(super) struct Families {
    depth: Family<Name, Gauge>,
    adds: Family<Name, Counter>,
    waits: Histograms,
    works: Histograms,
    retries: Family<Name, Counter>,
    running: Running,
}

impl Families {
    pub(super) fn register(told: &mut Told) -> Self {
        let histograms = || Family::new_with_constructor(histogram as fn() -> Histogram);
        let families = Self {
            depth: told.register(&DEPTH, Family::default()),
            adds: told.register(&ADDS, Family::default()),
            waits: told.register(&WAITS, histograms()),
            works: told.register(&WORKS, histograms()),
            retries: told.register(&RETRIES, Family::default()),
            running: Running::default(),
        };
        told.descriptions.extend([&LONGEST, &UNFINISHED].map(Description::from));
        let running = families.running.clone();
        told.sources.push(Arc::new(move |page| running.tell(page)));
        families
    }
}

/// From ten nanoseconds to ten seconds.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-8, 10.0, 10))
}

/// The metrics of one queue: a few atomic numbers, cheap enough for every item.
#[derive(Clone, Debug)]
pub struct QueueMetrics {
    depth: Gauge,
    adds: Counter,
    waits: Histogram,
    works: Histogram,
    retries: Counter,
    running: Arc<Mutex<Vec<Instant>>>,
}

impl QueueMetrics {
    /// The metrics of the queue of this name.
    pub fn new(metrics: &Metrics, name: &str) -> Self {
        let families = &metrics.0.queues;
        let label = [("name", name.to_owned())];
        Self {
            depth: families.depth.get_or_create_owned(&label),
            adds: families.adds.get_or_create_owned(&label),
            waits: families.waits.get_or_create_owned(&label),
            works: families.works.get_or_create_owned(&label),
            retries: families.retries.get_or_create_owned(&label),
            running: families.running.of_queue(name),
        }
    }

    /// An item came that was not there yet.
    pub fn added(&self) {
        self.adds.inc();
    }

    /// A worker took an item, which had waited for so long.
    pub fn taken(&self, waited: Duration) {
        self.waits.observe(waited.as_secs_f64());
        self.running.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
    }

    /// A worker has done with an item that it took so long ago.
    pub fn done(&self, worked: Duration) {
        self.works.observe(worked.as_secs_f64());
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // The one whose beginning fits best; there are only as many as workers.
        let off = |start: &Instant| start.elapsed().abs_diff(worked);
        if let Some((index, _)) = running.iter().enumerate().min_by_key(|(_, start)| off(start)) {
            running.swap_remove(index);
        }
    }

    /// An item failed and comes again.
    pub fn retried(&self) {
        self.retries.inc();
    }

    /// So many items wait.
    pub fn depth(&self, waiting: usize) {
        self.depth.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }
}

type Started = Mutex<Vec<Instant>>;

/// When the work that goes on began, by queue.
#[derive(Clone, Debug, Default)]
struct Running(Arc<Mutex<Vec<Queue>>>);

/// The name of a queue and its work, as long as the queue is there.
type Queue = (String, Weak<Started>);

impl Running {
    fn of_queue(&self, name: &str) -> Arc<Started> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, queue)| queue.strong_count() > 0);
        if let Some(same) = all.iter().find(|(known, _)| known == name).and_then(|(_, queue)| queue.upgrade())
        {
            return same;
        }
        let queue = Arc::default();
        all.push((name.to_owned(), Arc::downgrade(&queue)));
        queue
    }

    /// For each queue, how long the work that goes on takes already: the longest, and all of it.
    fn times(&self) -> Vec<(String, f64, f64)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_queue = |(name, queue): &Queue| {
            let queue = queue.upgrade()?;
            let started = queue.lock().unwrap_or_else(PoisonError::into_inner);
            let times: Vec<f64> = started.iter().map(|start| start.elapsed().as_secs_f64()).collect();
            Some((name.clone(), times.iter().copied().fold(0.0, f64::max), times.iter().sum()))
        };
        all.iter().filter_map(of_queue).collect()
    }

    fn tell(&self, page: &mut Page) {
        for (queue, longest, all) in self.times() {
            page.add(&LONGEST, &[&queue], longest);
            page.add(&UNFINISHED, &[&queue], all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_measured() {
        let metrics = Metrics::new();
        let queue = QueueMetrics::new(&metrics, "vm");
        let same = QueueMetrics::new(&metrics, "vm");
        queue.added();
        same.added();
        queue.depth(2);
        queue.taken(Duration::from_millis(5));
        queue.taken(Duration::from_millis(5));
        queue.retried();
        let value = |line: &str| {
            let text = metrics.text();
            let found = text.lines().find_map(|found| found.strip_prefix(line)).map(str::to_owned);
            found.unwrap_or_else(|| panic!("{line} in {text}")).trim().parse::<f64>().unwrap()
        };
        assert_eq!(value("kubevirt_workqueue_adds_total{name=\"vm\"}"), 2.0);
        assert_eq!(value("kubevirt_workqueue_depth{name=\"vm\"}"), 2.0);
        assert_eq!(value("kubevirt_workqueue_retries_total{name=\"vm\"}"), 1.0);
        assert_eq!(value("kubevirt_workqueue_queue_duration_seconds_count{name=\"vm\"}"), 2.0);
        assert!(value("kubevirt_workqueue_unfinished_work_seconds{name=\"vm\"}") > 0.0);
        queue.done(Duration::ZERO);
        queue.done(Duration::ZERO);
        queue.done(Duration::ZERO);
        assert_eq!(value("kubevirt_workqueue_work_duration_seconds_count{name=\"vm\"}"), 3.0);
        assert_eq!(value("kubevirt_workqueue_unfinished_work_seconds{name=\"vm\"}"), 0.0);
        assert_eq!(value("kubevirt_workqueue_longest_running_processor_seconds{name=\"vm\"}"), 0.0);
    }
}
