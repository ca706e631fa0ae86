//! Cases of inference.

use serde_json::{Value, json};

use super::*;
use crate::KnownObjects;
use crate::testing::{assert_fields, read, shared};

fn labels(name: &str) -> Value {
    json!({
        "instancetype.kubevirt.io/default-instancetype": name,
        "instancetype.kubevirt.io/default-instancetype-kind": "VirtualMachineInstancetype",
        "instancetype.kubevirt.io/default-preference": format!("{name}-preference"),
    })
}

fn object(kind: &str, namespace: &str, name: &str, labels: Value, spec: Value) -> Value {
    json!({
        "kind": kind,
        "metadata": { "namespace": namespace, "name": name, "labels": labels },
        "spec": spec,
    })
}

fn objects() -> KnownObjects {
    let claim = |name: &str| json!({ "source": { "pvc": { "namespace": "images", "name": name } } });
    let snapshot = |name: &str| json!({ "source": { "snapshot": { "namespace": "images", "name": name } } });
    let to = |kind: &str, namespace: Value, name: &str| json!({ "sourceRef": { "kind": kind, "namespace": namespace, "name": name } });
    let none = || json!({});
    KnownObjects {
        claims: vec![
            shared(object("PersistentVolumeClaim", "default", "disk", labels("from-claim"), none())),
            shared(object("PersistentVolumeClaim", "default", "bare", none(), none())),
            shared(object("PersistentVolumeClaim", "default", "collected", labels("from-collected"), none())),
            shared(object("PersistentVolumeClaim", "images", "golden", labels("from-golden"), none())),
        ],
        others: vec![
            shared(object("VolumeSnapshot", "images", "frozen", labels("from-snapshot"), none())),
            shared(object("VolumeSnapshot", "images", "plain", none(), none())),
            shared(object("DataSource", "images", "labelled", labels("from-source"), none())),
            shared(object("DataSource", "images", "to-claim", none(), claim("golden"))),
            shared(object("DataSource", "default", "to-snapshot", none(), snapshot("frozen"))),
            shared(object("DataSource", "images", "to-nothing", none(), none())),
            shared(object("DataVolume", "default", "labelled", labels("from-volume"), none())),
            shared(object("DataVolume", "default", "cloned", none(), claim("golden"))),
            shared(object("DataVolume", "default", "restored", none(), snapshot("frozen"))),
            shared(object(
                "DataVolume",
                "default",
                "referring",
                none(),
                to("DataSource", json!("images"), "to-claim"),
            )),
            shared(object(
                "DataVolume",
                "default",
                "uploaded",
                none(),
                json!({ "source": { "upload": {} } }),
            )),
            shared(object("DataVolume", "default", "odd", none(), json!("text"))),
        ],
        ..KnownObjects::default()
    }
}

fn vm(volume: Value, template: Value, policy: Value) -> VirtualMachine {
    let mut volume = volume;
    volume["name"] = json!("root");
    let matcher = json!({ "inferFromVolume": "root", "inferFromVolumeFailurePolicy": policy });
    read(json!({
        "metadata": { "name": "vm", "namespace": "default" },
        "spec": {
            "instancetype": matcher,
            "preference": matcher,
            "dataVolumeTemplates": [{ "metadata": { "name": "template" }, "spec": template }],
            "template": { "spec": {
                "domain": { "devices": {}, "memory": { "guest": "1Gi" } },
                "volumes": [{ "name": "other", "dataVolume": { "name": "labelled" } }, volume],
            } },
        },
    }))
}

fn volume(name: &str) -> Value {
    json!({ "dataVolume": { "name": name } })
}

#[test]
fn labels_are_found_on_whatever_the_volume_is_made_from() {
    let template = || volume("template");
    let cases = [
        ("claim", json!({ "persistentVolumeClaim": { "claimName": "disk" } }), json!({}), "from-claim"),
        ("DataVolume", volume("labelled"), json!({}), "from-volume"),
        ("its claim", volume("collected"), json!({}), "from-collected"),
        ("cloned claim", volume("cloned"), json!({}), "from-golden"),
        ("restored snapshot", volume("restored"), json!({}), "from-snapshot"),
        ("referred claim", volume("referring"), json!({}), "from-golden"),
        (
            "template of a claim",
            template(),
            json!({ "source": { "pvc": { "namespace": "images", "name": "golden" } } }),
            "from-golden",
        ),
        (
            "template of a snapshot",
            template(),
            json!({ "source": { "snapshot": { "namespace": "images", "name": "frozen" } } }),
            "from-snapshot",
        ),
        (
            "template of a labelled source",
            template(),
            json!({ "sourceRef": { "kind": "DataSource", "namespace": "images", "name": "labelled" } }),
            "from-source",
        ),
        (
            "template of a source with a claim",
            template(),
            json!({ "sourceRef": { "kind": "DataSource", "namespace": "images", "name": "to-claim" } }),
            "from-golden",
        ),
        (
            "template of a source in the own namespace",
            template(),
            json!({ "sourceRef": { "kind": "DataSource", "name": "to-snapshot" } }),
            "from-snapshot",
        ),
    ];
    for (name, volume, template, expected) in cases {
        let mut vm = vm(volume, template, Value::Null);
        assert_fields(name, &infer(&objects(), &mut vm, Role::Instancetype), &[]);
        assert_fields(name, &infer(&objects(), &mut vm, Role::Preference), &[]);
        let instancetype = json!({ "name": expected, "kind": "VirtualMachineInstancetype" });
        assert_eq!(json!(vm.spec.instancetype), instancetype, "{name}");
        assert_eq!(json!(vm.spec.preference), json!({ "name": format!("{expected}-preference") }), "{name}");
        assert!(vm.spec.template.spec.unwrap().domain.memory.is_some(), "{name}");
    }
}

#[test]
fn a_volume_that_says_nothing_is_refused_unless_that_is_to_be_ignored() {
    let template = || volume("template");
    let cases = [
        (
            "claim without labels",
            json!({ "persistentVolumeClaim": { "claimName": "bare" } }),
            json!({}),
            true,
        ),
        ("unsuited volume", json!({ "emptyDisk": { "capacity": "1Gi" } }), json!({}), true),
        ("upload", volume("uploaded"), json!({}), true),
        ("unreadable", volume("odd"), json!({}), true),
        ("http", template(), json!({ "source": { "http": { "url": "http://x" } } }), true),
        (
            "snapshot without labels",
            template(),
            json!({ "source": { "snapshot": { "namespace": "images", "name": "plain" } } }),
            true,
        ),
        ("other kind", template(), json!({ "sourceRef": { "kind": "Image", "name": "x" } }), true),
        (
            "source of nothing",
            template(),
            json!({ "sourceRef": { "kind": "DataSource", "namespace": "images", "name": "to-nothing" } }),
            true,
        ),
        ("no such claim", json!({ "persistentVolumeClaim": { "claimName": "gone" } }), json!({}), false),
        ("no such DataVolume", volume("gone"), json!({}), false),
        (
            "no such snapshot",
            template(),
            json!({ "source": { "snapshot": { "namespace": "", "name": "frozen" } } }),
            false,
        ),
        (
            "no such source",
            template(),
            json!({ "sourceRef": { "kind": "DataSource", "name": "labelled" } }),
            false,
        ),
    ];
    for (name, volume, template, can_be_ignored) in cases {
        for (policy, refused) in
            [(Value::Null, true), (json!("Reject"), true), (json!("Ignore"), !can_be_ignored)]
        {
            let mut vm = vm(volume.clone(), template.clone(), policy);
            for role in Role::ALL {
                let field = format!("{}.inferFromVolume", role.field());
                let expected = if refused { vec![field.as_str()] } else { Vec::new() };
                assert_fields(name, &infer(&objects(), &mut vm, role), &expected);
                assert_eq!(role.matcher(&vm).is_some(), refused, "{name}");
            }
        }
    }
}

#[test]
fn a_missing_volume_is_never_ignored() {
    let mut vm = vm(volume("labelled"), json!({}), json!("Ignore"));
    vm.spec.template.spec = None;
    assert_fields(
        "no volumes",
        &infer(&objects(), &mut vm, Role::Instancetype),
        &["spec.instancetype.inferFromVolume"],
    );
}

#[test]
fn memory_meant_for_a_failure_gives_way_to_the_instance_type() {
    let mut vm = vm(volume("labelled"), json!({}), json!("Ignore"));
    infer(&objects(), &mut vm, Role::Preference);
    assert!(vm.spec.template.spec.as_ref().unwrap().domain.memory.is_some());
    infer(&objects(), &mut vm, Role::Instancetype);
    assert!(vm.spec.template.spec.unwrap().domain.memory.is_none());
}

#[test]
fn a_reference_by_name_is_left_alone() {
    let mut vm = vm(volume("labelled"), json!({}), Value::Null);
    vm.spec.instancetype = read(json!({ "name": "mine" }));
    vm.spec.preference = None;
    for role in Role::ALL {
        assert_fields("named", &infer(&objects(), &mut vm, role), &[]);
    }
    assert_eq!(json!(vm.spec.instancetype), json!({ "name": "mine" }));
}
