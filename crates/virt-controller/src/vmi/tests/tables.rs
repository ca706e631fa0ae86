//! What follows from each phase and each state of the pod.

use kubevirt_api::condition;
use kubevirt_api::names::{annotations, finalizers, labels};
use kubevirt_api::vmi::VirtualMachineInstance;
use kubevirt_api::vmi::status::VmiPhase;
use serde_json::{Value, json};

use super::build::{IMAGE, all_short, now, observed, pod, temporary, vmi};
use crate::vmi::{Observed, Plan, Trouble, decide};

fn deleted() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-01-01T11:59:00Z"}})
}

fn plan(observed: &Observed) -> Plan {
    decide(observed, now())
}

fn written(plan: &Plan) -> &VirtualMachineInstance {
    plan.vmi.as_deref().expect("an instance to be written")
}

fn phase(plan: &Plan) -> String {
    written(plan)
        .status
        .as_ref()
        .and_then(|status| status.phase.as_ref())
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn reason(plan: &Plan, type_: &str) -> String {
    let conditions = written(plan).status.as_ref().and_then(|status| status.conditions.as_deref());
    let found = condition::find(conditions, type_);
    found.map(|it| format!("{} {}", it.status, it.reason.as_deref().unwrap_or_default())).unwrap_or_default()
}

#[test]
fn each_phase_and_state_of_the_pod_has_its_consequence() {
    let alive = json!({});
    // Phase, state of the pod, deleted: steps and next phase.
    let cases = [
        ("", "none", &alive, "make launcher", ""),
        ("Pending", "none", &alive, "make launcher", ""),
        ("Pending", "new", &alive, "", "Scheduling"),
        ("Pending", "running", &alive, "", "Scheduling"),
        ("Pending", "none", &deleted(), "", "Failed"),
        ("Pending", "new", &deleted(), "delete virt-launcher-web-x", "Scheduling"),
        ("Scheduling", "new", &alive, "", "Scheduling"),
        ("Scheduling", "creating", &alive, "", "Scheduling"),
        ("Scheduling", "running", &alive, "", "Scheduled"),
        ("Scheduling", "running", &deleted(), "delete virt-launcher-web-x", "Scheduling"),
        ("Scheduling", "failed", &alive, "", "Failed"),
        ("Scheduling", "succeeded", &alive, "", "Failed"),
        ("Scheduling", "leaving", &alive, "", "Failed"),
        ("Scheduling", "leaving", &deleted(), "", "Failed"),
        ("Scheduling", "none", &alive, "", "Failed"),
        ("Scheduled", "running", &alive, "", "Scheduled"),
        ("Scheduled", "failed", &alive, "", "Scheduled"),
        ("Scheduled", "none", &alive, "", "Failed"),
        ("Scheduled", "running", &deleted(), "delete virt-launcher-web-x", "Scheduled"),
        ("Running", "ready", &alive, "", "Running"),
        ("Running", "succeeded", &alive, "", "Running"),
        ("Running", "leaving", &alive, "", "Running"),
        ("Running", "none", &alive, "", "Failed"),
        ("Running", "ready", &deleted(), "delete virt-launcher-web-x", "Running"),
        ("Running", "leaving", &deleted(), "", "Running"),
        ("Succeeded", "succeeded", &alive, "", "Succeeded"),
        ("Failed", "failed", &deleted(), "delete virt-launcher-web-x", "Failed"),
        ("Failed", "none", &deleted(), "", "Failed"),
        ("Unknown", "ready", &alive, "", "Unknown"),
    ];
    for (before, state, more, steps, after) in cases {
        let pods = (state != "none").then(|| pod(state));
        let plan = plan(&observed(vmi(before, more.clone()), pods));
        let case = format!("{before:?} with pod {state}, {more}");
        assert_eq!(all_short(&plan.steps).join(", "), steps, "{case}");
        if after.is_empty() {
            assert!(plan.vmi.is_none(), "{case}: nothing is written before the results are known");
        } else {
            assert_eq!(phase(&plan), after, "{case}");
        }
    }
}

#[test]
fn a_pod_that_the_store_does_not_know_is_asked_for_before_it_counts_as_gone() {
    for before in ["Scheduling", "Scheduled", "Running"] {
        let mut observed = observed(vmi(before, json!({})), None);
        observed.pods_confirmed = false;
        assert_eq!(all_short(&plan(&observed).steps), ["look"], "{before}");
    }
    // Nor is the finalizer taken away.
    for (before, more) in [("Failed", json!({})), ("Pending", deleted())] {
        let mut observed = observed(vmi(before, more), None);
        observed.pods_confirmed = false;
        assert_eq!(all_short(&plan(&observed).steps), ["look"], "{before}");
    }
}

#[test]
fn the_node_is_given_all_that_it_needs_in_one_write() {
    let more = json!({"spec": {
        "domain": {"devices": {"autoattachVSOCK": true}}, "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "containerDisk": {"image": "disk"}}],
    }});
    let mut launcher = pod("running");
    let notes =
        [(annotations::MIGRATION_TRANSPORT_UNIX, "true"), (annotations::MEMORY_OVERHEAD_BYTES, "289406976")];
    launcher.metadata.annotations = Some(notes.map(|(name, value)| (name.into(), value.into())).into());
    let plan = plan(&observed(vmi("Scheduling", more), [launcher]));
    let vmi = written(&plan);
    assert_eq!(vmi.metadata.labels.as_ref().unwrap()[labels::NODE_NAME], "node1");
    let status = serde_json::to_value(&vmi.status).unwrap();
    let expected = json!({
        "phase": "Scheduled", "nodeName": "node1", "qosClass": "Burstable", "migrationTransport": "Unix",
        "activePods": {"pod-uid": "node1"}, "launcherContainerImageVersion": IMAGE, "VSOCKCID": 42,
        "memory": {"memoryOverhead": "276Mi"},
        "interfaces": [{"name": "default", "podInterfaceName": "eth0"}],
        "volumeStatus": [{"name": "root", "target": ""}],
        "phaseTransitionTimestamps": [{"phase": "Scheduled", "phaseTransitionTimestamp": "2026-01-01T12:00:00Z"}],
        "conditions": [{
            "type": "Ready", "status": "False", "reason": "GuestNotRunning",
            "message": "Guest VM is not reported as running", "lastTransitionTime": "2026-01-01T12:00:00Z",
        }],
    });
    assert_eq!(status, expected);
}

#[test]
fn a_pod_shows_where_it_is_and_that_its_guest_may_be_reached_once_it_has_a_node() {
    for (state, marked) in [
        ("new", false),
        ("unschedulable", false),
        ("creating", true),
        ("running", true),
        ("ready", true),
        ("leaving", false),
        ("succeeded", false),
        ("failed", false),
    ] {
        let plan = plan(&observed(vmi("Scheduling", json!({})), [pod(state)]));
        let expected: &[&str] = if marked { &["mark pod, unpaused True"] } else { &[] };
        assert_eq!(all_short(&plan.afterwards), expected, "{state}");
        for step in &plan.afterwards {
            let crate::vmi::Step::MarkPod { labels, .. } = step else { panic!("{state}: no mark") };
            assert_eq!(labels.get(labels::NODE_NAME), Some(&Some("node1".to_owned())), "{state}");
        }
    }
}

#[test]
fn a_pod_that_is_ready_soon_costs_no_write() {
    let gate = json!([{"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady"}]);
    let mut launcher = pod("running");
    launcher.status.as_mut().unwrap().conditions = Some(serde_json::from_value(gate).unwrap());
    let before = json!([{"type": "Ready", "status": "False", "reason": "GuestNotRunning"}]);
    let running = vmi("Running", json!({"status": {"conditions": before}}));
    let soon = plan(&observed(running.clone(), [launcher.clone()]));
    assert_eq!(reason(&soon, "Ready"), "False GuestNotRunning");
    let other = json!([{"conditionType": "vendor.io/slow"}]);
    launcher.spec.as_mut().unwrap().readiness_gates = Some(serde_json::from_value(other).unwrap());
    let later = plan(&observed(running, [launcher]));
    assert_eq!(reason(&later, "Ready"), "False ReadinessGatesNotReady");
}

#[test]
fn on_the_way_to_the_node_only_news_for_people_are_written() {
    let first = plan(&observed(vmi("Pending", json!({})), [pod("new")]));
    let scheduling = written(&first).clone();
    for state in ["new", "creating"] {
        let plan = plan(&observed(scheduling.clone(), [pod(state)]));
        assert_eq!(*written(&plan), scheduling, "{state}");
    }
    let unschedulable = plan(&observed(scheduling.clone(), [pod("unschedulable")]));
    assert_eq!(reason(&unschedulable, "PodScheduled"), "False Unschedulable");
    let again = plan(&observed(written(&unschedulable).clone(), [pod("creating")]));
    assert_eq!(reason(&again, "PodScheduled"), "");
}

#[test]
fn what_stands_in_the_way_is_told_and_taken_back() {
    let no_image = plan(&observed(vmi("Scheduling", json!({})), [pod("no-image")]));
    assert_eq!(reason(&no_image, "Synchronized"), "False ImagePullBackOff");
    assert!(!no_image.trouble.as_ref().unwrap().retry);
    let better = plan(&observed(written(&no_image).clone(), [pod("creating")]));
    assert_eq!(reason(&better, "Synchronized"), "");

    let mut failed = observed(vmi("Pending", json!({})), None);
    failed.trouble = Some(Trouble::passing("FailedCreate", "quota exceeded"));
    let failed = plan(&failed);
    assert!(failed.steps.is_empty());
    assert_eq!(reason(&failed, "Synchronized"), "False FailedCreate");
    assert_eq!(phase(&failed), "Pending");
}

#[test]
fn an_instance_whose_pod_failed_tells_which_container_did() {
    let mut launcher = pod("failed");
    let status = launcher.status.as_mut().unwrap();
    let init = json!([{
        "name": "image-init", "image": "", "imageID": "", "restartCount": 0, "ready": false,
        "state": {"terminated": {"exitCode": 4}},
    }]);
    status.container_statuses = None;
    status.init_container_statuses = serde_json::from_value(init).unwrap();
    let failed = plan(&observed(vmi("Scheduling", json!({})), [launcher.clone()]));
    assert_eq!(phase(&failed), "Failed");
    assert_eq!(reason(&failed, "Synchronized"), "False ContainerFailed");
    assert!(!failed.trouble.as_ref().unwrap().retry, "nothing comes of another try");
    let status = written(&failed).status.as_ref().unwrap();
    assert_eq!(status.reason.as_deref(), Some("ContainerFailed"));
    let said = condition::find(status.conditions.as_deref(), "Synchronized").unwrap();
    let expected = "container image-init of the virt-launcher pod failed with exit code 4";
    assert_eq!(said.message.as_deref(), Some(expected));
    // It stays when the instance is looked at again.
    let again = plan(&observed(written(&failed).clone(), [launcher.clone()]));
    assert_eq!(*written(&again), *written(&failed));
    // Whoever ends it knows why it ended.
    let ended = plan(&observed(vmi("Scheduling", deleted()), [launcher]));
    assert_eq!((phase(&ended).as_str(), reason(&ended, "Synchronized").as_str()), ("Failed", ""));
}

#[test]
fn dedicated_cpus_need_a_pod_that_gets_all_that_it_asks_for() {
    let more = json!({"spec": {"domain": {"cpu": {"dedicatedCpuPlacement": true}}}});
    let refused = plan(&observed(vmi("Scheduling", more.clone()), [pod("running")]));
    assert_eq!(phase(&refused), "Scheduling");
    assert_eq!(reason(&refused, "Synchronized"), "False FailedGuaranteeResources");
    let mut guaranteed = pod("running");
    guaranteed.status.as_mut().unwrap().qos_class = Some("Guaranteed".into());
    assert_eq!(phase(&plan(&observed(vmi("Scheduling", more), [guaranteed]))), "Scheduled");
}

#[test]
fn readiness_is_that_of_the_pod_while_the_guest_runs() {
    let ready = |before: &str, state: Option<&str>| {
        reason(&plan(&observed(vmi(before, json!({})), state.map(pod))), "Ready")
    };
    assert_eq!(ready("Running", Some("ready")), "True ");
    assert_eq!(ready("Running", Some("running")), "False PodConditionMissing");
    assert_eq!(ready("Running", Some("leaving")), "False PodTerminating");
    assert_eq!(ready("Scheduled", Some("ready")), "False GuestNotRunning");
    assert_eq!(ready("Running", None), "False PodNotExists");
}

#[test]
fn a_paused_guest_is_not_reached_by_services() {
    let paused = json!({"status": {"conditions": [{"type": "Paused", "status": "True"}]}});
    let mut launcher = pod("ready");
    let said = json!({"type": "kubevirt.io/virtual-machine-unpaused", "status": "True"});
    let conditions = launcher.status.as_mut().unwrap().conditions.as_mut().unwrap();
    conditions.push(serde_json::from_value(said).unwrap());
    let steps = |more: Value| {
        let plan = plan(&observed(vmi("Running", more), [launcher.clone()]));
        all_short(&plan.afterwards).into_iter().filter(|step| step.contains("unpaused")).collect::<Vec<_>>()
    };
    assert_eq!(steps(paused), ["mark pod, unpaused False"]);
    assert!(steps(json!({})).is_empty());
}

#[test]
fn finalizers_go_when_their_holders_are_done() {
    let both = json!([finalizers::FOREGROUND_DELETE, finalizers::VM_CONTROLLER]);
    let more = json!({"metadata": {"finalizers": both}});
    let left = |state: Option<&str>, has_owner: bool| {
        let mut observed = observed(vmi("Failed", more.clone()), state.map(pod));
        observed.has_owner = has_owner;
        written(&plan(&observed)).metadata.finalizers.clone().unwrap()
    };
    assert_eq!(left(Some("failed"), true), [finalizers::FOREGROUND_DELETE, finalizers::VM_CONTROLLER]);
    assert_eq!(left(Some("failed"), false), [finalizers::FOREGROUND_DELETE]);
    assert_eq!(left(None, true), [finalizers::VM_CONTROLLER]);
    assert!(left(None, false).is_empty());
    // What was deleted before it had a pod goes in one write.
    let more = json!({"metadata": {"finalizers": both, "deletionTimestamp": "2026-01-01T11:59:00Z"}});
    let gone = plan(&observed(vmi("Pending", more), None));
    assert!(written(&gone).metadata.finalizers.as_ref().unwrap().is_empty());
    // Older releases wrote another name.
    let old = json!({"metadata": {"finalizers": [finalizers::DEPRECATED_FOREGROUND_DELETE]}});
    let renamed = plan(&observed(vmi("Running", old), [pod("ready")]));
    assert_eq!(written(&renamed).metadata.finalizers.as_deref().unwrap(), [finalizers::FOREGROUND_DELETE]);
}

#[test]
fn a_pod_of_an_older_release_is_told_and_further_marks_follow_to_the_pod() {
    let mut launcher = pod("ready");
    launcher.spec.as_mut().unwrap().containers[0].image = Some("registry/launcher:0".into());
    let more = json!({"metadata": {"labels": {"vendor.io/a": "1", "other": "2"}}});
    let mut observed = observed(vmi("Running", more), [launcher]);
    let mut settings = (*observed.settings).clone();
    settings.mirrored_labels = vec!["vendor.io/*".into(), "*".into(), String::new()];
    observed.settings = settings.into();
    let plan = plan(&observed);
    let vmi = written(&plan);
    assert!(vmi.metadata.labels.as_ref().unwrap().contains_key(labels::OUTDATED_LAUNCHER_IMAGE));
    let Some(crate::vmi::Step::MarkPod { labels, .. }) = plan.afterwards.first() else { panic!("no marks") };
    let names: Vec<_> = labels.keys().map(String::as_str).collect();
    assert_eq!(names, [labels::NODE_NAME, labels::OUTDATED_LAUNCHER_IMAGE, "vendor.io/a"]);
}

#[test]
fn pods_of_a_migration_are_left_alone() {
    let mut target = pod("running");
    target.metadata.name = Some("virt-launcher-web-target".into());
    target.metadata.uid = Some("target-uid".into());
    target.metadata.creation_timestamp = Some(serde_json::from_value(json!("2026-01-01T11:30:00Z")).unwrap());
    target.spec.as_mut().unwrap().node_name = Some("node2".into());
    let state = json!({"targetNode": "node2", "startTimestamp": "2026-01-01T11:31:00Z"});
    let more = json!({"status": {"nodeName": "node1", "migrationState": state}});
    let plan = plan(&observed(vmi("Running", more), [pod("ready"), target]));
    assert!(plan.steps.is_empty());
    let status = written(&plan).status.as_ref().unwrap();
    assert_eq!(status.phase, Some(VmiPhase::Running));
    assert_eq!(status.node_name.as_deref(), Some("node1"));
    assert_eq!(serde_json::to_value(&status.migration_state).unwrap(), state);
    let both = json!({"pod-uid": "node1", "target-uid": "node2"});
    assert_eq!(serde_json::to_value(&status.active_pods).unwrap(), both);
}

#[test]
fn a_migration_under_way_keeps_a_new_pod_from_being_made() {
    let mut observed = observed(vmi("Pending", json!({})), None);
    observed.migrates = true;
    let plan = plan(&observed);
    assert!(plan.steps.is_empty());
    assert_eq!(reason(&plan, "Synchronized"), "False FailedCreate");
}

#[test]
fn a_receiver_waits_for_its_sender() {
    let receiver = json!({"metadata": {"annotations": {annotations::CREATE_MIGRATION_TARGET: "true"}}});
    let waits = plan(&observed(vmi("Pending", receiver.clone()), None));
    assert!(waits.steps.is_empty());
    assert_eq!(phase(&waits), "WaitingForSync");
    assert_eq!(phase(&plan(&observed(vmi("Scheduling", receiver), [pod("failed")]))), "WaitingForSync");
}

#[test]
fn a_failed_pod_says_why() {
    let mut evicted = pod("failed");
    evicted.status.as_mut().unwrap().reason = Some("Evicted".into());
    let plan = plan(&observed(vmi("Scheduling", json!({})), [evicted]));
    assert_eq!(written(&plan).status.as_ref().unwrap().reason.as_deref(), Some("Evicted"));
}

#[test]
fn cpus_and_memory_to_be_plugged_are_asked_for_by_conditions() {
    let more = json!({
        "spec": {"domain": {
            "cpu": {"sockets": 2, "cores": 1, "threads": 1, "maxSockets": 4},
            "memory": {"guest": "2Gi", "maxGuest": "4Gi"},
        }},
        "status": {
            "currentCPUTopology": {"sockets": 1, "cores": 1, "threads": 1},
            "memory": {"guestRequested": "1Gi", "guestCurrent": "1Gi"},
        },
    });
    let grows = plan(&observed(vmi("Running", more.clone()), [pod("ready")]));
    assert_eq!(reason(&grows, "HotVCPUChange"), "True ");
    assert_eq!(reason(&grows, "HotMemoryChange"), "True ");
    let same = super::build::over(
        more,
        json!({
            "spec": {"domain": {"cpu": {"sockets": 1}, "memory": {"guest": "1Gi"}}},
        }),
    );
    let same = plan(&observed(vmi("Running", same), [pod("ready")]));
    assert_eq!(reason(&same, "HotVCPUChange"), "");
    assert_eq!(reason(&same, "HotMemoryChange"), "");
}

#[test]
fn a_guest_that_depends_on_the_counter_is_pinned_before_its_pod_is_made() {
    let more = json!({"spec": {
        "architecture": "amd64", "domain": {"cpu": {"features": [{"name": "invtsc", "policy": "require"}]}},
    }});
    let mut observed = observed(vmi("Pending", more), None);
    observed.tsc_frequency = 2_000_000_000;
    let plan = plan(&observed);
    let Some(crate::vmi::Step::CreatePod(crate::vmi::NewPod::Launcher(vmi))) = plan.steps.first() else {
        panic!("no pod")
    };
    let hints = vmi.status.as_ref().unwrap().topology_hints.as_ref().unwrap();
    assert_eq!(hints.tsc_frequency, Some(2_000_000_000));
    observed.tsc_frequency = -1;
    assert_eq!(
        reason(&decide(&observed, now()), "Synchronized"),
        "False FailedGatherhingClusterTopologyHints"
    );
}

#[test]
fn temporary_pods_go_when_they_have_done_their_work() {
    let steps =
        |state: &str| all_short(&plan(&observed(vmi("Pending", json!({})), [temporary(state)])).steps);
    assert!(steps("creating").is_empty());
    assert_eq!(steps("succeeded"), ["delete virt-launcher-web-t"]);
}
