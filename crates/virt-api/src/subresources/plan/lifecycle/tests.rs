use super::super::testing::seen;
use super::*;

fn vm(spec: Value, status: Value) -> Seen<VirtualMachine> {
    let mut vm = json!({ "spec": spec });
    if !status.is_null() {
        vm["status"] = status;
    }
    vm["spec"]["template"] = json!({});
    seen(vm)
}

fn strategy(name: &str) -> Seen<VirtualMachine> {
    vm(json!({ "runStrategy": name }), json!({ "printableStatus": "Stopped" }))
}

fn vmi(phase: &str, grace: Value) -> Seen<VirtualMachineInstance> {
    let mut vmi = json!({ "metadata": { "uid": "7" }, "spec": { "domain": { "devices": {} } }, "status": { "phase": phase } });
    if !grace.is_null() {
        vmi["spec"]["terminationGracePeriodSeconds"] = grace;
    }
    seen(vmi)
}

/// The steps of a plan in short: targets with operations, or the code and the words of a refusal.
fn short(plan: Result<Steps, Failure>) -> String {
    match plan {
        Err(failure) => {
            let words = failure.message.rsplit("\": ").next().unwrap_or_default().to_owned();
            format!("{} {words}", failure.code)
        }
        Ok(steps) => {
            let change = |change: &Change| {
                let lines = change.operations.iter().map(|it| {
                    format!("{} {} {}", it["op"].as_str().unwrap(), it["path"].as_str().unwrap(), it["value"])
                });
                format!("{:?}: {}", change.target, lines.collect::<Vec<_>>().join("; "))
            };
            steps.changes.iter().map(change).collect::<Vec<_>>().join(" | ")
        }
    }
}

const ASK: &str = "MachineStatus: test /status/stateChangeRequests null; add /status/stateChangeRequests ";

#[test]
fn starts() {
    let plain = StartOptions::default();
    let paused = StartOptions { paused: true, ..StartOptions::default() };
    let start_now = r#"[{"action":"Start"}]"#;
    let start_paused = r#"[{"action":"Start","data":{"paused":"true"}}]"#;
    let again = r#"[{"action":"Stop","uid":"7"},{"action":"Start"}]"#;
    let set = |from: &str, to: &str| {
        format!("Machine: test /spec/runStrategy \"{from}\"; replace /spec/runStrategy \"{to}\"")
    };
    let running = "409 VM is already running";
    let cases = [
        ("Halted", None, &plain, set("Halted", "Always")),
        ("Halted", None, &paused, format!("{ASK}{start_paused}")),
        ("Halted", Some("Succeeded"), &plain, set("Halted", "Always")),
        ("Halted", Some("Running"), &plain, running.into()),
        ("Manual", None, &plain, format!("{ASK}{start_now}")),
        ("Manual", None, &paused, format!("{ASK}{start_paused}")),
        ("Manual", Some("Failed"), &plain, format!("{ASK}{again}")),
        ("Manual", Some("Unknown"), &plain, format!("{ASK}{start_now}")),
        ("Manual", Some("Scheduling"), &plain, running.into()),
        ("RerunOnFailure", None, &plain, format!("{ASK}{start_now}")),
        ("RerunOnFailure", Some("Succeeded"), &plain, format!("{ASK}{again}")),
        (
            "RerunOnFailure",
            Some("Failed"),
            &plain,
            "409 RerunOnFailure does not support starting VM from failed state".into(),
        ),
        ("Always", None, &plain, "409 Always does not support manual start requests".into()),
        ("Once", None, &plain, "409 Once does not support manual start requests".into()),
        ("WaitAsReceiver", None, &plain, "409 WaitAsReceiver does not support manual start requests".into()),
    ];
    for (name, phase, options, expected) in cases {
        let vmi = phase.map(|phase| vmi(phase, Value::Null));
        let plan = start(&strategy(name), vmi.as_deref(), options);
        assert_eq!(short(plan), expected, "{name} {phase:?}");
    }
}

#[test]
fn what_stands_in_the_way_of_a_start() {
    let plain = StartOptions::default();
    let old = vm(json!({ "running": false }), Value::Null);
    assert_eq!(
        short(start(&old, None, &plain)),
        "Machine: test /spec/running false; replace /spec/running true"
    );
    let neither = vm(json!({}), Value::Null);
    assert_eq!(
        short(start(&neither, None, &plain)),
        "Machine: test /spec/running null; add /spec/running true"
    );
    let both = vm(json!({ "running": false, "runStrategy": "Halted" }), Value::Null);
    assert_eq!(start(&both, None, &plain).unwrap_err().code, 500);
    let new = vm(json!({ "runStrategy": "Manual" }), Value::Null);
    let expected = r#"MachineStatus: add /status {"stateChangeRequests":[{"action":"Start"}]}"#;
    assert_eq!(short(start(&new, None, &plain)), expected);
    let busy = json!({ "stateChangeRequests": [{ "action": "Start" }] });
    let busy = start(&vm(json!({ "runStrategy": "Manual" }), busy), None, &plain).unwrap_err();
    assert_eq!(
        busy.message,
        "Internal error occurred: unable to complete request: stop/start already underway"
    );
    let failed = json!({ "startFailure": { "consecutiveFailCount": 3 } });
    let failed = short(start(&vm(json!({ "runStrategy": "Manual" }), failed), None, &plain));
    assert!(failed.ends_with("remove /status/startFailure null"), "{failed}");
    let broken = json!({ "conditions": [{ "type": "ManualRecoveryRequired", "status": "True" }] });
    assert_eq!(start(&vm(json!({ "runStrategy": "Halted" }), broken), None, &plain).unwrap_err().code, 409);
}

#[test]
fn stops() {
    let plain = StopOptions::default();
    let soon = |seconds| StopOptions { grace_period: Some(seconds), ..StopOptions::default() };
    let ask = format!("{ASK}[{{\"action\":\"Stop\",\"uid\":\"7\"}}]");
    let set = |from: &str| {
        format!("Machine: test /spec/runStrategy \"{from}\"; replace /spec/runStrategy \"Halted\"")
    };
    let grace = "Instance: test /spec/terminationGracePeriodSeconds 30; replace /spec/terminationGracePeriodSeconds 5";
    let first_grace =
        "Instance: test /spec/terminationGracePeriodSeconds null; add /spec/terminationGracePeriodSeconds 5";
    let off = "409 VM is not running".to_owned();
    let longer = "409 Halted only supports manual stop requests with a shorter graceperiod".to_owned();
    let (thirty, unset) = (json!(30), Value::Null);
    let cases = [
        ("Always", None, &unset, plain.clone(), set("Always")),
        ("Always", Some("Running"), &thirty, plain.clone(), set("Always")),
        ("Always", Some("Running"), &thirty, soon(5), format!("{grace} | {}", set("Always"))),
        ("Always", Some("Failed"), &thirty, soon(5), set("Always")),
        ("Once", Some("Running"), &unset, plain.clone(), set("Once")),
        ("Manual", Some("Running"), &unset, plain.clone(), ask.clone()),
        ("Manual", Some("Running"), &unset, soon(5), format!("{first_grace} | {ask}")),
        ("Manual", Some("Succeeded"), &unset, plain.clone(), off.clone()),
        ("Manual", None, &unset, plain.clone(), off.clone()),
        ("RerunOnFailure", Some("Running"), &unset, plain.clone(), ask.clone()),
        ("Halted", None, &unset, plain.clone(), off.clone()),
        ("Halted", Some("Running"), &thirty, plain.clone(), longer.clone()),
        ("Halted", Some("Running"), &thirty, soon(30), longer),
        ("Halted", Some("Running"), &thirty, soon(5), format!("{grace} | {ask}")),
        (
            "WaitAsReceiver",
            None,
            &unset,
            plain,
            "409 WaitAsReceiver does not support manual stop requests".into(),
        ),
    ];
    for (name, phase, grace, options, expected) in cases {
        let vmi = phase.map(|phase| vmi(phase, grace.clone()));
        assert_eq!(
            short(stop(&strategy(name), vmi.as_ref(), &options)),
            expected,
            "{name} {phase:?} {options:?}"
        );
    }
    assert_eq!(stop(&strategy("Always"), None, &soon(-1)).unwrap_err().code, 400);
}

#[test]
fn a_stop_takes_the_place_of_other_requests() {
    let busy = json!({ "stateChangeRequests": [{ "action": "Start" }] });
    let plan = stop(
        &vm(json!({ "runStrategy": "Manual" }), busy),
        Some(&vmi("Running", Value::Null)),
        &StopOptions::default(),
    );
    let expected = "MachineStatus: test /status/stateChangeRequests [{\"action\":\"Start\"}]; replace \
        /status/stateChangeRequests [{\"action\":\"Stop\",\"uid\":\"7\"}]";
    assert_eq!(short(plan), expected);
}

#[test]
fn restarts() {
    let plain = RestartOptions::default();
    let forced =
        |seconds| RestartOptions { grace_period_seconds: Some(seconds), ..RestartOptions::default() };
    let ask = format!("{ASK}[{{\"action\":\"Stop\",\"uid\":\"7\"}},{{\"action\":\"Start\"}}]");
    let grace =
        "Instance: test /spec/terminationGracePeriodSeconds null; add /spec/terminationGracePeriodSeconds 1";
    for name in ["Always", "Manual", "RerunOnFailure"] {
        let running = vmi("Running", Value::Null);
        assert_eq!(short(restart(&strategy(name), Some(&running), &plain)), ask, "{name}");
        assert_eq!(short(restart(&strategy(name), Some(&running), &forced(0))), format!("{grace} | {ask}"));
        assert_eq!(short(restart(&strategy(name), None, &plain)), "409 VM is not running: Halted");
    }
    for name in ["Halted", "Once", "WaitAsReceiver"] {
        let expected = format!("409 RunStategy {name} does not support manual restart requests");
        assert_eq!(short(restart(&strategy(name), None, &plain)), expected);
    }
    for seconds in [-1, 1, i64::MAX] {
        assert_eq!(restart(&strategy("Always"), None, &forced(seconds)).unwrap_err().code, 400);
    }
}

#[test]
fn a_restart_that_fails_leaves_the_time_to_shut_down_as_it_was() {
    let forced = RestartOptions { grace_period_seconds: Some(0), ..RestartOptions::default() };
    for (before, op) in [(json!(30), "replace"), (Value::Null, "remove")] {
        let plan = restart(&strategy("Always"), Some(&vmi("Running", before.clone())), &forced).unwrap();
        let undo = plan.undo.unwrap().operations;
        assert_eq!((&undo[0]["value"], undo[1]["op"].as_str()), (&json!(1), Some(op)));
        assert_eq!(undo[1].get("value").cloned().unwrap_or_default(), before);
    }
}
