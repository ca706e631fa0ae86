//! The phase of an instance, from what its domain and its launcher do.

use kubevirt_api::vmi::status::VmiPhase;
use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::report::{Reason, State};

use super::observe::{Observed, Reach};

/// The phase that the instance should be in.
pub fn phase(observed: &Observed) -> VmiPhase {
    let now = observed.phase().cloned().unwrap_or_default();
    if observed.is_final() {
        return now;
    }
    match observed.living_or_ended() {
        Some(domain) => of_domain(observed, domain, now),
        None => without_domain(observed, now),
    }
}

fn without_domain(observed: &Observed, now: VmiPhase) -> VmiPhase {
    match (&now, &observed.reach) {
        (VmiPhase::Scheduled | VmiPhase::Running, Reach::Lost(_)) => VmiPhase::Failed,
        // It ran, and its launcher knows nothing of it.
        (VmiPhase::Running, Reach::Connected) => VmiPhase::Failed,
        _ => now,
    }
}

fn of_domain(observed: &Observed, domain: &DomainReport, now: VmiPhase) -> VmiPhase {
    match (domain.status.status, domain.status.reason) {
        // Where it runs now, its phase is known.
        (State::Shutoff | State::Crashed, Reason::Migrated) => now,
        (State::Shutoff, Reason::Shutdown) => VmiPhase::Succeeded,
        // A guest that hears the power button and was ended all the same did not shut down in time.
        (State::Shutoff, Reason::Destroyed) if !can_be_asked(observed, domain) => VmiPhase::Succeeded,
        (State::Shutoff | State::Crashed, _) => VmiPhase::Failed,
        (State::Paused, Reason::PostcopyFailed) => VmiPhase::Failed,
        (State::Paused, _) | (State::Running | State::Suspended, _) => VmiPhase::Running,
        (State::NoState | State::ShuttingDown | State::Unknown, _) => now,
    }
}

/// Whether the guest could be asked to shut down and had time to.
fn can_be_asked(observed: &Observed, domain: &DomainReport) -> bool {
    observed.grace() != 0 && domain.spec.as_ref().is_some_and(|spec| spec.machine.acpi)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Case, domain, with_acpi};
    use super::*;
    use crate::launchers::Loss;

    #[test]
    fn ends_lead_to_kubevirts_phases() {
        use Reason as R;
        use State as S;
        use VmiPhase as P;
        let cases = [
            (S::Running, R::Unknown, P::Running),
            (S::Paused, R::User, P::Running),
            (S::Paused, R::IoError, P::Running),
            (S::Paused, R::PostcopyFailed, P::Failed),
            (S::Suspended, R::Unknown, P::Running),
            (S::ShuttingDown, R::Shutdown, P::Scheduled),
            (S::Shutoff, R::Shutdown, P::Succeeded),
            (S::Shutoff, R::Migrated, P::Scheduled),
            (S::Shutoff, R::Failed, P::Failed),
            (S::Crashed, R::Crashed, P::Failed),
            (S::Crashed, R::Panicked, P::Failed),
            (S::Crashed, R::Failed, P::Failed),
            (S::Unknown, R::Unknown, P::Scheduled),
        ];
        for (state, reason, expected) in cases {
            let observed = Case::scheduled().domain(domain(state, reason)).observed();
            assert_eq!(phase(&observed), expected, "{state:?} {reason:?}");
        }
    }

    #[test]
    fn being_ended_is_a_failure_only_if_the_guest_could_have_shut_down() {
        let ended = domain(State::Shutoff, Reason::Destroyed);
        let cases = [
            (ended.clone(), None, VmiPhase::Succeeded),
            (with_acpi(ended.clone()), None, VmiPhase::Failed),
            (with_acpi(ended.clone()), Some(0), VmiPhase::Succeeded),
            (with_acpi(ended), Some(45), VmiPhase::Failed),
        ];
        for (domain, grace, expected) in cases {
            let observed = Case::running().grace(grace).domain(domain).observed();
            assert_eq!(phase(&observed), expected, "{grace:?}");
        }
    }

    #[test]
    fn a_launcher_takes_its_machine_along() {
        let lost = Reach::Lost(Loss::Ended);
        let cases = [
            (Case::scheduled().reach(Reach::Awaited), VmiPhase::Scheduled),
            (Case::scheduled().reach(Reach::None), VmiPhase::Scheduled),
            (Case::scheduled().reach(Reach::Connected), VmiPhase::Scheduled),
            (Case::scheduled().reach(lost.clone()), VmiPhase::Failed),
            // A handler that just started does not know yet.
            (Case::running().reach(Reach::Awaited), VmiPhase::Running),
            (Case::running().reach(Reach::None), VmiPhase::Running),
            (Case::running().reach(Reach::Connected), VmiPhase::Failed),
            (Case::running().reach(lost.clone()), VmiPhase::Failed),
            (
                Case::running().domain(domain(State::Running, Reason::Unknown)).reach(lost.clone()),
                VmiPhase::Failed,
            ),
            (
                Case::running().domain(domain(State::Shutoff, Reason::Shutdown)).reach(lost),
                VmiPhase::Succeeded,
            ),
            (Case::ended().reach(Reach::Lost(Loss::Ended)), VmiPhase::Succeeded),
        ];
        for (case, expected) in cases {
            let observed = case.observed();
            assert_eq!(phase(&observed), expected, "{observed:?}");
        }
    }
}
