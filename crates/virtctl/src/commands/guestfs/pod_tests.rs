use super::*;

fn arguments() -> Arguments {
    Arguments { pvc: "c".into(), pull_policy: "Always".into(), kvm: true, ..Default::default() }
}

fn made(arguments: &Arguments, is_block: bool, vm: Option<&VirtualMachine>) -> Value {
    let identity = Identity::of(arguments).unwrap();
    serde_json::to_value(pod(arguments, "img", &identity, is_block, vm)).unwrap()
}

#[test]
fn files_are_a_directory_and_blocks_a_device() {
    let files = made(&arguments(), false, None);
    assert_eq!(files["metadata"]["name"], "libguestfs-tools-c");
    let container = &files["spec"]["containers"][0];
    assert_eq!(container["volumeMounts"][2], json!({ "name": "volume", "mountPath": "/disk" }));
    assert_eq!((&container["workingDir"], &container["image"]), (&json!("/disk"), &json!("img")));
    assert_eq!(container["resources"]["limits"], json!({ "devices.kubevirt.io/kvm": "1" }));
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(files["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "c");
    let block = made(&Arguments { kvm: false, ..arguments() }, true, None);
    let container = &block["spec"]["containers"][0];
    assert_eq!(container["volumeDevices"], json!([{ "name": "volume", "devicePath": "/dev/vda" }]));
    assert_eq!(container.get("resources"), None);
    assert_eq!(container["volumeMounts"].as_array().unwrap().len(), 2);
}

#[test]
fn who_it_runs_as_can_be_said() {
    let text = |text: &str| Some(text.to_owned());
    let security = |arguments: &Arguments| made(arguments, false, None)["spec"]["securityContext"].clone();
    let plain = json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } });
    assert_eq!(security(&arguments()), plain);
    let root = security(&Arguments { root: true, ..arguments() });
    assert_eq!(
        (&root["runAsUser"], &root["runAsGroup"], &root["fsGroup"], &root["runAsNonRoot"]),
        (&json!(0), &json!(0), &json!(0), &json!(false))
    );
    let some = security(&Arguments { uid: text("1"), gid: text("2"), fs_group: text("3"), ..arguments() });
    assert_eq!(
        (&some["runAsUser"], &some["runAsGroup"], &some["fsGroup"]),
        (&json!(1), &json!(2), &json!(3))
    );
    for (arguments, error) in [
        (Arguments { root: true, uid: text("1"), ..arguments() }, Error::Root("uid")),
        (Arguments { root: true, gid: text("1"), ..arguments() }, Error::Root("gid")),
        (Arguments { root: true, fs_group: text("1"), ..arguments() }, Error::Root("fsGroup")),
        (Arguments { gid: text("1"), ..arguments() }, Error::Alone),
        (Arguments { uid: text("me"), ..arguments() }, Error::Number("uid", "me".into())),
    ] {
        assert_eq!(Identity::of(&arguments), Err(error));
    }
}

#[test]
fn it_runs_where_the_machine_could() {
    let vm: VirtualMachine = serde_json::from_value(json!({
        "metadata": { "name": "vm" },
        "spec": { "template": { "metadata": { "labels": { "l": "v" } }, "spec": {
            "domain": { "devices": {} }, "nodeSelector": { "zone": "a" },
            "tolerations": [{ "key": "t", "operator": "Exists" }],
            "affinity": { "nodeAffinity": {} },
        } } },
    }))
    .unwrap();
    let placed = made(&arguments(), false, Some(&vm));
    assert_eq!(placed["metadata"]["labels"], json!({ "l": "v" }));
    assert_eq!(placed["spec"]["nodeSelector"], json!({ "zone": "a" }));
    assert_eq!(placed["spec"]["tolerations"][0]["key"], "t");
    assert!(placed["spec"]["affinity"]["nodeAffinity"].is_object());
}

#[test]
fn a_claim_is_in_use_while_a_pod_runs() {
    let user = |phase: &str| -> Pod {
        serde_json::from_value(json!({
            "spec": { "containers": [], "volumes": [{ "name": "x", "persistentVolumeClaim": { "claimName": "c" } }] },
            "status": { "phase": phase },
        }))
        .unwrap()
    };
    assert!(uses(&user("Running"), "c") && uses(&user("Pending"), "c"));
    assert!(!uses(&user("Succeeded"), "c") && !uses(&user("Running"), "other"));
}

#[test]
fn what_a_pod_waits_for_is_told() {
    let of = |status: Value| {
        state(&serde_json::from_value(json!({ "status": status })).unwrap())
            .map_err(|error| error.to_string())
    };
    assert_eq!(of(json!({ "phase": "Running" })), Ok(None));
    assert_eq!(of(json!({})), Ok(Some("Waiting for the pod to start".into())));
    let waiting = json!({ "containerStatuses": [{ "name": "x", "image": "", "imageID": "", "ready": false,
        "restartCount": 0, "state": { "waiting": { "reason": "ErrImagePull", "message": "no such image" } } }] });
    assert!(of(waiting).unwrap().unwrap().contains("reason: ErrImagePull, message: no such image"));
    let unscheduled =
        json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "message": "no nodes" }] });
    assert_eq!(of(unscheduled), Ok(Some("Waiting for a node: no nodes".into())));
    assert_eq!(of(json!({ "phase": "Failed" })), Err("Pod is not in running state but got Failed".into()));
}
