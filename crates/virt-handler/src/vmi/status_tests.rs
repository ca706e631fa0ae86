use kubevirt_launcher_rpc::report::{GuestOs, Reason, State};
use serde_json::{Value, json};

use super::super::testing::{Case, at, domain, machine, vmi};
use super::*;

fn facts<'a>(on_node: &'a OnNode, config: &'a ClusterConfig, fate: &'a Fate) -> Facts<'a> {
    Facts { on_node, fate, config, host_model: true }
}

fn status(observed: &Observed) -> Value {
    let (on_node, config) =
        (OnNode { selinux: Some("none".into()), ..OnNode::default() }, ClusterConfig::default());
    let told = told(observed, &facts(&on_node, &config, &Fate::Fulfilled), at(100)).unwrap();
    serde_json::to_value(told.status).unwrap()
}

/// All that the handler writes on the way to Running, at once, as the reference cluster shows it.
#[test]
fn a_machine_that_runs_is_told_in_one_go() {
    let spec = json!({"domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}},
        "volumes": [{"name": "root", "containerDisk": {"image": "i"}}]});
    let before = json!({
        "phase": "Scheduled", "nodeName": "node1",
        "phaseTransitionTimestamps": [{"phase": "Scheduled", "phaseTransitionTimestamp": "1970-01-01T00:01:00Z"}],
        "memory": {"guestAtBoot": "128Mi", "guestRequested": "128Mi"},
        "volumeStatus": [{"name": "root", "target": ""}],
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    let vmi = vmi(spec, before);
    let mut report = machine(domain(State::Running, Reason::Unknown), &vmi);
    report.status.os_info = Some(GuestOs { name: "Debian".into(), ..GuestOs::default() });
    let observed = Case::scheduled().change(|old| *old = vmi).domain(report).observed();
    let told = status(&observed);
    let expected = json!({
        "phase": "Running", "nodeName": "node1",
        "phaseTransitionTimestamps": [
            {"phase": "Scheduled", "phaseTransitionTimestamp": "1970-01-01T00:01:00Z"},
            {"phase": "Running", "phaseTransitionTimestamp": "1970-01-01T00:01:40Z"},
        ],
        "memory": {"guestAtBoot": "128Mi", "guestCurrent": "128Mi", "guestRequested": "128Mi"},
        "volumeStatus": [{"name": "root", "target": "vda"}],
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "LiveMigratable", "status": "True", "lastTransitionTime": "1970-01-01T00:01:40Z"},
            {"type": "StorageLiveMigratable", "status": "True", "lastTransitionTime": "1970-01-01T00:01:40Z"},
        ],
        "guestOSInfo": {"name": "Debian"},
        "machine": {"type": "q35"},
        "migrationMethod": "BlockMigration",
        "selinuxContext": "none",
    });
    assert_eq!(told, expected);
    // Told again a second later, nothing is different.
    let mut settled = observed.clone();
    settled.vmi = settled.vmi.map(|vmi| {
        let mut vmi = (*vmi).clone();
        vmi.status = serde_json::from_value(told.clone()).unwrap();
        vmi.into()
    });
    assert_eq!(status(&settled), expected);
}

#[test]
fn why_a_machine_is_lost_is_told() {
    let cases = [
        (Loss::Ended, "LauncherEnded"),
        (Loss::Silent(std::time::Duration::from_secs(30)), "LauncherUnresponsive"),
        (Loss::Strange("no common version".into()), "LauncherNotUnderstood"),
    ];
    for (loss, expected) in cases {
        let alive = domain(State::Running, Reason::Unknown);
        let observed = Case::running().domain(alive).reach(Reach::Lost(loss)).observed();
        let told = status(&observed);
        assert_eq!((&told["phase"], &told["reason"]), (&json!("Failed"), &json!(expected)));
    }
    let ended = Case::running()
        .domain(domain(State::Shutoff, Reason::Shutdown))
        .reach(Reach::Lost(Loss::Ended))
        .observed();
    let told = status(&ended);
    assert_eq!((&told["phase"], &told["reason"]), (&json!("Succeeded"), &Value::Null));
}

#[test]
fn a_machine_that_can_never_start_has_failed() {
    let (on_node, config) = (OnNode::default(), ClusterConfig::default());
    let fate = Fate::Hopeless("cannot add a tap".into());
    let told = |case: Case| {
        let told = told(&case.observed(), &facts(&on_node, &config, &fate), at(100)).unwrap();
        serde_json::to_value(told.status).unwrap()
    };
    let failed = told(Case::scheduled());
    assert_eq!(
        (&failed["phase"], &failed["reason"]),
        (&json!("Failed"), &json!("Synchronizing with the Domain failed."))
    );
    assert_eq!(failed["conditions"][0]["message"], "cannot add a tap");
    assert_eq!(failed["phaseTransitionTimestamps"][0]["phase"], "Failed");
    // A machine that is there is what it says itself.
    let runs = told(Case::scheduled().domain(domain(State::Running, Reason::Unknown)));
    assert_eq!((&runs["phase"], &runs["reason"]), (&json!("Running"), &Value::Null));
    let ended = told(Case::scheduled().domain(domain(State::Shutoff, Reason::Shutdown)));
    assert_eq!((&ended["phase"], &ended["reason"]), (&json!("Succeeded"), &Value::Null));
}

#[test]
fn an_end_is_not_told_twice() {
    let (on_node, config) = (OnNode::default(), ClusterConfig::default());
    let facts = facts(&on_node, &config, &Fate::Fulfilled);
    assert!(told(&Case::ended().observed(), &facts, at(0)).is_none());
    assert!(told(&Case::gone().observed(), &facts, at(0)).is_none());
}

#[test]
fn nothing_is_told_of_a_machine_that_does_not_exist_but_why() {
    let (on_node, config) = (OnNode::default(), ClusterConfig::default());
    let case = Case::scheduled().observed();
    let fate = Fate::Failed("no such image".into());
    let told = told(&case, &facts(&on_node, &config, &fate), at(0)).unwrap().status.unwrap();
    assert_eq!(told.phase, Some(VmiPhase::Scheduled));
    let conditions = told.conditions.unwrap();
    assert_eq!(conditions.len(), 1);
    assert_eq!(conditions[0].message.as_deref(), Some("no such image"));
    assert!(told.migration_method.is_none());
}
