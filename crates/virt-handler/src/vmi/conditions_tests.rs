use kubevirt_launcher_rpc::report::Outcome;
use serde_json::json;

use super::super::testing::{at, domain, vmi};
use super::*;

fn after(before: &Conditions, report: &DomainReport) -> Conditions {
    let mut all = before.clone();
    of_domain(&mut all, &vmi(json!({}), json!({})), report, &ClusterConfig::default(), at(0));
    all
}

fn found(all: &Conditions, type_: &str) -> Option<(String, Option<String>)> {
    condition::find(all.as_deref(), type_).map(|found| (found.status.clone(), found.reason.clone()))
}

#[test]
fn a_pause_has_a_reason_and_ends() {
    let cases = [
        (State::Paused, Reason::User, Some("PausedByUser")),
        (State::Paused, Reason::IoError, Some("PausedIOError")),
        (State::Paused, Reason::Migration, None),
        (State::Paused, Reason::StartingUp, None),
        (State::Running, Reason::Unknown, None),
    ];
    for (state, reason, expected) in cases {
        let all = after(&None, &domain(state, reason));
        let expected = expected.map(|reason| ("True".to_owned(), Some(reason.to_owned())));
        assert_eq!(found(&all, "Paused"), expected, "{state:?} {reason:?}");
        let again = after(&all, &domain(state, reason));
        assert_eq!(again, all);
        assert_eq!(found(&after(&all, &domain(State::Running, Reason::Unknown)), "Paused"), None);
    }
}

#[test]
fn an_agent_comes_and_goes() {
    let mut report = domain(State::Running, Reason::Unknown);
    report.status.agent_connected = true;
    let all = after(&None, &report);
    assert_eq!(found(&all, "AgentConnected"), Some(("True".into(), None)));
    assert_eq!(found(&all, "AgentVersionNotSupported"), None);
    report.status.agent_commands = vec!["guest-ping".into()];
    let all = after(&all, &report);
    assert!(found(&all, "AgentVersionNotSupported").is_some());
    report.status.agent_connected = false;
    assert_eq!(found(&after(&all, &report), "AgentConnected"), None);
}

#[test]
fn credentials_are_taken_or_not() {
    let mut report = domain(State::Running, Reason::Unknown);
    assert_eq!(found(&after(&None, &report), "AccessCredentialsSynchronized"), None);
    report.status.access_credential = Some(Outcome { succeeded: false, message: "no such user".into() });
    let all = after(&None, &report);
    assert_eq!(found(&all, "AccessCredentialsSynchronized").unwrap().0, "False");
    report.status.access_credential = Some(Outcome { succeeded: true, message: String::new() });
    assert_eq!(found(&after(&all, &report), "AccessCredentialsSynchronized").unwrap().0, "True");
}

#[test]
fn a_wish_that_fails_is_told_until_it_is_fulfilled() {
    let why = |why: &str| why.to_owned();
    let mut all = None;
    for (second, fate, expected) in [
        (0, Fate::Waits, None),
        (1, Fate::Failed(why("no room")), Some("no room")),
        // A handler that just came does not know yet that it takes long.
        (2, Fate::Waits, Some("no room")),
        (3, Fate::Overdue(why("no interface")), Some("no interface")),
        (4, Fate::Fulfilled, None),
        (5, Fate::Overdue(why("no interface")), Some("no interface")),
        (6, Fate::Fulfilled, None),
    ] {
        of_wish(&mut all, &fate, at(second));
        let told = condition::find(all.as_deref(), "Synchronized");
        assert_eq!(told.and_then(|told| told.message.as_deref()), expected, "{fate:?}");
        assert!(told.is_none_or(|told| told.status == "False"), "{fate:?}");
    }
    // What the controller says is the controller's.
    let theirs = holds_not("Synchronized", "FailedCreate", "quota");
    condition::set(&mut all, theirs, &Time(at(0)));
    of_wish(&mut all, &Fate::Fulfilled, at(7));
    assert!(condition::find(all.as_deref(), "Synchronized").is_some());
}
