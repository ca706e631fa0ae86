//! Whether a guest is told of its host.

use std::sync::Arc;

use kubevirt_api::vmi::VirtualMachineInstance;

use super::Instances;
use super::observe::Observed;
use crate::downward_metrics::Wish;

/// Whether a guest is told of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Telling {
    /// It is, from now on.
    Begin(Wish),
    /// It goes on as it did.
    AsBefore,
    /// It is told no longer.
    End,
}

/// A guest is told as long as its machine is here, even if its instance is not there any more.
fn decide(observed: &Observed) -> Telling {
    if !observed.is_alive() {
        return Telling::End;
    }
    // A machine on its way here is told by the node that it comes from.
    let ours = observed.vmi.as_deref().filter(|_| observed.is_ours());
    ours.and_then(Wish::of).map_or(Telling::AsBefore, Telling::Begin)
}

impl Instances {
    /// Has a guest told of its host, if it wishes to know.
    pub(super) fn tell_guest(&self, uid: &str, vmi: Option<Arc<VirtualMachineInstance>>) {
        if vmi.as_deref().is_some_and(|vmi| Wish::of(vmi).is_none()) {
            return;
        }
        match (decide(&self.observe(uid, vmi)), self.domains.owner(uid)) {
            (Telling::Begin(wish), Some(owner)) => self.tellers.tell(&owner, wish),
            (Telling::Begin(_) | Telling::End, _) => self.tellers.leave(uid),
            (Telling::AsBefore, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vmi::devices::DownwardMetrics;
    use kubevirt_api::vmi::status::VmiPhase;
    use kubevirt_launcher_rpc::report::{Reason, State};

    use super::super::observe::Reach;
    use super::super::testing::{Case, domain};
    use super::*;
    use crate::launchers::Loss;

    #[test]
    fn a_guest_is_told_while_its_machine_is_here() {
        let wishes = |case: Case| {
            case.change(|vmi| vmi.spec.domain.devices.downward_metrics = Some(DownwardMetrics {}))
        };
        let in_state = |case: Case, state| case.domain(domain(state, Reason::Unknown));
        let running = |case: Case| in_state(wishes(case), State::Running);
        let begin = Telling::Begin(Wish { disk: false, channel: true });
        for (what, case, expected) in [
            ("wishes nothing", in_state(Case::running(), State::Running), Telling::AsBefore),
            ("runs", running(Case::running()), begin),
            ("has just begun", running(Case::scheduled()), begin),
            ("stands still", in_state(wishes(Case::running()), State::Paused), begin),
            ("shuts down", running(Case::running().deleted()), begin),
            ("not started", wishes(Case::scheduled()), Telling::End),
            ("not reached yet", wishes(Case::running()).reach(Reach::Awaited), Telling::End),
            ("launcher died", running(Case::running()).reach(Reach::Lost(Loss::Ended)), Telling::End),
            ("ended", in_state(wishes(Case::running()), State::Shutoff), Telling::End),
            ("end was told", wishes(Case::new(&VmiPhase::Succeeded)), Telling::End),
            ("comes from elsewhere", running(Case::running().on("node2")), Telling::AsBefore),
            ("instance is gone", in_state(Case::gone(), State::Running), Telling::AsBefore),
            ("all is gone", Case::gone(), Telling::End),
        ] {
            assert_eq!(decide(&case.observed()), expected, "{what}");
        }
    }
}
