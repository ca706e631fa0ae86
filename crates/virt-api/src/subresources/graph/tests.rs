use super::*;

fn vm() -> VirtualMachine {
    serde_json::from_value(json!({
        "metadata": { "name": "vm", "namespace": "ns" },
        "spec": {
            "instancetype": { "name": "small", "kind": "VirtualMachineInstancetype" },
            "preference": { "name": "linux", "revisionName": "copy" },
            "template": { "spec": {
                "domain": { "devices": { "tpm": { "persistent": true } } },
                "accessCredentials": [{ "sshPublicKey": {
                    "source": { "secret": { "secretName": "keys" } }, "propagationMethod": { "noCloud": {} },
                } }],
                "volumes": [
                    { "name": "a", "dataVolume": { "name": "disk" } },
                    { "name": "b", "persistentVolumeClaim": { "claimName": "claim" } },
                    { "name": "c", "configMap": { "name": "map" } },
                    { "name": "d", "secret": { "secretName": "secret" } },
                    { "name": "e", "serviceAccount": { "serviceAccountName": "account" } },
                    { "name": "f", "cloudInitNoCloud": {
                        "secretRef": { "name": "user" }, "networkDataSecretRef": { "name": "network" },
                    } },
                    { "name": "g", "containerDisk": { "image": "i" } },
                ],
                "networks": [
                    { "name": "pod", "pod": {} },
                    { "name": "x", "multus": { "networkName": "other/nad" } },
                ],
            } },
        },
        "status": { "created": true },
    }))
    .unwrap()
}

fn facts() -> Facts {
    let pod = json!({ "metadata": { "name": "launcher", "annotations": { "kubevirt.io/domain": "vm" } } });
    let other = json!({ "metadata": { "name": "other", "annotations": { "kubevirt.io/domain": "vm2" } } });
    let claim = |name: &str, time: &str, going: bool| {
        let mut claim = json!({ "metadata": { "name": name, "creationTimestamp": time } });
        if going {
            claim["metadata"]["deletionTimestamp"] = time.into();
        }
        serde_json::from_value(claim).unwrap()
    };
    Facts {
        pods: [other, pod].map(|pod| serde_json::from_value(pod).unwrap()).into(),
        state_claims: vec![
            claim("new", "2026-01-02T00:00:00Z", false),
            claim("old", "2026-01-01T00:00:00Z", false),
            claim("gone", "2026-01-03T00:00:00Z", true),
        ],
    }
}

/// The nodes in short: kind, namespace, name and what is below.
fn short(node: &Value) -> String {
    let reference = &node["objectReference"];
    let text = |name: &str| reference[name].as_str().unwrap();
    let children: Vec<String> = node["children"].as_array().into_iter().flatten().map(short).collect();
    let below = if children.is_empty() { String::new() } else { format!("[{}]", children.join(" ")) };
    let optional = if node["optional"] == true { "?" } else { "" };
    format!("{}:{}/{}{optional}{below}", text("kind"), text("namespace"), text("name"))
}

#[test]
fn a_machine_and_all_that_it_needs() {
    let graph = of_machine(&vm(), &facts(), &ObjectGraphOptions::default()).unwrap();
    let expected = "VirtualMachine:ns/vm[VirtualMachineInstance:ns/vm[Pod:ns/launcher] \
        VirtualMachineInstancetype:ns/small? VirtualMachineClusterPreference:/linux? ControllerRevision:ns/copy \
        Secret:ns/keys DataVolume:ns/disk[PersistentVolumeClaim:ns/disk] PersistentVolumeClaim:ns/claim \
        ConfigMap:ns/map Secret:ns/secret ServiceAccount:ns/account Secret:ns/user Secret:ns/network \
        PersistentVolumeClaim:ns/new NetworkAttachmentDefinition:other/nad?]";
    assert_eq!(short(&graph), expected);
    assert_eq!(graph["labels"][DEPENDENCY], "compute");
}

#[test]
fn the_copy_that_holds_is_the_one_in_the_status() {
    let mut vm = vm();
    let noted = json!({ "name": "linux", "controllerRevisionRef": { "name": "noted" } });
    vm.status.as_mut().unwrap().preference_ref = serde_json::from_value(noted).unwrap();
    let graph = short(&of_machine(&vm, &Facts::default(), &ObjectGraphOptions::default()).unwrap());
    assert!(graph.contains("ControllerRevision:ns/noted") && !graph.contains("copy"), "{graph}");
}

#[test]
fn an_instance_has_its_pod_and_volumes() {
    let vmi: VirtualMachineInstance = serde_json::from_value(json!({
        "metadata": { "name": "vm", "namespace": "ns" },
        "spec": { "domain": { "devices": {} }, "volumes": [
            { "name": "b", "persistentVolumeClaim": { "claimName": "claim" } },
        ] },
    }))
    .unwrap();
    let graph = of_instance(&vmi, &facts(), &ObjectGraphOptions::default()).unwrap();
    assert_eq!(short(&graph), "VirtualMachineInstance:ns/vm[Pod:ns/launcher PersistentVolumeClaim:ns/claim]");
}

#[test]
fn only_what_is_asked_for() {
    let options = |options: Value| -> ObjectGraphOptions { serde_json::from_value(options).unwrap() };
    let graph = |wanted| of_machine(&vm(), &facts(), &options(wanted)).map(|graph| short(&graph));
    assert!(!graph(json!({ "includeOptionalNodes": false })).unwrap().contains('?'));
    let storage = json!({ "labelSelector": { "matchLabels": { DEPENDENCY: "storage" } } });
    assert_eq!(
        graph(storage).unwrap(),
        "VirtualMachine:ns/vm[DataVolume:ns/disk[PersistentVolumeClaim:ns/disk] PersistentVolumeClaim:ns/claim \
         PersistentVolumeClaim:ns/new]"
    );
    let term = |operator: &str, values: &[&str]| {
        let term = json!({ "key": DEPENDENCY, "operator": operator, "values": values });
        json!({ "labelSelector": { "matchExpressions": [term] } })
    };
    assert!(graph(term("In", &["network"])).unwrap().ends_with("[NetworkAttachmentDefinition:other/nad?]"));
    assert!(!graph(term("NotIn", &["network"])).unwrap().contains("nad"));
    assert_eq!(graph(term("DoesNotExist", &[])).unwrap(), "VirtualMachine:ns/vm");
    for (operator, values) in [("Maybe", &["a"][..]), ("In", &[]), ("Exists", &["a"])] {
        assert_eq!(graph(term(operator, values)).unwrap_err().code, 400, "{operator}");
    }
}
