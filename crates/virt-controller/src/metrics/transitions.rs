//! How long phases of instances and migrations took, counted as they change.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_api::migration::VirtualMachineInstanceMigration;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_component::metrics::Metric;
use kubevirt_component::{Change, Metrics};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

const BETWEEN: Metric = Metric::histogram(
    "kubevirt_vmi_phase_transition_time_seconds",
    "From one phase of an instance to the next",
)
.by(&["phase", "last_phase"]);
const FROM_CREATION: Metric = Metric::histogram(
    "kubevirt_vmi_phase_transition_time_from_creation_seconds",
    "From the creation of an instance to a phase",
)
.by(&["phase"]);
const FROM_DELETION: Metric = Metric::histogram(
    "kubevirt_vmi_phase_transition_time_from_deletion_seconds",
    "From the deletion of an instance to its last phase",
)
.by(&["phase"]);
const MIGRATION: Metric = Metric::histogram(
    "kubevirt_vmi_migration_phase_transition_time_from_creation_seconds",
    "From the creation of a migration to a phase",
)
.by(&["phase"]);

const BOUNDS: [f64; 18] = [
    0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 1200.0, 1800.0,
    3600.0,
];

fn histogram() -> Histogram {
    Histogram::new(BOUNDS)
}

type By<L> = Family<L, Histogram, fn() -> Histogram>;
type Phase = [(&'static str, String); 1];
type Phases = [(&'static str, String); 2];

/// How long phases took; clones share it.
#[derive(Clone, Debug)]
pub struct Transitions {
    between: By<Phases>,
    from_creation: By<Phase>,
    from_deletion: By<Phase>,
    migration: By<Phase>,
}

impl Default for Transitions {
    fn default() -> Self {
        Self { between: family(), from_creation: family(), from_deletion: family(), migration: family() }
    }
}

fn family<L: Clone + std::hash::Hash + Eq>() -> By<L> {
    Family::new_with_constructor(histogram as fn() -> Histogram)
}

impl Transitions {
    /// Adds them to what Prometheus is told.
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            between: metrics.register(&BETWEEN, family()),
            from_creation: metrics.register(&FROM_CREATION, family()),
            from_deletion: metrics.register(&FROM_DELETION, family()),
            migration: metrics.register(&MIGRATION, family()),
        }
    }

    /// An instance has changed.
    pub fn instance(&self, change: &Change<'_, VirtualMachineInstance>) {
        let (Some(old), Some(new)) = (change.old, change.new) else { return };
        let Some(took) = Took::of(old, new) else { return };
        let label = [("phase", took.phase.as_str().to_owned())];
        if let Some(time) = took.between {
            let labels = [label[0].clone(), ("last_phase", took.last_phase.to_owned())];
            self.between.get_or_create_owned(&labels).observe(time);
        }
        if let Some(time) = took.from_creation {
            self.from_creation.get_or_create_owned(&label).observe(time);
        }
        if let Some(time) = took.from_deletion {
            self.from_deletion.get_or_create_owned(&label).observe(time);
        }
    }

    /// A migration has changed.
    pub fn migration(&self, change: &Change<'_, VirtualMachineInstanceMigration>) {
        let (Some(old), Some(new)) = (change.old, change.new) else { return };
        let phase = |migration: &VirtualMachineInstanceMigration| migration.status.as_ref()?.phase.clone();
        let (Some(reached), false) = (phase(new), phase(old) == phase(new)) else { return };
        let times = new.status.as_ref().and_then(|status| status.phase_transition_timestamps.as_deref());
        let entry = times.unwrap_or_default().iter().find(|entry| entry.phase.as_ref() == Some(&reached));
        let time = entry.and_then(|entry| entry.phase_transition_timestamp.as_ref());
        if let Some(time) = span(new.metadata.creation_timestamp.as_ref(), time) {
            self.migration.get_or_create_owned(&[("phase", reached.as_str().to_owned())]).observe(time);
        }
    }
}

/// What a change of phase took.
#[derive(Debug, PartialEq)]
struct Took<'a> {
    phase: &'a VmiPhase,
    last_phase: &'a str,
    between: Option<f64>,
    from_creation: Option<f64>,
    from_deletion: Option<f64>,
}

impl<'a> Took<'a> {
    fn of(old: &'a VirtualMachineInstance, new: &'a VirtualMachineInstance) -> Option<Self> {
        let (before, phase) = (phase(old), phase(new)?);
        if before == Some(phase) {
            return None;
        }
        let (created, deleted) = (&new.metadata.creation_timestamp, &new.metadata.deletion_timestamp);
        let reached = entered(new, phase);
        let left = before.map_or(created.as_ref(), |before| entered(new, before));
        let ended = matches!(phase, VmiPhase::Succeeded | VmiPhase::Failed);
        Some(Self {
            phase,
            last_phase: before.map(VmiPhase::as_str).unwrap_or_default(),
            between: span(left, reached),
            from_creation: span(created.as_ref(), reached),
            from_deletion: span(deleted.as_ref().filter(|_| ended), reached),
        })
    }
}

fn phase(vmi: &VirtualMachineInstance) -> Option<&VmiPhase> {
    vmi.status.as_ref()?.phase.as_ref().filter(|phase| !phase.is_empty())
}

/// When an instance entered a phase.
fn entered<'a>(vmi: &'a VirtualMachineInstance, phase: &VmiPhase) -> Option<&'a Time> {
    let all = vmi.status.as_ref()?.phase_transition_timestamps.as_deref()?;
    all.iter().find(|entry| entry.phase.as_ref() == Some(phase))?.phase_transition_timestamp.as_ref()
}

/// Seconds from one time to another. Clocks may differ, and nothing takes less than no time.
fn span(from: Option<&Time>, to: Option<&Time>) -> Option<f64> {
    Some(to?.0.duration_since(from?.0).as_secs_f64().max(0.0))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn instance(phase: &str, deleted: bool, times: Value) -> VirtualMachineInstance {
        let times: Vec<Value> = times.as_object().unwrap().iter().map(|(phase, second)| {
            json!({ "phase": phase, "phaseTransitionTimestamp": format!("2026-01-01T00:00:{:02}Z", second.as_i64().unwrap()) })
        }).collect();
        let mut vmi: VirtualMachineInstance = serde_json::from_value(json!({
            "metadata": { "name": "a", "creationTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "domain": { "devices": {} } },
            "status": { "phase": phase, "phaseTransitionTimestamps": times },
        }))
        .unwrap();
        if deleted {
            vmi.metadata.deletion_timestamp = Some(Time("2026-01-01T00:00:10Z".parse().unwrap()));
        }
        vmi
    }

    #[test]
    fn what_a_change_of_phase_took() {
        let times = json!({ "Pending": 1, "Running": 4, "Succeeded": 15 });
        let cases = [
            ("", "Pending", false, Some((Some(1.0), Some(1.0), None))),
            ("Pending", "Running", false, Some((Some(3.0), Some(4.0), None))),
            ("Running", "Running", false, None),
            ("Running", "Succeeded", true, Some((Some(11.0), Some(15.0), Some(5.0)))),
            ("Running", "Succeeded", false, Some((Some(11.0), Some(15.0), None))),
            // A phase that nobody noted the time of.
            ("Running", "Failed", true, Some((None, None, None))),
            // Back in time, as clocks of two machines may have it.
            ("Running", "Pending", false, Some((Some(0.0), Some(1.0), None))),
        ];
        for (before, after, deleted, expected) in cases {
            let (old, new) =
                (instance(before, false, times.clone()), instance(after, deleted, times.clone()));
            let took = Took::of(&old, &new);
            let took = took.map(|took| (took.between, took.from_creation, took.from_deletion));
            assert_eq!(took, expected, "{before} to {after}");
        }
    }

    #[test]
    fn only_changes_are_counted() {
        let metrics = Metrics::new();
        let transitions = Transitions::new(&metrics);
        let times = json!({ "Pending": 1, "Running": 4 });
        let [old, new] = ["Pending", "Running"].map(|phase| Arc::new(instance(phase, false, times.clone())));
        transitions.instance(&Change { old: None, new: Some(&new) });
        transitions.instance(&Change { old: Some(&old), new: None });
        transitions.instance(&Change { old: Some(&old), new: Some(&new) });
        let text = metrics.text();
        let line = "kubevirt_vmi_phase_transition_time_seconds_bucket{le=\"5.0\",phase=\"Running\",last_phase=\"Pending\"} 1";
        assert!(text.contains(line), "{text}");
        let count = "kubevirt_vmi_phase_transition_time_from_creation_seconds_count{phase=\"Running\"} 1";
        assert!(text.contains(count), "{text}");
    }
}
