//! What users are told as events, from what changed.

use kubevirt_api::condition;
use kubevirt_api::names::{conditions, events, reasons};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::{VirtualMachineInstanceStatus, VmiPhase, VolumeStatus};
use kubevirt_component::events::Kind;

use super::fate::Fate;
use super::observe::{Observed, Reach};

/// How the end of a guest begins that ended by itself: clients look for these words.
const CRASHED: &str = "The VirtualMachineInstance crashed";

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Say {
    /// Whether somebody should have a look.
    pub kind: Kind,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl Say {
    /// All is as it should be.
    pub fn normal(reason: &str, message: impl Into<String>) -> Self {
        Self { kind: Kind::Normal, reason: reason.to_owned(), message: message.into() }
    }

    /// Somebody should have a look.
    pub fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self { kind: Kind::Warning, reason: reason.to_owned(), message: message.into() }
    }
}

/// That the wish could not be carried out, if it could not: the one who wished it is told why.
pub fn failed(fate: &Fate) -> Option<Say> {
    match fate {
        Fate::Failed(why) | Fate::Hopeless(why) => Some(Say::warning(events::vmi::SYNC_FAILED, why)),
        Fate::Fulfilled | Fate::Waits | Fate::Overdue(_) => None,
    }
}

/// What happened between the instance as it was seen and as it was written.
pub fn changes(
    seen: &VirtualMachineInstance,
    told: &VirtualMachineInstance,
    observed: &Observed,
) -> Vec<Say> {
    let phase = |vmi: &VirtualMachineInstance| vmi.status.as_ref().and_then(|status| status.phase.clone());
    let mut all = Vec::new();
    if phase(seen) != phase(told) {
        all.extend(entered(told, observed));
    }
    all.extend(credentials(seen, told));
    all.extend(volumes(seen, told));
    all
}

fn entered(told: &VirtualMachineInstance, observed: &Observed) -> Option<Say> {
    let status = told.status.as_ref()?;
    match status.phase.as_ref()? {
        VmiPhase::Running => Some(Say::normal(events::vmi::STARTED, "The guest runs.")),
        VmiPhase::Succeeded => Some(Say::normal(events::vmi::STOPPED, "The guest was shut down.")),
        VmiPhase::Failed => Some(Say::warning(events::vmi::STOPPED, failure(status, observed))),
        _ => None,
    }
}

fn failure(status: &VirtualMachineInstanceStatus, observed: &Observed) -> String {
    if status.reason.as_deref() == Some(reasons::vmi::DOMAIN_SYNC_FAILED) {
        let all = status.conditions.as_deref();
        let why =
            condition::find(all, conditions::vmi::SYNCHRONIZED).and_then(|found| found.message.as_deref());
        return format!("The guest cannot be started: {}", why.unwrap_or_default());
    }
    let words = observed.living_or_ended().map(|domain| domain.status.message.trim());
    match (words.filter(|words| !words.is_empty()), &observed.reach) {
        (Some(words), _) => format!("{CRASHED}: {words}"),
        (None, Reach::Lost(loss)) if observed.living_or_ended().is_none() => {
            format!("The guest is lost: {loss}")
        }
        _ => format!("{CRASHED}."),
    }
}

fn credentials(seen: &VirtualMachineInstance, told: &VirtualMachineInstance) -> Option<Say> {
    let of = |vmi: &VirtualMachineInstance| {
        let all = vmi.status.as_ref()?.conditions.as_deref();
        let found = condition::find(all, conditions::vmi::ACCESS_CREDENTIALS_SYNCHRONIZED)?;
        Some((found.is_true(), found.message.clone().unwrap_or_default()))
    };
    let (succeeded, message) = of(told).filter(|told| Some(told) != of(seen).as_ref())?;
    Some(match succeeded {
        true => Say::normal(
            events::vmi::ACCESS_CREDENTIALS_SYNC_SUCCESS,
            format!("The guest has its credentials. {message}").trim_end(),
        ),
        false => Say::warning(
            events::vmi::ACCESS_CREDENTIALS_SYNC_FAILED,
            format!("The guest did not take its credentials: {message}"),
        ),
    })
}

fn volumes(seen: &VirtualMachineInstance, told: &VirtualMachineInstance) -> Vec<Say> {
    let of = |vmi: &VirtualMachineInstance| -> Vec<VolumeStatus> {
        vmi.status.as_ref().and_then(|status| status.volume_status.clone()).unwrap_or_default()
    };
    let before = of(seen);
    let moved = |status: &VolumeStatus| {
        let old = before.iter().find(|old| old.name == status.name);
        let changed =
            status.phase.is_some() && old.and_then(|old| old.phase.as_ref()) != status.phase.as_ref();
        let reason = status.reason.clone().unwrap_or_else(|| reasons::volume::READY.to_owned());
        changed.then(|| Say::normal(&reason, status.message.clone().unwrap_or_default()))
    };
    of(told).iter().filter_map(moved).collect()
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
