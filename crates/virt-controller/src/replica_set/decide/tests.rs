use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn set(replicas: i32, paused: bool) -> Arc<VirtualMachineInstanceReplicaSet> {
    let set = json!({
        "metadata": {"name": "web", "namespace": "a", "uid": "set-uid"},
        "spec": {
            "replicas": replicas,
            "paused": paused,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"domain": {"devices": {}}}},
        },
    });
    Arc::new(serde_json::from_value(set).unwrap())
}

fn member(name: &str, phase: &str, ready: bool) -> VirtualMachineInstance {
    let vmi = json!({
        "metadata": {"name": name, "namespace": "a", "uid": name, "labels": {"app": "web"}},
        "spec": {"domain": {"devices": {}}},
        "status": {"phase": phase, "conditions": [
            {"type": "Ready", "status": if ready { "True" } else { "False" }},
        ]},
    });
    serde_json::from_value(vmi).unwrap()
}

fn owned(mut vmi: VirtualMachineInstance) -> VirtualMachineInstance {
    vmi.metadata.owner_references = Some(vec![controller_reference(&*set(1, false))]);
    vmi
}

fn observed(set: Arc<VirtualMachineInstanceReplicaSet>, all: &[VirtualMachineInstance]) -> Observed {
    let (members, orphans): (Vec<_>, Vec<_>) =
        all.iter().cloned().map(Arc::new).partition(|vmi| vmi.metadata.owner_references.is_some());
    let names: Vec<_> = all.iter().map(ResourceExt::name_any).collect();
    let selector = Selector::try_from(set.spec.selector.clone()).unwrap();
    Observed {
        set,
        selector,
        members,
        orphans,
        taken: Box::new(move |name| names.iter().any(|it| it == name)),
    }
}

fn summary(plan: &Plan) -> Vec<String> {
    let change = |action: &Action| match action {
        Action::Create(_) => "create".to_owned(),
        Action::DeleteSurplus(vmi) => format!("delete {}", vmi.name_any()),
        Action::DeleteFinished(vmi) => format!("clean {}", vmi.name_any()),
    };
    let claim = |claim: &Claim| match claim {
        Claim::Adopt(vmi) => format!("adopt {}", vmi.name_any()),
        Claim::Release(vmi) => format!("release {}", vmi.name_any()),
    };
    match &plan.step {
        Step::Claim(claims) => claims.iter().map(claim).collect(),
        Step::Scale(actions) => actions.iter().map(change).collect(),
    }
}

type Case = (&'static str, i32, bool, Vec<VirtualMachineInstance>, &'static [&'static str]);

#[test]
fn cases() {
    let running = |name: &str| owned(member(name, "Running", true));
    let starting = |name: &str| owned(member(name, "Scheduling", false));
    let ended = |name: &str| owned(member(name, "Failed", false));
    let mut stranger = running("stranger");
    stranger.metadata.labels = None;
    let mut going = running("going");
    going.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let cases: Vec<Case> = vec![
        ("nothing there", 2, false, vec![], &["create", "create"]),
        ("enough", 1, false, vec![running("a")], &[]),
        ("not ready goes first", 1, false, vec![running("a"), starting("b")], &["delete b"]),
        ("the ended are replaced", 1, false, vec![ended("a")], &["create", "clean a"]),
        ("those that leave do not count", 1, false, vec![going.clone()], &["create"]),
        ("paused", 5, true, vec![ended("a")], &[]),
        ("orphans are taken over", 1, false, vec![member("o", "Running", true)], &["adopt o"]),
        ("even if the set is paused", 1, true, vec![member("o", "Running", true)], &["adopt o"]),
        ("before any goes", 0, false, vec![running("a"), member("o", "Running", true)], &["adopt o"]),
        ("strangers are let go", 0, false, vec![stranger.clone()], &["release stranger"]),
        ("and nothing else", 2, false, vec![stranger, ended("a")], &["release stranger"]),
        ("fewer than none", -1, false, vec![running("a")], &["delete a"]),
    ];
    for (case, replicas, paused, all, expected) in cases {
        let plan = decide(&observed(set(replicas, paused), &all));
        assert_eq!(summary(&plan), expected, "{case}");
    }
}

#[test]
fn a_set_that_goes_touches_nothing() {
    let mut leaving = VirtualMachineInstanceReplicaSet::clone(&set(3, false));
    leaving.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let mut stranger = owned(member("stranger", "Running", true));
    stranger.metadata.labels = None;
    let all = [member("orphan", "Running", true), stranger, owned(member("ended", "Failed", false))];
    let plan = decide(&observed(Arc::new(leaving), &all));
    assert_eq!(plan.step, Step::Scale(vec![]));
}

#[test]
fn the_same_names_for_who_did_not_see_them_yet() {
    let names = |plan: &Plan| -> Vec<String> {
        let Step::Scale(actions) = &plan.step else { return vec![] };
        let made = |action: &Action| match action {
            Action::Create(vmi) => Some(vmi.name_any()),
            _ => None,
        };
        actions.iter().filter_map(made).collect()
    };
    let blind = observed(set(3, false), &[]);
    let first = names(&decide(&blind));
    assert_eq!(first, names(&decide(&blind)));
    assert!(first.iter().all(|name| name.starts_with("web") && name.len() == 8), "{first:?}");
    let one = owned(member(&first[0], "Running", true));
    assert_eq!(names(&decide(&observed(set(3, false), &[one]))), first[1..]);
}

fn carry_out(all: &mut Vec<VirtualMachineInstance>, step: Step) {
    match step {
        Step::Claim(claims) => claims.iter().for_each(|claim| write(all, claim)),
        Step::Scale(actions) => actions.into_iter().for_each(|action| scale(all, action)),
    }
}

/// Writes a claim as the API server would: only if the instance is still as it was seen.
fn write(all: &mut [VirtualMachineInstance], claim: &Claim) {
    let (Claim::Adopt(seen) | Claim::Release(seen)) = claim;
    let Some(vmi) = all.iter_mut().find(|vmi| **vmi == **seen) else { return };
    *vmi = match claim {
        Claim::Adopt(_) => owned(vmi.clone()),
        Claim::Release(_) => of_nobody(vmi.clone()),
    };
}

fn scale(all: &mut Vec<VirtualMachineInstance>, action: Action) {
    match action {
        Action::Create(vmi) => {
            let mut vmi = *vmi;
            vmi.metadata.uid = vmi.metadata.name.clone();
            all.push(vmi);
        }
        Action::DeleteSurplus(vmi) | Action::DeleteFinished(vmi) => all.retain(|it| it.uid() != vmi.uid()),
    }
}

fn of_nobody(mut vmi: VirtualMachineInstance) -> VirtualMachineInstance {
    vmi.metadata.owner_references = None;
    vmi
}

fn of_another(mut vmi: VirtualMachineInstance) -> VirtualMachineInstance {
    vmi.metadata.owner_references =
        Some(vec![OwnerReference { uid: "another".into(), ..controller_reference(&*set(1, false)) }]);
    vmi
}

fn is_of_another(vmi: &VirtualMachineInstance) -> bool {
    vmi.owner_references().iter().any(|owner| owner.uid == "another")
}

/// Phase, readiness, whether it is a member, and whether it has the labels.
type Start = (usize, bool, bool, bool);

fn instances(start: Vec<Start>) -> Vec<VirtualMachineInstance> {
    let phases = ["Scheduling", "Running", "Succeeded", "Failed"];
    let one = |(number, (phase, ready, ours, labelled)): (usize, Start)| {
        let mut vmi = member(&format!("m{number}"), phases[phase], ready);
        if !labelled {
            vmi.metadata.labels = None;
        }
        if ours { owned(vmi) } else { vmi }
    };
    start.into_iter().enumerate().map(one).collect()
}

proptest! {
    /// From any state, deciding and doing comes to rest, with as many as wanted, while another set takes some of the
    /// orphans first. Nothing of the other's is ever deleted.
    #[test]
    fn it_settles(
        replicas in 0..12i32,
        start in prop::collection::vec((0..4usize, any::<bool>(), any::<bool>(), any::<bool>()), 0..12),
        taken in prop::collection::vec(0..12usize, 0..4),
    ) {
        let mut all = instances(start);
        let mut rounds = 0;
        let mut others = 0;
        loop {
            let mine: Vec<_> = all.iter().filter(|vmi| !is_of_another(vmi)).cloned().collect();
            let plan = decide(&observed(set(replicas, false), &mine));
            if plan.step == Step::Scale(vec![]) { break; }
            // The other is faster than the store.
            for number in &taken {
                if let Some(vmi) = all.get_mut(*number).filter(|vmi| vmi.owner_references().is_empty()) {
                    *vmi = of_another(vmi.clone());
                    others += 1;
                }
            }
            carry_out(&mut all, plan.step);
            prop_assert_eq!(all.iter().filter(|vmi| is_of_another(vmi)).count(), others);
            rounds += 1;
            prop_assert!(rounds < 8);
        }
        let ours = |vmi: &&VirtualMachineInstance| !vmi.owner_references().is_empty() && !is_of_another(vmi);
        prop_assert_eq!(all.iter().filter(ours).count(), usize::try_from(replicas).unwrap());
    }
}
