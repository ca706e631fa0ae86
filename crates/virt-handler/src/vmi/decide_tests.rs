use serde_json::json;

use super::super::testing::{Case, asked_at, at, domain};
use super::*;
use crate::launchers::Loss;

const NOW: i64 = 1000;

fn running() -> kubevirt_launcher_rpc::DomainReport {
    domain(State::Running, Reason::Unknown)
}

fn step(case: Case) -> Step {
    decide(&case.observed(), at(NOW)).step
}

#[test]
fn the_way_of_an_instance_that_is_wanted() {
    let lost = || Reach::Lost(Loss::Ended);
    let off = domain(State::Shutoff, Reason::Shutdown);
    let cases = [
        ("no launcher", Case::scheduled().reach(Reach::None), Step::LookAfter, false),
        ("no socket", Case::scheduled().reach(Reach::Awaited), Step::Nothing, false),
        ("ready to start", Case::scheduled(), Step::Start, true),
        ("the launcher died before", Case::scheduled().reach(lost()), Step::Nothing, true),
        ("started by an earlier handler", Case::scheduled().domain(running()), Step::Nothing, true),
        ("runs", Case::running().domain(running()), Step::Update, true),
        ("runs, records lost", Case::running().reach(Reach::None), Step::LookAfter, false),
        ("runs, handler restarted", Case::running().reach(Reach::Awaited), Step::Nothing, false),
        ("the launcher died", Case::running().domain(running()).reach(lost()), Step::Nothing, true),
        ("ended", Case::running().domain(off.clone()), Step::Nothing, true),
        ("ended, launcher gone", Case::running().domain(off.clone()).reach(lost()), Step::Nothing, true),
        ("end was told", Case::ended().domain(off.clone()), Step::CleanUp, false),
        (
            "end was told, handler restarted",
            Case::ended().domain(off).reach(Reach::Awaited),
            Step::CleanUp,
            false,
        ),
        ("end was told, all clean", Case::ended().reach(Reach::None), Step::Nothing, false),
        ("could not be started", Case::new(&VmiPhase::Failed), Step::CleanUp, false),
        ("failed but runs", Case::new(&VmiPhase::Failed).domain(running()), Step::CleanUp, false),
        ("paused", Case::running().domain(domain(State::Paused, Reason::User)), Step::Update, true),
        (
            "shuts itself down",
            Case::running().domain(domain(State::ShuttingDown, Reason::Shutdown)),
            Step::Nothing,
            true,
        ),
        (
            "can never run again",
            Case::running().domain(domain(State::Paused, Reason::PostcopyFailed)),
            Step::Kill { irrecoverable: true },
            true,
        ),
        (
            "from the future",
            Case::running().domain(domain(State::Unknown, Reason::Unknown)),
            Step::Nothing,
            false,
        ),
    ];
    for (name, case, expected, note) in cases {
        let plan = decide(&case.observed(), at(NOW));
        assert_eq!((plan.step, plan.note), (expected, note), "{name}");
    }
}

#[test]
fn a_guest_that_is_to_be_attested_waits_for_its_session() {
    let with = |case: Case, security: serde_json::Value| {
        let security = serde_json::from_value(security).unwrap();
        case.change(|vmi| vmi.spec.domain.launch_security = Some(security))
    };
    let cases = [
        (json!({"sev": {"attestation": {}}}), Step::Nothing),
        (json!({"sev": {"attestation": {}, "session": "", "dhCert": ""}}), Step::Nothing),
        (json!({"sev": {"attestation": {}, "session": "s"}}), Step::Nothing),
        (json!({"sev": {"attestation": {}, "dhCert": "c"}}), Step::Nothing),
        (json!({"sev": {"attestation": {}, "session": "s", "dhCert": "c"}}), Step::Start),
        (json!({"sev": {}}), Step::Start),
        (json!({"snp": {}}), Step::Start),
        (json!({}), Step::Start),
    ];
    for (security, expected) in cases {
        assert_eq!(step(with(Case::scheduled(), security.clone())), expected, "{security}");
    }
    let waits = || json!({"sev": {"attestation": {}}});
    let plan = decide(&with(Case::scheduled(), waits()).observed(), at(NOW));
    assert_eq!((plan.note, plan.again), (false, None), "the API tells when it goes on");
    let lost = with(Case::scheduled().reach(Reach::Lost(Loss::Ended)), waits());
    assert_eq!(decide(&lost.observed(), at(NOW)), Step::Nothing.noted(), "its launcher may leave meanwhile");
    assert_eq!(step(with(Case::scheduled().deleted(), waits())), Step::CleanUp);
    assert_eq!(step(with(Case::running().domain(running()), waits())), Step::Update);
}

#[test]
fn instances_of_others_are_left_alone() {
    let coming = |case: Case| {
        case.change(|vmi| {
            let name = kubevirt_api::names::labels::MIGRATION_TARGET_NODE_NAME.to_owned();
            vmi.metadata.labels = Some([(name, "node1".to_owned())].into());
        })
    };
    assert_eq!(step(coming(Case::running().domain(running()))), Step::Update, "it has arrived");
    let gone = domain(State::Shutoff, Reason::Migrated);
    let cases = [
        ("not ours yet", Case::scheduled().on(""), Step::Nothing),
        ("elsewhere", Case::running().on("node2").reach(Reach::None), Step::Nothing),
        (
            "on its way here",
            coming(Case::running().on("node2").reach(Reach::None)),
            Step::PrepareMigrationTarget,
        ),
        ("left", Case::running().on("node2").domain(gone), Step::LeaveMigrationSource),
        ("leaves", Case::running().on("node2").domain(running()), Step::Nothing),
        ("left, handler restarted", Case::running().on("node2").reach(Reach::Awaited), Step::Nothing),
        (
            "left, launcher gone",
            Case::running().on("node2").reach(Reach::Lost(Loss::Ended)),
            Step::LeaveMigrationSource,
        ),
    ];
    for (name, case, expected) in cases {
        let plan = decide(&case.observed(), at(NOW));
        assert_eq!((plan.step, plan.note), (expected, false), "{name}");
    }
}

#[test]
fn guests_have_time_to_shut_down() {
    let ask = |first| Step::AskToShutDown { first };
    let kill = Step::Kill { irrecoverable: false };
    let told = |since| asked_at(running(), since, 60);
    let going = || asked_at(domain(State::ShuttingDown, Reason::Shutdown), NOW - 10, 60);
    let deleted = || Case::running().deleted().grace(Some(60));
    let cases = [
        ("first", deleted().domain(running()), ask(true), Some(5)),
        ("first, short", deleted().grace(Some(2)).domain(running()), ask(true), Some(2)),
        (
            "all the time in the world",
            deleted().grace(Some(i64::MAX)).domain(told(NOW - 9)),
            ask(false),
            Some(5),
        ),
        ("no grace", deleted().grace(Some(0)).domain(running()), kill.clone(), None),
        ("just asked", deleted().domain(told(NOW - 1)).asked(NOW - 1), Step::Nothing, Some(4)),
        ("asked before", deleted().domain(told(NOW - 10)).asked(NOW - 5), ask(false), Some(5)),
        ("asked by an earlier handler", deleted().domain(told(NOW - 58)), ask(false), Some(2)),
        ("almost off", deleted().domain(going()), Step::Nothing, Some(50)),
        ("too slow", deleted().domain(told(NOW - 60)).asked(NOW - 1), kill.clone(), None),
        ("cannot be asked", deleted().domain(running()).asked(NOW - 3), Step::Nothing, Some(2)),
        ("cannot be asked, too long", deleted().domain(running()).asked(NOW - 60), kill, None),
        (
            "its pod is told to go",
            Case::running().domain(asked_at(running(), NOW - 9, 30)),
            ask(false),
            Some(5),
        ),
        ("nobody knows it", Case::gone().domain(running()), ask(true), Some(5)),
    ];
    for (name, case, expected, again) in cases {
        let plan = decide(&case.observed(), at(NOW));
        let again = again.map(Duration::from_secs);
        assert_eq!((plan.step, plan.again), (expected, again), "{name}");
    }
}

#[test]
fn what_nobody_wants_is_cleaned_up() {
    let lost = Reach::Lost(Loss::Ended);
    let off = domain(State::Shutoff, Reason::Shutdown);
    let cases = [
        ("a ghost", Case::gone().reach(lost.clone()), Step::CleanUp),
        ("a ghost with a launcher", Case::gone(), Step::CleanUp),
        ("a ghost, not looked at yet", Case::gone().reach(Reach::Awaited), Step::Nothing),
        ("a ghost whose end is known", Case::gone().reach(Reach::Awaited).domain(off.clone()), Step::CleanUp),
        ("nothing at all", Case::gone().reach(Reach::None), Step::Nothing),
        ("deleted before its start", Case::scheduled().deleted(), Step::CleanUp),
        ("deleted, all clean", Case::scheduled().deleted().reach(Reach::None), Step::Nothing),
        ("deleted, runs, records lost", Case::running().deleted().reach(Reach::None), Step::LookAfter),
        // Its end is told first.
        ("deleted and off", Case::running().deleted().domain(off.clone()), Step::Nothing),
        ("deleted and told", Case::ended().deleted().domain(off), Step::CleanUp),
        ("deleted and lost", Case::running().deleted().domain(running()).reach(lost), Step::Nothing),
    ];
    for (name, case, expected) in cases {
        assert_eq!(step(case), expected, "{name}");
    }
}

#[test]
fn a_guest_whose_disk_failed_tries_again_now_and_then() {
    let stopped = || Case::running().domain(domain(State::Paused, Reason::IoError));
    let plan = |case: Case| decide(&case.observed(), at(NOW));
    assert_eq!(plan(stopped()).step, Step::Resume);
    let waits = plan(stopped().resume_at(NOW + 7));
    assert_eq!((waits.step, waits.again), (Step::Update, Some(Duration::from_secs(7))));
    assert_eq!(plan(stopped().resume_at(NOW)).step, Step::Resume);
}

mod settles {
    use std::sync::Arc;

    use kubevirt_launcher_rpc::DomainReport;
    use proptest::prelude::*;

    use super::*;

    /// What the world does with a step: enough of a launcher, a guest and an API to go on.
    #[derive(Clone, Debug)]
    struct World {
        observed: Observed,
        now: i64,
        guest_listens: bool,
        /// Something on the node has to be taken away.
        traces: bool,
    }

    impl World {
        fn turn(&mut self) -> bool {
            let plan = decide(&self.observed, at(self.now));
            let before = (self.observed.phase().cloned(), self.observed.reach.clone(), self.state());
            self.take(&plan.step);
            if plan.note && self.observed.is_ours() && !self.observed.is_final() {
                let phase = phase(&self.observed);
                if let Some(vmi) = &mut self.observed.vmi {
                    Arc::make_mut(vmi).status.as_mut().unwrap().phase = Some(phase);
                }
            }
            if let Some(again) = plan.again {
                self.now += i64::try_from(again.as_secs()).unwrap().max(1);
            }
            let after = (self.observed.phase().cloned(), self.observed.reach.clone(), self.state());
            before != after || plan.again.is_some()
        }

        fn state(&self) -> Option<(State, Reason)> {
            self.observed.domain.as_ref().map(|domain| (domain.status.status, domain.status.reason))
        }

        fn become_(&mut self, state: State, reason: Reason) {
            self.observed.domain = Some(Arc::new(domain(state, reason)));
        }

        fn take(&mut self, step: &Step) {
            match step {
                Step::LookAfter => {
                    (self.observed.reach, self.traces) = (Reach::Connected, true);
                }
                Step::Start => self.become_(State::Running, Reason::Unknown),
                Step::Resume => self.become_(State::Running, Reason::Unknown),
                Step::AskToShutDown { .. } if self.guest_listens => {
                    self.become_(State::Shutoff, Reason::Shutdown);
                }
                Step::AskToShutDown { .. } => {
                    self.observed.asked = Some(at(self.now));
                    let old = self.observed.domain.as_deref().cloned().unwrap_or_default();
                    let since = old.status.grace_period.clone();
                    let mut new: DomainReport = asked_at(old, self.now, self.observed.grace());
                    if let Some(since) = since {
                        new.status.grace_period = Some(since);
                    }
                    self.observed.domain = Some(Arc::new(new));
                }
                Step::Kill { .. } => self.become_(State::Shutoff, Reason::Destroyed),
                Step::CleanUp | Step::LeaveMigrationSource => {
                    (self.observed.reach, self.observed.domain) = (Reach::None, None);
                    self.traces = false;
                }
                Step::Nothing | Step::Update | Step::PrepareMigrationTarget => {}
            }
            // What is awaited comes, or does not.
            if self.observed.reach == Reach::Awaited && *step == Step::Nothing {
                let lives = self.observed.domain.is_some() || self.guest_listens;
                self.observed.reach = if lives { Reach::Connected } else { Reach::Lost(Loss::Ended) };
            }
        }
    }

    fn states() -> impl Strategy<Value = Option<(State, Reason)>> {
        use Reason as R;
        use State as S;
        proptest::option::of(prop_oneof![
            Just((S::Running, R::Unknown)),
            Just((S::Paused, R::User)),
            Just((S::Paused, R::IoError)),
            Just((S::Paused, R::PostcopyFailed)),
            Just((S::Suspended, R::Unknown)),
            Just((S::Shutoff, R::Shutdown)),
            Just((S::Shutoff, R::Destroyed)),
            Just((S::Shutoff, R::Migrated)),
            Just((S::Crashed, R::Crashed)),
            Just((S::Crashed, R::Panicked)),
        ])
    }

    fn worlds() -> impl Strategy<Value = World> {
        let phases = prop_oneof![
            Just(VmiPhase::Scheduled),
            Just(VmiPhase::Running),
            Just(VmiPhase::Succeeded),
            Just(VmiPhase::Failed)
        ];
        let reaches = prop_oneof![
            Just(Reach::None),
            Just(Reach::Awaited),
            Just(Reach::Connected),
            Just(Reach::Lost(Loss::Ended))
        ];
        let nodes = prop_oneof![Just("node1"), Just("node1"), Just("node2"), Just("")];
        let grace = proptest::option::of(0..90_i64);
        let rest = (any::<bool>(), any::<bool>(), any::<bool>());
        (phases, reaches, states(), nodes, grace, rest).prop_map(
            |(phase, reach, state, node, grace, (exists, deleted, guest_listens))| {
                let mut case = Case::new(&phase).on(node).grace(grace);
                if deleted {
                    case = case.deleted();
                }
                let known = reach != Reach::None;
                case = case.reach(reach);
                if let Some((state, reason)) = state.filter(|_| known) {
                    case = case.domain(domain(state, reason));
                }
                let mut observed = case.observed();
                if !exists {
                    observed.vmi = None;
                }
                World { observed, now: NOW, guest_listens, traces: known }
            },
        )
    }

    proptest! {
        /// From any state, looking again and again comes to rest, and what nobody wants is gone by then.
        #[test]
        fn from_any_state(mut world in worlds()) {
            let first = world.clone();
            let mut turns = 0;
            while world.turn() {
                turns += 1;
                prop_assert!(turns < 60, "it does not come to rest: {first:?} -> {world:?}");
            }
            let observed = &world.observed;
            let elsewhere = observed.is_elsewhere() || (observed.vmi.is_some() && !observed.is_ours());
            if observed.vmi.is_none() || (observed.is_final() && !elsewhere) {
                prop_assert!(!world.traces, "something is left: {first:?} -> {world:?}");
            }
            // A machine that has moved waits until its instance names the other node.
            let moved = world.state().is_some_and(|(_, reason)| reason == Reason::Migrated);
            let wanted = observed.vmi.is_some() && !observed.is_deleted() && !observed.is_final();
            if wanted && !elsewhere && !moved {
                prop_assert!(observed.is_alive(), "nothing runs: {first:?} -> {world:?}");
                prop_assert_eq!(observed.phase(), Some(&VmiPhase::Running));
            }
            // An end is an end.
            if first.observed.is_final() {
                prop_assert_eq!(observed.phase(), first.observed.phase());
            }
        }
    }
}
