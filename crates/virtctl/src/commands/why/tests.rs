//! A table of everything that can be the matter.

use serde_json::{Value, json};

use super::evidence::{Event, Evidence, Storage};
use super::explain::explain;
use super::render;

const NOW: &str = "2026-01-01T12:00:00Z";

/// Evidence from manifests; what is null is not there.
fn evidence(vm: Value, vmi: Value, pod: Value) -> Evidence {
    let with = |mut value: Value, kind: &str, version: &str| {
        if value.is_null() {
            return value;
        }
        value["apiVersion"] = version.into();
        value["kind"] = kind.into();
        value["metadata"]["name"] = "a".into();
        value
    };
    let spec = json!({"domain": {"devices": {}}});
    let mut vm = with(vm, "VirtualMachine", "kubevirt.io/v1");
    if !vm.is_null() {
        vm["spec"]["template"] = json!({ "spec": spec });
    }
    let mut vmi = with(vmi, "VirtualMachineInstance", "kubevirt.io/v1");
    if !vmi.is_null() && vmi["spec"].is_null() {
        vmi["spec"] = spec;
    }
    Evidence {
        name: "a".into(),
        namespace: "ns".into(),
        program: "virtctl".into(),
        now: NOW.parse().unwrap(),
        vm: serde_json::from_value(vm).unwrap(),
        vmi: serde_json::from_value(vmi).unwrap(),
        pod: serde_json::from_value(with(pod, "Pod", "v1")).unwrap(),
        ..Evidence::default()
    }
}

fn vm(strategy: &str) -> Value {
    json!({"spec": {"runStrategy": strategy}})
}

fn phase(phase: &str) -> Value {
    json!({"status": {"phase": phase, "nodeName": if phase == "Running" { "n1" } else { "" }}})
}

/// A running instance with a condition.
fn condition(phase: &str, type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"status": {"phase": phase, "nodeName": "n1", "conditions": [
        {"type": type_, "status": status, "reason": reason, "message": message}]}})
}

fn warning(reason: &str, message: &str) -> Event {
    Event { about: "Pod".into(), warning: true, reason: reason.into(), message: message.into() }
}

fn pending(reason: &str, message: &str) -> Value {
    json!({"status": {"phase": "Pending", "containerStatuses": [{
        "name": "compute", "image": "launcher", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": reason, "message": message}}}]}})
}

#[track_caller]
fn is(evidence: &Evidence, case: &str, words: &[&str]) {
    let told = explain(evidence);
    let text = render(evidence, &told);
    assert_eq!(told.case, case, "{text}");
    for word in words {
        assert!(text.contains(word), "{word} is not in {text}");
    }
}

#[test]
fn machines_that_nobody_runs() {
    let none = || Value::Null;
    is(&evidence(none(), none(), none()), "absent", &["does not exist in the namespace ns"]);
    is(&evidence(vm("Halted"), none(), none()), "halted", &["is switched off", "virtctl start a"]);
    is(&evidence(json!({"spec": {"running": false}}), none(), none()), "halted", &[]);
    is(&evidence(vm("Manual"), none(), none()), "never-started", &["was never started"]);
    is(&evidence(vm("WaitAsReceiver"), none(), none()), "receiver", &[]);
    let ran =
        |strategy: &str| json!({"spec": {"runStrategy": strategy}, "status": {"observedGeneration": 1}});
    is(&evidence(ran("Manual"), none(), none()), "stopped", &["was stopped"]);
    is(&evidence(ran("RerunOnFailure"), none(), none()), "ended", &["ended by itself"]);
    is(&evidence(ran("Once"), none(), none()), "ended", &["has run once"]);
    let asked =
        json!({"spec": {"runStrategy": "Manual"}, "status": {"stateChangeRequests": [{"action": "Start"}]}});
    is(&evidence(asked, none(), none()), "waiting-for-controller", &["instance to be made"]);
    is(&evidence(vm("Always"), none(), none()), "waiting-for-controller", &["kubectl get kubevirt"]);
    let deleted = json!({"metadata": {"deletionTimestamp": NOW, "finalizers": ["x/y"]}, "spec": {"runStrategy": "Always"}});
    is(&evidence(deleted, none(), none()), "deleted", &["x/y"]);
}

#[test]
fn machines_that_are_refused_or_keep_failing() {
    let failure = |reason: &str, message: &str| {
        json!({"spec": {"runStrategy": "Always"}, "status": {"conditions": [
            {"type": "Failure", "status": "True", "reason": reason, "message": message}]}})
    };
    let denied = "admission webhook \"v\" denied the request: spec.domain.cpu.sockets: too many";
    is(
        &evidence(failure("FailedCreate", denied), Value::Null, Value::Null),
        "refused",
        &["is not valid", "sockets: too many"],
    );
    let quota = "pods \"a\" is forbidden: exceeded quota: q";
    is(&evidence(failure("FailedCreate", quota), Value::Null, Value::Null), "refused", &["quota"]);
    let absent = failure("FailedFindInstancetype", "u1.huge not found");
    is(
        &evidence(absent, Value::Null, Value::Null),
        "refused",
        &["instance type that does not exist", "u1.huge"],
    );
    let mut event = evidence(vm("Always"), Value::Null, Value::Null);
    event.events.push(warning("FailedCreate", denied));
    is(&event, "refused", &["sockets"]);

    let crashing = json!({"spec": {"runStrategy": "Always"}, "status": {
        "printableStatus": "CrashLoopBackOff",
        "startFailure": {"consecutiveFailCount": 3, "retryAfterTimestamp": "2026-01-01T12:02:05Z"}}});
    let mut crashing = evidence(crashing, Value::Null, Value::Null);
    crashing.log = vec!["qemu: no such disk".into()];
    is(&crashing, "crashing", &["3 time(s)", "2m 5s", "qemu: no such disk", "virtctl stop a"]);
}

#[test]
fn instances_that_have_ended() {
    is(
        &evidence(vm("Manual"), phase("Succeeded"), Value::Null),
        "ended",
        &["without an error", "virtctl start a"],
    );
    let failed =
        condition("Failed", "Synchronized", "False", "LauncherEnded", "the launcher ended with code 1");
    let mut failed = evidence(vm("Manual"), failed, json!({}));
    failed.log = vec!["last words".into()];
    is(&failed, "failed", &["ended with code 1", "last words"]);
    let going = json!({"metadata": {"deletionTimestamp": NOW}, "status": {"phase": "Running"},
        "spec": {"domain": {"devices": {}}, "terminationGracePeriodSeconds": 30}});
    is(&evidence(vm("Halted"), going, Value::Null), "stopping", &["30 s", "--force"]);
}

#[test]
fn instances_that_run() {
    let with = |vmi: Value| evidence(vm("Always"), vmi, json!({}));
    is(&with(phase("Running")), "running", &["a is running.", "node n1"]);
    let paused = |reason: &str| with(condition("Running", "Paused", "True", reason, "said"));
    is(&paused("PausedByUser"), "paused", &["virtctl unpause vmi a"]);
    is(&paused("PausedIOError"), "paused-io", &["a disk failed", "storage"]);
    is(&paused("PausedByMigrationMonitor"), "paused-migration", &[]);
    is(&paused("New"), "paused", &["said"]);
    let unsynchronized = condition("Running", "Synchronized", "False", "x", "vhost is missing");
    is(&with(unsynchronized), "unsynchronized", &["vhost is missing"]);
    let unready = condition("Running", "Ready", "False", "ContainersNotReady", "no answer");
    is(&with(unready), "not-ready", &["no answer", "console a"]);
    let migrating = json!({"status": {"phase": "Running", "migrationState": {
        "startTimestamp": "2026-01-01T11:59:00Z", "sourceNode": "n1", "targetNode": "n2", "mode": "PreCopy"}}});
    is(&with(migrating), "migrating", &["from n1 to n2", "60 s", "migrate-cancel a"]);
    let restart = json!({"spec": {"runStrategy": "Always"}, "status": {"conditions": [
        {"type": "RestartRequired", "status": "True"}]}});
    is(&evidence(restart, phase("Running"), json!({})), "running", &["virtctl restart a"]);
}

#[test]
fn nodes_that_are_lost() {
    let node = |ready: &str, beat: &str| {
        serde_json::from_value(
            json!({"metadata": {"name": "n1", "annotations": {"kubevirt.io/heartbeat": beat}},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}}),
        )
        .unwrap()
    };
    let (fresh, stale) = ("2026-01-01T11:59:30Z", "2026-01-01T11:00:00Z");
    let mut seen = evidence(vm("Always"), phase("Running"), json!({}));
    for (ready, beat, case) in [
        ("True", fresh, "running"),
        ("True", stale, "handler-lost"),
        ("Unknown", fresh, "node-lost"),
        ("True", "nonsense", "running"),
    ] {
        seen.node = Some(node(ready, beat));
        is(&seen, case, &["n1"]);
    }
    let given_up = json!({"status": {"phase": "Failed", "nodeName": "n1", "reason": "NodeUnresponsive"}});
    let mut given_up = evidence(vm("Always"), given_up, Value::Null);
    given_up.node = Some(node("Unknown", stale));
    is(&given_up, "node-lost", &["given up for lost"]);
}

#[test]
fn volumes_that_are_waited_for() {
    let mut seen = evidence(vm("Always"), phase("Pending"), Value::Null);
    seen.claims.insert("c".into(), Storage::Missing);
    is(&seen, "claim-missing", &["PersistentVolumeClaim c, which does not exist"]);
    seen.claims
        .insert("c".into(), Storage::Waiting("Pending".into(), "no persistent volumes available".into()));
    is(&seen, "claim-unbound", &["which is Pending", "no persistent volumes"]);
    seen.claims.insert(
        "c".into(),
        Storage::Waiting("Pending".into(), "waiting for first consumer to be created".into()),
    );
    is(&seen, "waiting-for-controller", &[]);
    seen.claims.clear();
    seen.data_volumes.insert("d".into(), Storage::Waiting("ImportInProgress (42.0%)".into(), String::new()));
    is(&seen, "data-volume", &["DataVolume d", "42.0%"]);
    seen.data_volumes.insert("d".into(), Storage::Failed("404 Not Found".into()));
    is(&seen, "data-volume-failed", &["404 Not Found"]);
    seen.data_volumes.clear();
    seen.missing.push("the secret s".into());
    is(&seen, "object-missing", &["the secret s, which does not exist"]);
    // What a machine lacks that nobody wants to run does not matter yet.
    let mut off = evidence(vm("Halted"), Value::Null, Value::Null);
    off.claims.insert("c".into(), Storage::Missing);
    is(&off, "halted", &[]);
}

#[test]
fn pods_that_do_not_start() {
    let with = |pod: Value| evidence(vm("Always"), phase("Scheduling"), pod);
    let unschedulable = json!({"spec": {"containers": []}, "status": {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
         "message": "0/1 nodes are available: 1 Insufficient memory."}]}});
    is(
        &with(unschedulable),
        "unschedulable",
        &["no node has enough free memory", "Scheduler: 0/1", "Ask for less"],
    );
    let mut image = with(pending("ImagePullBackOff", "Back-off"));
    image.events.push(warning("Failed", "Failed to pull image \"x\": manifest unknown"));
    is(&image, "image-pull", &["manifest unknown", "name and tag"]);
    is(&with(pending("ErrImagePull", "unauthorized")), "image-pull", &["image launcher", "pull secret"]);
    // An image that is a volume keeps a container waiting whose own image is there.
    let disk = json!({"domain": {"devices": {}}, "volumes": [{"name": "root", "containerDisk": {"image": "disk:1"}}]});
    let mut volume = evidence(
        vm("Always"),
        json!({"spec": disk, "status": {"phase": "Scheduling"}}),
        pending("ErrImagePull", "failed"),
    );
    volume.events.push(warning("Failed", "Failed to pull image \"disk:1\": not found"));
    volume.events.push(warning("Failed", "Error: ErrImagePull"));
    is(&volume, "image-pull", &["the image disk:1 (the disk root)", "disk:1\": not found"]);
    let mut mount = with(pending("ContainerCreating", ""));
    mount.events.push(warning("FailedAttachVolume", "Multi-Attach error for volume"));
    is(&mount, "mount", &["in use on another node"]);
    mount.events = vec![warning("FailedMount", "MountVolume.SetUp failed: secret \"s\" not found")];
    is(&mount, "object-missing", &["secret \"s\" not found"]);
    is(&with(pending("CreateContainerError", "no such device")), "container", &["compute", "no such device"]);
    is(&with(pending("ContainerCreating", "")), "waiting-for-launcher", &["waits for its launcher"]);
    is(&evidence(vm("Always"), phase("Scheduled"), json!({})), "starting", &["about to start"]);
    let cannot = condition("Scheduled", "Synchronized", "False", "x", "the CPU model is not known");
    is(&evidence(vm("Always"), cannot, json!({})), "unsynchronized", &["CPU model is not known"]);
    let refused = condition("Pending", "Synchronized", "False", "FailedCreate", "exceeded quota: q");
    is(&evidence(vm("Always"), refused, Value::Null), "pod-refused", &["quota"]);
    is(&evidence(vm("Always"), phase("Pending"), Value::Null), "waiting-for-controller", &["pod to be made"]);
}
