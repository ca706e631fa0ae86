//! From evidence to an explanation: the first case that fits.

use super::cases::{machine, node, pod, running, storage};
use super::evidence::Evidence;

/// Why a machine is as it is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Explanation {
    /// The case, as a word.
    pub case: &'static str,
    /// What is the matter, as a sentence about the machine.
    pub what: String,
    /// What that is known from.
    pub because: Vec<String>,
    /// What to do.
    pub next: Vec<String>,
}

impl Explanation {
    /// A case and its sentence.
    pub fn new(case: &'static str, what: impl Into<String>) -> Self {
        Self { case, what: what.into(), ..Self::default() }
    }

    /// Adds something that it is known from; nothing is not a fact.
    pub fn because(mut self, fact: impl Into<String>) -> Self {
        let fact = fact.into();
        if !fact.trim().is_empty() && !self.because.contains(&fact) {
            self.because.push(fact);
        }
        self
    }

    /// Adds something to do.
    pub fn next(mut self, step: impl Into<String>) -> Self {
        self.next.push(step.into());
        self
    }
}

/// A case knows from the evidence whether it fits.
type Case = fn(&Evidence) -> Option<Explanation>;

/// All cases, what is surer before what is less so: what ended before what waits, what is missing before what merely
/// has not come yet.
const CASES: [Case; 24] = [
    machine::nothing_there,
    machine::being_deleted,
    node::lost,
    running::migrating,
    running::paused,
    running::out_of_step,
    running::not_ready,
    running::fine,
    machine::stopping,
    machine::refused,
    machine::crashing,
    machine::ended,
    storage::failed_volume,
    storage::missing_claim,
    storage::missing_object,
    storage::volume_under_way,
    machine::off,
    pod::refused,
    pod::unschedulable,
    pod::image,
    pod::mount,
    pod::container,
    running::starting,
    machine::waiting_for_controller,
];

/// Why the machine is as it is, and what to do about it.
pub fn explain(evidence: &Evidence) -> Explanation {
    CASES.iter().find_map(|case| case(evidence)).unwrap_or_else(|| {
        Explanation::new("unknown", "is in a state that this program cannot explain")
            .because(evidence.phase().map(|phase| format!("The instance is {phase}.")).unwrap_or_default())
            .next(format!(
                "Look at all of it: kubectl describe vm,vmi {} -n {}",
                evidence.name, evidence.namespace
            ))
    })
}
