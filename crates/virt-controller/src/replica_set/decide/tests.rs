use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
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
    let words = |action: &Action| match action {
        Action::Create(_) => "create".to_owned(),
        Action::DeleteSurplus(vmi) => format!("delete {}", vmi.name_any()),
        Action::DeleteFinished(vmi) => format!("clean {}", vmi.name_any()),
        Action::Adopt(vmi) => format!("adopt {}", vmi.name_any()),
        Action::Release(vmi) => format!("release {}", vmi.name_any()),
    };
    plan.actions.iter().map(words).collect()
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
        ("strangers are let go", 0, false, vec![stranger], &["release stranger"]),
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
    let plan = decide(&observed(Arc::new(leaving), &[member("orphan", "Running", true)]));
    assert!(plan.actions.is_empty());
}

#[test]
fn the_same_names_for_who_did_not_see_them_yet() {
    let names = |plan: &Plan| -> Vec<String> {
        plan.actions
            .iter()
            .filter_map(|action| if let Action::Create(vmi) = action { Some(vmi.name_any()) } else { None })
            .collect()
    };
    let blind = observed(set(3, false), &[]);
    let first = names(&decide(&blind));
    assert_eq!(first, names(&decide(&blind)));
    assert!(first.iter().all(|name| name.starts_with("web") && name.len() == 8), "{first:?}");
    let one = owned(member(&first[0], "Running", true));
    assert_eq!(names(&decide(&observed(set(3, false), &[one]))), first[1..]);
}

fn carry_out(all: &mut Vec<VirtualMachineInstance>, plan: Plan) {
    for action in plan.actions {
        match action {
            Action::Create(vmi) => {
                let mut vmi = *vmi;
                vmi.metadata.uid = vmi.metadata.name.clone();
                all.push(vmi);
            }
            Action::DeleteSurplus(vmi) | Action::DeleteFinished(vmi) => {
                all.retain(|it| it.uid() != vmi.uid());
            }
            Action::Adopt(vmi) => {
                let orphan = all.iter_mut().find(|it| it.uid() == vmi.uid()).unwrap();
                *orphan = owned(orphan.clone());
            }
            Action::Release(vmi) => {
                let member = all.iter_mut().find(|it| it.uid() == vmi.uid()).unwrap();
                member.metadata.owner_references = None;
            }
        }
    }
}

proptest! {
    /// From any state, deciding and doing comes to rest, with as many as wanted.
    #[test]
    fn it_settles(
        replicas in 0..12i32,
        members in prop::collection::vec((0..4usize, any::<bool>(), any::<bool>(), any::<bool>()), 0..12),
    ) {
        let phases = ["Scheduling", "Running", "Succeeded", "Failed"];
        let mut all: Vec<_> = members.into_iter().enumerate().map(|(number, (phase, ready, ours, labelled))| {
            let mut vmi = member(&format!("m{number}"), phases[phase], ready);
            if !labelled { vmi.metadata.labels = None; }
            if ours { owned(vmi) } else { vmi }
        }).collect();
        let mut rounds = 0;
        loop {
            let plan = decide(&observed(set(replicas, false), &all));
            if plan.actions.is_empty() { break; }
            carry_out(&mut all, plan);
            rounds += 1;
            prop_assert!(rounds < 5);
        }
        let active = all.iter().filter(|vmi| vmi.metadata.owner_references.is_some()).count();
        prop_assert_eq!(active, usize::try_from(replicas).unwrap());
    }
}
