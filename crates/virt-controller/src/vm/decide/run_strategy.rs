//! Whether a machine starts, stops or stays, by its run strategy, its instance and the requests of its users.

use jiff::Timestamp;
use kubevirt_api::names::annotations;
use kubevirt_api::vm::RunStrategy;
use kubevirt_api::vm::status::VirtualMachineStatus;
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;

use super::backoff;
use crate::vm::view;

/// What becomes of a machine's instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// It stays as it is, or absent.
    Keep,
    /// It is made.
    Start,
    /// It is deleted.
    Stop,
    /// It is deleted, and a request to start is noted before.
    StopToStart,
    /// It is made at this time, not before.
    StartAt(Timestamp),
    /// The machine changes its strategy first.
    Switch(RunStrategy),
    /// The strategy cannot be followed.
    Refuse(String),
}

/// What the decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The strategy of the machine.
    pub strategy: &'a RunStrategy,
    /// The instance of the machine.
    pub instance: Option<&'a VirtualMachineInstance>,
    /// What is known of the machine: requests, failed starts, the last strategy.
    pub status: &'a VirtualMachineStatus,
    /// The strategy that a receiver goes back to.
    pub restore: Option<&'a str>,
}

/// Decides.
pub fn decide(situation: Situation<'_>, now: Timestamp) -> Lifecycle {
    match situation.strategy {
        RunStrategy::Always => always(situation, now),
        RunStrategy::RerunOnFailure => rerun_on_failure(situation, now),
        RunStrategy::Manual => manual(situation),
        RunStrategy::Halted => halted(situation),
        RunStrategy::Once => once(situation),
        RunStrategy::WaitAsReceiver => receiver(situation),
        RunStrategy::Other(other) => Lifecycle::Refuse(format!("{other:?} is not a run strategy")),
    }
}

fn always(situation: Situation<'_>, now: Timestamp) -> Lifecycle {
    let Some(vmi) = situation.instance else { return start_when_due(situation.status, now) };
    if !view::stop_requested(situation.status, vmi) && !view::is_final(vmi) {
        return Lifecycle::Keep;
    }
    if view::is_decentralized(vmi) {
        // The guest lives on elsewhere; starting it here too would be a second one. Until its own side has
        // heard of the end, nothing is decided: the news arrives as a change of the instance.
        return match view::has_migrated(vmi) {
            true => Lifecycle::Switch(RunStrategy::Halted),
            false => Lifecycle::Keep,
        };
    }
    stop(vmi)
}

fn rerun_on_failure(situation: Situation<'_>, now: Timestamp) -> Lifecycle {
    let Some(vmi) = situation.instance else {
        return match reruns(situation.status) {
            true => start_when_due(situation.status, now),
            false => Lifecycle::Keep,
        };
    };
    if view::is_deleting(&vmi.metadata) {
        return Lifecycle::Keep;
    }
    if view::is_in(vmi, VmiPhase::Failed) {
        return Lifecycle::StopToStart;
    }
    if view::is_final(vmi) || view::stop_requested(situation.status, vmi) {
        return Lifecycle::Stop;
    }
    Lifecycle::Keep
}

/// Whether a machine that reruns on failure and has no instance is to start: one that comes from another strategy, or
/// never ran, does so without being asked.
pub fn reruns(status: &VirtualMachineStatus) -> bool {
    view::start_requested(status) || status.run_strategy != Some(RunStrategy::RerunOnFailure)
}

fn manual(situation: Situation<'_>) -> Lifecycle {
    match situation.instance {
        Some(vmi) if view::stop_requested(situation.status, vmi) => stop(vmi),
        None if view::start_requested(situation.status) => Lifecycle::Start,
        _ => Lifecycle::Keep,
    }
}

fn halted(situation: Situation<'_>) -> Lifecycle {
    match situation.instance {
        Some(vmi) => stop(vmi),
        // Only a start with parameters, such as paused, arrives as a request.
        None if view::start_requested(situation.status) => Lifecycle::Switch(RunStrategy::Always),
        None => Lifecycle::Keep,
    }
}

fn once(situation: Situation<'_>) -> Lifecycle {
    if situation.instance.is_some() { Lifecycle::Keep } else { Lifecycle::Start }
}

fn receiver(situation: Situation<'_>) -> Lifecycle {
    let Some(vmi) = situation.instance else { return Lifecycle::Start };
    if view::annotation(&vmi.metadata, annotations::CREATE_MIGRATION_TARGET) == Some("true") {
        return Lifecycle::Keep;
    }
    if !view::has_migrated(vmi) {
        return Lifecycle::Refuse("the instance does not wait as receiver of a migration".to_owned());
    }
    match situation.restore {
        Some(strategy) => Lifecycle::Switch(RunStrategy::from(strategy)),
        None => Lifecycle::Keep,
    }
}

fn stop(vmi: &VirtualMachineInstance) -> Lifecycle {
    if view::is_deleting(&vmi.metadata) { Lifecycle::Keep } else { Lifecycle::Stop }
}

fn start_when_due(status: &VirtualMachineStatus, now: Timestamp) -> Lifecycle {
    match backoff::retry_at(status).filter(|at| *at > now) {
        Some(at) => Lifecycle::StartAt(at),
        None => Lifecycle::Start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{at, read};
    use Lifecycle::{Keep, Start, Stop, StopToStart};
    use serde_json::{Value, json};

    /// The requests of users, by the letters of the table.
    fn requests(which: &str) -> Value {
        match which {
            "start" => json!([{ "action": "Start" }]),
            "stop" => json!([{ "action": "Stop", "uid": "u" }]),
            "restart" => json!([{ "action": "Stop", "uid": "u" }, { "action": "Start" }]),
            "stop another" => json!([{ "action": "Stop", "uid": "gone" }]),
            _ => json!([]),
        }
    }

    fn decided(strategy: &str, phase: &str, request: &str, deleting: bool) -> Lifecycle {
        let deletion = deleting.then_some("2026-01-01T00:00:00Z");
        let vmi = json!({ "metadata": { "uid": "u", "deletionTimestamp": deletion }, "status": { "phase": phase } });
        let vmi: Option<VirtualMachineInstance> = (phase != "none").then(|| read(vmi));
        let status = read(json!({ "stateChangeRequests": requests(request), "runStrategy": strategy }));
        let strategy = RunStrategy::from(strategy);
        let situation =
            Situation { strategy: &strategy, instance: vmi.as_ref(), status: &status, restore: None };
        decide(situation, at(0))
    }

    const ALIVE: [&str; 6] = ["", "Pending", "Scheduling", "Scheduled", "Running", "Unknown"];
    const REQUESTS: [&str; 5] = ["", "start", "stop", "restart", "stop another"];

    /// Every strategy, phase, request and deletion has an answer here.
    #[test]
    fn the_table_of_strategies() {
        let always = || Lifecycle::Switch(RunStrategy::Always);
        for request in REQUESTS {
            let stopping = matches!(request, "stop" | "restart");
            let starting = request == "start";
            let when = |yes: bool, then: Lifecycle| if yes { then } else { Keep };
            let absent = [
                ("Always", Start),
                ("RerunOnFailure", when(starting, Start)),
                ("Manual", when(starting, Start)),
                ("Halted", when(starting, always())),
                ("Once", Start),
            ];
            let alive = [
                ("Always", when(stopping, Stop)),
                ("RerunOnFailure", when(stopping, Stop)),
                ("Manual", when(stopping, Stop)),
                ("Halted", Stop),
                ("Once", Keep),
            ];
            let succeeded = [
                ("Always", Stop),
                ("RerunOnFailure", Stop),
                ("Manual", when(stopping, Stop)),
                ("Halted", Stop),
                ("Once", Keep),
            ];
            let failed = [
                ("Always", Stop),
                ("RerunOnFailure", StopToStart),
                ("Manual", when(stopping, Stop)),
                ("Halted", Stop),
                ("Once", Keep),
            ];
            let check = |phase: &str, row: &[(&str, Lifecycle)]| {
                for (strategy, expected) in row {
                    let case = format!("{strategy}, {phase:?}, {request:?}");
                    assert_eq!(&decided(strategy, phase, request, false), expected, "{case}");
                    if phase != "none" {
                        assert_eq!(decided(strategy, phase, request, true), Keep, "{case}, deleting");
                    }
                }
            };
            check("none", &absent);
            ALIVE.iter().for_each(|phase| check(phase, &alive));
            check("Succeeded", &succeeded);
            check("Failed", &failed);
        }
    }

    #[test]
    fn a_machine_new_to_rerun_on_failure_starts_unasked() {
        let strategy = RunStrategy::RerunOnFailure;
        for (last, expected) in
            [(json!(null), Start), (json!("Halted"), Start), (json!("RerunOnFailure"), Keep)]
        {
            let status = read(json!({ "runStrategy": last }));
            let situation = Situation { strategy: &strategy, instance: None, status: &status, restore: None };
            assert_eq!(decide(situation, at(0)), expected, "{last}");
        }
    }

    #[test]
    fn a_start_after_failures_waits_where_machines_restart_by_themselves() {
        let status = read(json!({
            "startFailure": { "consecutiveFailCount": 1, "retryAfterTimestamp": "1970-01-01T00:01:40Z" },
            "stateChangeRequests": [{ "action": "Start" }],
        }));
        for (strategy, waits) in [
            (RunStrategy::Always, true),
            (RunStrategy::RerunOnFailure, true),
            (RunStrategy::Manual, false),
            (RunStrategy::Once, false),
        ] {
            let decided = |now: i64| {
                let situation =
                    Situation { strategy: &strategy, instance: None, status: &status, restore: None };
                decide(situation, at(now))
            };
            let early = if waits { Lifecycle::StartAt(at(100)) } else { Start };
            assert_eq!(decided(99), early, "{strategy}");
            assert_eq!(decided(100), Start, "{strategy}");
        }
    }

    #[test]
    fn a_receiver_waits_for_its_guest_and_then_goes_back_to_its_strategy() {
        let strategy = RunStrategy::WaitAsReceiver;
        let status = VirtualMachineStatus::default();
        let decided = |vmi: Option<Value>, restore: Option<&str>| {
            let vmi: Option<VirtualMachineInstance> = vmi.map(read);
            decide(Situation { strategy: &strategy, instance: vmi.as_ref(), status: &status, restore }, at(0))
        };
        let waiting =
            json!({ "metadata": { "annotations": { "kubevirt.io/create-migration-target": "true" } } });
        let moved = json!({ "status": { "migrationState": { "completed": true } } });
        assert_eq!(decided(None, None), Start);
        assert_eq!(decided(Some(waiting), Some("Always")), Keep);
        assert_eq!(decided(Some(moved.clone()), Some("Always")), Lifecycle::Switch(RunStrategy::Always));
        assert_eq!(decided(Some(moved), None), Keep);
        assert!(matches!(decided(Some(json!({})), None), Lifecycle::Refuse(_)));
    }

    #[test]
    fn a_guest_that_moved_away_is_not_started_again() {
        let strategy = RunStrategy::Always;
        let status = VirtualMachineStatus::default();
        for (completed, expected) in [(true, Lifecycle::Switch(RunStrategy::Halted)), (false, Keep)] {
            let vmi: VirtualMachineInstance = read(json!({ "status": {
                "phase": "Succeeded",
                "migrationState": {
                    "completed": completed, "sourceState": {}, "targetState": { "syncAddress": "a:1" },
                },
            } }));
            let situation =
                Situation { strategy: &strategy, instance: Some(&vmi), status: &status, restore: None };
            assert_eq!(decide(situation, at(0)), expected);
        }
    }

    #[test]
    fn an_unknown_strategy_is_refused() {
        assert!(matches!(decided("Sometimes", "none", "", false), Lifecycle::Refuse(_)));
    }
}
