use std::time::Duration;

use kubevirt_launcher_rpc::DomainReport;
use kubevirt_launcher_rpc::report::{Reason, State};
use serde_json::{Value, json};

use super::super::testing::{Case, domain, vmi};
use super::*;
use crate::launchers::Loss;

/// A domain that says why it is as it is.
fn saying(state: State, reason: Reason, words: &str) -> DomainReport {
    let mut report = domain(state, reason);
    report.status.message = words.to_owned();
    report
}

/// What is said when an instance goes from one phase to another.
fn between(seen: &VmiPhase, told: &VmiPhase, observed: &Observed) -> Vec<Say> {
    let of = |phase| vmi(json!({}), json!({"phase": phase}));
    changes(&of(seen), &of(told), observed)
}

#[test]
fn every_phase_that_users_wait_for_is_told_of() {
    let (running, scheduled) = (VmiPhase::Running, VmiPhase::Scheduled);
    let alive = Case::running().domain(domain(State::Running, Reason::Unknown)).observed();
    let shut_down = Case::running().domain(domain(State::Shutoff, Reason::Shutdown)).observed();
    let cases = [
        (&scheduled, &running, &alive, Some((Kind::Normal, "Started", "The guest runs."))),
        (
            &running,
            &VmiPhase::Succeeded,
            &shut_down,
            Some((Kind::Normal, "Stopped", "The guest was shut down.")),
        ),
        (&running, &running, &alive, None),
        (&VmiPhase::Scheduling, &scheduled, &alive, None),
    ];
    for (seen, told, observed, expected) in cases {
        let said = between(seen, told, observed);
        let expected = expected.map(|(kind, reason, message)| Say {
            kind,
            reason: reason.to_owned(),
            message: message.to_owned(),
        });
        assert_eq!(said, Vec::from_iter(expected), "{seen} to {told}");
    }
}

#[test]
fn a_guest_that_stops_by_itself_is_a_warning_that_says_why() {
    let crashed = |words: &str| saying(State::Crashed, Reason::Panicked, words);
    let silent = Loss::Silent(Duration::from_secs(30));
    let cases = [
        ("without a word", Some(crashed("")), Reach::Connected, "The VirtualMachineInstance crashed."),
        (
            "with its last words",
            Some(crashed(" QEMU: no memory \n")),
            Reach::Connected,
            "The VirtualMachineInstance crashed: QEMU: no memory",
        ),
        (
            "and its launcher with it",
            Some(crashed("")),
            Reach::Lost(Loss::Ended),
            "The VirtualMachineInstance crashed.",
        ),
        (
            "its last words count more than the launcher's end",
            Some(crashed("killed by signal 9")),
            Reach::Lost(Loss::Ended),
            "The VirtualMachineInstance crashed: killed by signal 9",
        ),
        (
            "the launcher ended before there was a machine",
            None,
            Reach::Lost(Loss::Ended),
            "The guest is lost: the launcher has ended",
        ),
        (
            "the launcher hangs",
            None,
            Reach::Lost(silent),
            "The guest is lost: the launcher has not answered for 30s",
        ),
        (
            "the launcher ended while it ran",
            Some(domain(State::Running, Reason::Unknown)),
            Reach::Lost(Loss::Ended),
            "The guest is lost: the launcher has ended",
        ),
    ];
    for (case, report, reach, expected) in cases {
        let mut seen = Case::running().reach(reach);
        if let Some(report) = report {
            seen = seen.domain(report);
        }
        let said = between(&VmiPhase::Running, &VmiPhase::Failed, &seen.observed());
        assert_eq!(said.len(), 1, "{case}: {said:?}");
        assert_eq!((said[0].kind, said[0].reason.as_str()), (Kind::Warning, "Stopped"), "{case}");
        assert_eq!(said[0].message, expected, "{case}");
    }
}

#[test]
fn a_guest_that_never_started_did_not_crash() {
    let told = vmi(
        json!({}),
        json!({"phase": "Failed", "reason": "Synchronizing with the Domain failed.",
            "conditions": [{"type": "Synchronized", "status": "False", "message": "cannot add a tap"}]}),
    );
    let said = changes(&vmi(json!({}), json!({"phase": "Scheduled"})), &told, &Case::scheduled().observed());
    assert_eq!(said, [Say::warning("Stopped", "The guest cannot be started: cannot add a tap")]);
    let why = "cannot add a tap".to_owned();
    assert_eq!(failed(&Fate::Hopeless(why.clone())), Some(Say::warning("SyncFailed", why)));
}

#[test]
fn a_wish_that_cannot_be_carried_out_is_a_warning_in_the_words_of_the_failure() {
    for quiet in [Fate::Fulfilled, Fate::Waits, Fate::Overdue("no interface".into())] {
        assert_eq!(failed(&quiet), None);
    }
    for why in ["no such image", "the launcher refused: disk root: \"x\" is no format", ""] {
        let expected = Say { kind: Kind::Warning, reason: "SyncFailed".to_owned(), message: why.to_owned() };
        assert_eq!(failed(&Fate::Failed(why.to_owned())), Some(expected));
    }
}

#[test]
fn credentials_and_volumes_are_told_of_when_they_change() {
    let with = |status: Value| vmi(json!({}), status);
    let credentials = |status: &str, message: &str| {
        let condition =
            json!({"type": "AccessCredentialsSynchronized", "status": status, "message": message});
        with(json!({"conditions": [condition]}))
    };
    let volume = |phase: &str, reason: &str| {
        let one = json!({"name": "v", "target": "", "phase": phase, "reason": reason, "message": "words"});
        with(json!({"volumeStatus": [one]}))
    };
    let none = with(json!({}));
    let cases = [
        (none.clone(), credentials("True", ""), Some((Kind::Normal, "AccessCredentialsSyncSuccess"))),
        (
            none.clone(),
            credentials("False", "no agent"),
            Some((Kind::Warning, "AccessCredentialsSyncFailed")),
        ),
        (
            credentials("True", ""),
            credentials("False", ""),
            Some((Kind::Warning, "AccessCredentialsSyncFailed")),
        ),
        (credentials("False", "no agent"), credentials("False", "no agent"), None),
        (credentials("False", "no agent"), none.clone(), None),
        (none.clone(), volume("Ready", "VolumeReady"), Some((Kind::Normal, "VolumeReady"))),
        (
            volume("MountedToPod", "VolumeMountedToPod"),
            volume("Ready", "VolumeReady"),
            Some((Kind::Normal, "VolumeReady")),
        ),
        (volume("Ready", "VolumeReady"), volume("Ready", "VolumeReady"), None),
        (volume("Ready", "VolumeReady"), none.clone(), None),
    ];
    for (number, (seen, told, expected)) in cases.into_iter().enumerate() {
        let said = changes(&seen, &told, &Observed::default());
        let said: Vec<_> = said.iter().map(|say| (say.kind, say.reason.as_str())).collect();
        assert_eq!(said, Vec::from_iter(expected), "case {number}");
    }
}
