//! Decisions over time: machines in a small model of a cluster, where guests end, users change their minds, stores
//! lag behind and the controller is killed between any two writes.

mod cluster;

use std::sync::Arc;

use kubevirt_api::vm::RunStrategy;
use kubevirt_api::vm::status::{PrintableStatus, StateChangeRequest, StateChangeRequestAction};
use kubevirt_api::vmi::status::VmiPhase;
use proptest::prelude::*;
use serde_json::json;

use self::cluster::Cluster;
use super::*;
use crate::vm::status;
use crate::vm::testing::{at, machine, read, seen, shared};

/// Something that happens.
#[derive(Clone, Debug)]
enum Happening {
    /// The controller looks at the machine.
    Round,
    /// The controller looks at the machine with stores that are one change behind.
    LateRound,
    /// The controller is killed after so many writes.
    CutShort(usize),
    /// What is on its way to a node or out of the cluster gets there.
    Progress,
    /// The guest crashes.
    Crash,
    /// The guest shuts down.
    Shutdown,
    /// A user sets the run strategy.
    Strategy(RunStrategy),
    /// A user asks for a start.
    Start,
    /// A user asks for a stop.
    Stop,
    /// A user asks for a restart.
    Restart,
    /// A user deletes the instance.
    DeleteInstance,
    /// Time passes.
    Later,
}

fn strategies() -> impl Strategy<Value = RunStrategy> {
    use RunStrategy::{Always, Halted, Manual, Once, RerunOnFailure};
    prop::sample::select(vec![Always, Halted, Manual, Once, RerunOnFailure])
}

fn happenings() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => Just(Happening::Round),
        2 => Just(Happening::LateRound),
        2 => (0usize..5).prop_map(Happening::CutShort),
        4 => Just(Happening::Progress),
        1 => Just(Happening::Crash),
        1 => Just(Happening::Shutdown),
        1 => strategies().prop_map(Happening::Strategy),
        1 => Just(Happening::Start),
        1 => Just(Happening::Stop),
        1 => Just(Happening::Restart),
        1 => Just(Happening::DeleteInstance),
        1 => Just(Happening::Later),
    ]
}

/// Enough for a change to be noticed; `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(200)
}

fn happen(cluster: &mut Cluster, happening: Happening) {
    let request = |action, uid| StateChangeRequest { action, uid, data: None };
    let start = || request(StateChangeRequestAction::Start, None);
    match happening {
        Happening::Round => drop(cluster.round()),
        Happening::LateRound => cluster.late_round(),
        Happening::CutShort(writes) => cluster.cut_short(writes),
        Happening::Progress => drop(cluster.progress()),
        Happening::Crash => cluster.end_guest(VmiPhase::Failed),
        Happening::Shutdown if phase(cluster) == Some(VmiPhase::Running) => {
            cluster.end_guest(VmiPhase::Succeeded);
        }
        Happening::Strategy(strategy) => cluster.change(|vm| vm.spec.run_strategy = Some(strategy)),
        Happening::DeleteInstance => cluster.delete_instance(),
        Happening::Later => cluster.now += 7,
        // The API refuses to add to requests that are yet to be done.
        Happening::Start if cluster.requests().is_empty() && cluster.vmi.is_none() => {
            cluster.request(vec![start()]);
        }
        Happening::Stop | Happening::Restart if cluster.requests().is_empty() => {
            let Some(uid) = cluster.vmi.as_ref().map(|vmi| vmi.metadata.uid.clone()) else { return };
            let stop = request(StateChangeRequestAction::Stop, uid);
            let restart = matches!(happening, Happening::Restart);
            cluster.request(if restart { vec![stop, start()] } else { vec![stop] });
        }
        _ => {}
    }
}

fn cluster(strategy: &RunStrategy) -> Cluster {
    Cluster::new(machine(json!({ "spec": { "runStrategy": strategy } })))
}

fn word(cluster: &Cluster) -> PrintableStatus {
    cluster.vm.as_ref().unwrap().status.as_ref().unwrap().printable_status.clone().unwrap()
}

fn phase(cluster: &Cluster) -> Option<VmiPhase> {
    cluster.vmi.as_ref().and_then(|vmi| view::phase(vmi).cloned())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_machine_comes_to_rest_as_its_strategy_says(
        first in strategies(),
        all in prop::collection::vec(happenings(), 0..40),
    ) {
        let mut cluster = cluster(&first);
        for happening in all {
            happen(&mut cluster, happening);
        }
        cluster.settle();
        let strategy = view::run_strategy(cluster.vm.as_ref().unwrap()).unwrap();
        match &strategy {
            RunStrategy::Always => prop_assert_eq!(phase(&cluster), Some(VmiPhase::Running)),
            RunStrategy::Halted => prop_assert_eq!(phase(&cluster), None),
            RunStrategy::RerunOnFailure => {
                prop_assert!(matches!(phase(&cluster), None | Some(VmiPhase::Running)));
            }
            RunStrategy::Once => prop_assert!(phase(&cluster).is_some()),
            _ => {}
        }
        let expected = match phase(&cluster) {
            Some(VmiPhase::Running) => PrintableStatus::Running,
            None => PrintableStatus::Stopped,
            Some(_) => word(&cluster),
        };
        prop_assert_eq!(word(&cluster), expected);
        // A machine that runs once takes no requests; one that was there when it became one stays.
        prop_assert!(strategy == RunStrategy::Once || cluster.requests().is_empty(), "{:?}", cluster.requests());
        // At rest, another look writes nothing, however often and whenever.
        cluster.now += 1000;
        prop_assert_eq!(cluster.round(), false);
    }

    #[test]
    fn a_deleted_machine_takes_its_instance_along(
        first in strategies(),
        before in prop::collection::vec(happenings(), 0..20),
        after in prop::collection::vec(happenings(), 0..10),
    ) {
        let mut cluster = cluster(&first);
        before.into_iter().for_each(|happening| happen(&mut cluster, happening));
        cluster.round();
        cluster.delete_machine(None);
        after.into_iter().for_each(|happening| happen(&mut cluster, happening));
        cluster.settle();
        prop_assert!(cluster.vm.is_none());
        prop_assert!(cluster.vmi.is_none());
    }

    #[test]
    fn being_killed_anywhere_makes_no_difference_in_the_end(
        strategy in strategies(),
        cuts in prop::collection::vec(0usize..6, 0..6),
    ) {
        let mut calm = cluster(&strategy);
        calm.settle();
        calm.end_guest(VmiPhase::Failed);
        calm.settle();
        let mut cut = cluster(&strategy);
        cut.settle();
        cut.end_guest(VmiPhase::Failed);
        for writes in cuts {
            cut.cut_short(writes);
        }
        cut.settle();
        prop_assert_eq!(phase(&calm), phase(&cut));
        prop_assert_eq!(word(&calm), word(&cut));
        prop_assert_eq!(calm.requests(), cut.requests());
    }
}

#[test]
fn an_orphaned_instance_outlives_its_machine() {
    let mut cluster = cluster(&RunStrategy::Always);
    cluster.settle();
    cluster.delete_machine(Some(ORPHAN));
    cluster.round();
    assert!(!view::has_finalizer(&cluster.vm.as_ref().unwrap().metadata, finalizers::VM_CONTROLLER));
    cluster.change(|vm| vm.metadata.finalizers = None);
    assert!(cluster.vm.is_none());
    assert_eq!(phase(&cluster), Some(VmiPhase::Running));
}

#[test]
fn a_guest_that_never_comes_up_is_tried_again_later_and_later() {
    let mut cluster = cluster(&RunStrategy::Always);
    let mut waits = Vec::new();
    for _ in 0..6 {
        while cluster.vmi.is_none() {
            cluster.round();
        }
        cluster.end_guest(VmiPhase::Failed);
        cluster.settle_until(|cluster| cluster.vmi.is_none());
        cluster.round();
        assert_eq!(word(&cluster), PrintableStatus::CrashLoopBackOff);
        let at = cluster.look_again.expect("a time to try again");
        waits.push(at - cluster.now);
        cluster.now = at;
    }
    assert!((9..=15).contains(&waits[0]), "{waits:?}");
    assert!(waits.is_sorted() && waits[5] <= 300 && waits[5] >= 299, "{waits:?}");
    cluster.settle();
    let status = cluster.vm.as_ref().unwrap().status.clone().unwrap();
    assert_eq!(status.start_failure, None);
    assert_eq!(word(&cluster), PrintableStatus::Running);
}

#[test]
fn a_halted_machine_that_is_asked_to_start_runs_from_then_on() {
    for spec in [json!({ "running": false }), json!({ "runStrategy": "Halted" })] {
        let mut cluster = Cluster::new(machine(json!({ "spec": spec })));
        cluster.settle();
        let data = [("paused".to_owned(), "true".to_owned())].into();
        let action = StateChangeRequestAction::Start;
        cluster.request(vec![StateChangeRequest { action, data: Some(data), uid: None }]);
        cluster.settle();
        assert_eq!(phase(&cluster), Some(VmiPhase::Running));
        let vmi = cluster.vmi.as_ref().unwrap();
        assert_eq!(json!(vmi.spec)["startStrategy"], "Paused");
        let vm = cluster.vm.as_ref().unwrap();
        assert_eq!(vm.spec.running.is_some(), spec.get("running").is_some(), "{spec}");
    }
}

#[test]
fn a_start_that_a_new_strategy_asks_for_is_made_when_it_can_be() {
    let spec = json!({
        "runStrategy": "RerunOnFailure",
        "dataVolumeTemplates": [{ "metadata": { "name": "disk" }, "spec": {} }],
    });
    let mut seen = seen(machine(json!({ "spec": spec, "status": { "runStrategy": "Halted" } })));
    let rounds = [("ImportInProgress", false, "Halted"), ("Succeeded", true, "RerunOnFailure")];
    for (phase, starts, followed) in rounds {
        let disk = json!({ "metadata": { "name": "disk" }, "status": { "phase": phase } });
        seen.data_volumes.insert("disk".to_owned(), shared(disk));
        let plan = decide(&seen, at(0));
        assert_eq!(plan.starts(), starts, "{phase}");
        seen.vm = Arc::new(status::machine(&seen, &plan, at(0)));
        assert_eq!(json!(seen.vm.status)["runStrategy"], followed, "{phase}");
    }
}

#[test]
fn an_instance_is_adopted_and_a_foreign_one_is_in_the_way() {
    let mut cluster = cluster(&RunStrategy::Always);
    cluster.settle();
    let orphan = |cluster: &mut Cluster| {
        cluster.vmi.as_mut().unwrap().metadata.owner_references = None;
    };
    orphan(&mut cluster);
    cluster.settle();
    let owner = |cluster: &Cluster| {
        view::controller(&cluster.vmi.as_ref().unwrap().metadata).map(|owner| owner.uid.clone())
    };
    assert_eq!(owner(&cluster).as_deref(), Some("vm-uid"));
    let foreign = json!([{ "apiVersion": "v1", "kind": "K", "name": "n", "uid": "x", "controller": true }]);
    cluster.vmi.as_mut().unwrap().metadata.owner_references = read(foreign);
    cluster.round();
    assert_eq!(owner(&cluster).as_deref(), Some("x"));
    let status = json!(cluster.vm.as_ref().unwrap().status);
    let failure = status["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Failure");
    assert_eq!(failure.unwrap()["reason"], "FailedCreate");
}

#[test]
fn few_writes_lead_to_a_running_machine() {
    let mut cluster = cluster(&RunStrategy::Always);
    cluster.settle();
    assert_eq!(cluster.instance_writes, 0, "of the instance after it was made");
    assert!(cluster.machine_writes <= 8, "{}", cluster.machine_writes);
}
