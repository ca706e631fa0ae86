//! What to do for an instance, as a pure function of what is known of it.

use std::time::Duration;

use jiff::Timestamp;
use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_launcher_rpc::report::{Reason, State};

use super::observe::{Observed, Reach};
use super::phase::phase;

/// How often a guest is asked again to shut down: one that is still booting does not hear it.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What to do on the node.
    pub step: Step,
    /// Whether the instance is told afterwards.
    pub note: bool,
    /// When to look again, if nothing happens before.
    pub again: Option<Duration>,
}

/// What to do on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// Make ready what a machine needs that comes from another node.
    PrepareMigrationTarget,
    /// Take away what a machine left here that went to another node.
    LeaveMigrationSource,
    /// Begin to look after the instance's launcher.
    LookAfter,
    /// Make ready what the machine needs, and start it.
    Start,
    /// Bring the machine in line with its instance.
    Update,
    /// Let a guest go on that stands still since a disk failed, and see.
    Resume,
    /// Ask the guest to shut down.
    AskToShutDown {
        /// It was not asked before.
        first: bool,
    },
    /// End the machine.
    Kill {
        /// It could never run again.
        irrecoverable: bool,
    },
    /// Tell the launcher to forget the machine, and leave nothing of it on the node.
    CleanUp,
}

impl Step {
    fn alone(self) -> Plan {
        Plan { step: self, note: false, again: None }
    }

    fn noted(self) -> Plan {
        Plan { step: self, note: true, again: None }
    }
}

/// What to do for an instance.
pub fn decide(observed: &Observed, now: Timestamp) -> Plan {
    if observed.is_on_its_way_here() {
        return Step::PrepareMigrationTarget.alone();
    }
    if observed.is_elsewhere() {
        return elsewhere(observed);
    }
    if observed.vmi.is_some() && !observed.is_ours() {
        // The controller has not given it to us yet.
        return Step::Nothing.alone();
    }
    let wanted = observed.vmi.is_some() && !observed.is_deleted() && !observed.is_final();
    let known = observed.reach != Reach::None;
    let state = observed.domain.as_ref().map(|domain| (domain.status.status, domain.status.reason));
    match (observed.is_alive(), wanted) {
        // A state that is not known yet is not meddled with.
        _ if matches!(state, Some((State::Unknown, _))) && matches!(observed.reach, Reach::Connected) => {
            Step::Nothing.alone()
        }
        (true, _) if observed.is_final() => Step::CleanUp.alone(),
        (true, true) if state == Some((State::Paused, Reason::PostcopyFailed)) => {
            Step::Kill { irrecoverable: true }.noted()
        }
        (true, true) if !is_asked_to_leave(observed) => running(observed, now),
        (true, _) => shut_down(observed, now),
        (false, true) => not_running(observed),
        // Somebody lost our records, and there may still be a guest to shut down.
        (false, false) if !known && observed.phase() == Some(&VmiPhase::Running) => Step::LookAfter.alone(),
        (false, false) if !known => Step::Nothing.alone(),
        // How it ended is told before all traces are removed.
        (false, false) if observed.phase().is_some_and(|now| phase(observed) != *now) => {
            Step::Nothing.noted()
        }
        (false, false) if observed.reach == Reach::Awaited && observed.domain.is_none() => {
            // An earlier handler knew of it. What it left is known once its launcher was looked for.
            Step::Nothing.alone()
        }
        (false, false) => Step::CleanUp.alone(),
    }
}

/// Whether the launcher was told to end, and has asked its guest to shut down.
fn is_asked_to_leave(observed: &Observed) -> bool {
    let asked = observed.domain.as_ref().is_some_and(|domain| domain.status.grace_period.is_some());
    asked && observed.phase() == Some(&VmiPhase::Running)
}

/// The instance is on another node. Nothing of it should be here, unless it is about to leave.
fn elsewhere(observed: &Observed) -> Plan {
    let known = observed.reach != Reach::None;
    let migrated = observed.domain.as_ref().is_some_and(|domain| domain.status.reason == Reason::Migrated);
    let awaited = observed.reach == Reach::Awaited;
    if known && !awaited && (migrated || !observed.is_alive()) {
        return Step::LeaveMigrationSource.alone();
    }
    Step::Nothing.alone()
}

/// A machine that should be there is not, or not any more.
fn not_running(observed: &Observed) -> Plan {
    let now = observed.phase().cloned().unwrap_or_default();
    if phase(observed) != now {
        return Step::Nothing.noted();
    }
    match (&now, &observed.reach) {
        (VmiPhase::Scheduled | VmiPhase::Running, Reach::None) => Step::LookAfter.alone(),
        (VmiPhase::Scheduled, Reach::Connected) if !observed.waits_for_session() => Step::Start.noted(),
        _ => Step::Nothing.alone(),
    }
}

/// A machine that should be there is.
fn running(observed: &Observed, now: Timestamp) -> Plan {
    let phase = phase(observed);
    if Some(&phase) != observed.phase() {
        return Step::Nothing.noted();
    }
    let state = observed.domain.as_ref().map(|domain| (domain.status.status, domain.status.reason));
    match state {
        Some((State::ShuttingDown, _)) => return Step::Nothing.noted(),
        Some((State::Paused, Reason::IoError)) => {}
        _ => return Step::Update.noted(),
    }
    match observed.resume_at {
        Some(at) if at > now => Plan { step: Step::Update, note: true, again: Some(until(now, at)) },
        _ => Step::Resume.noted(),
    }
}

/// The guest is asked to shut down, again and again, until its time is over.
fn shut_down(observed: &Observed, now: Timestamp) -> Plan {
    let grace = observed.grace();
    let Some(domain) = observed.living_or_ended() else { return Step::Nothing.noted() };
    if grace <= 0 {
        return Step::Kill { irrecoverable: false }.noted();
    }
    let told = domain.status.grace_period.as_ref().and_then(|period| period.since.parse().ok());
    let since: Option<Timestamp> = match (told, observed.asked) {
        (Some(told), _) => Some(told),
        (None, asked) => asked,
    };
    let Some(since) = since else {
        let again = Duration::from_secs(grace.unsigned_abs()).min(ASK_AGAIN);
        return Plan { step: Step::AskToShutDown { first: true }, note: true, again: Some(again) };
    };
    let end = after(since, Duration::from_secs(grace.unsigned_abs()));
    if now >= end {
        return Step::Kill { irrecoverable: false }.noted();
    }
    let left = until(now, end);
    let again_at = observed.asked.map_or(now, |asked| after(asked, ASK_AGAIN));
    if domain.status.status == State::ShuttingDown {
        return Plan { step: Step::Nothing, note: true, again: Some(left) };
    }
    if again_at > now {
        let again = until(now, again_at).min(left);
        return Plan { step: Step::Nothing, note: true, again: Some(again) };
    }
    Plan { step: Step::AskToShutDown { first: false }, note: true, again: Some(left.min(ASK_AGAIN)) }
}

/// A moment later, or the end of time: users may ask for any number of seconds.
fn after(moment: Timestamp, pause: Duration) -> Timestamp {
    moment.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// The time that is left, at least a moment.
fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default().max(Duration::from_millis(10))
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
