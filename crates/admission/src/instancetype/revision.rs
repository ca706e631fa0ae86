//! The ControllerRevisions that keep instance types and preferences as a VM first saw them.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kubevirt_api::names::{groups, labels};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::{ControllerRevisionRef, InstancetypeStatusRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::find::problem;
use super::reference::Role;
use crate::{Problem, Reason};

/// The version of the API that kept objects have.
const VERSION: &str = "v1beta1";

/// The metadata that a kept object does without.
const LEFT_OUT: [&str; 5] = ["labels", "annotations", "finalizers", "ownerReferences", "managedFields"];

/// What the revision of an object for a VM is called.
pub fn revision_name(vm: &str, object: &str, version: &str, uid: &str, generation: i64) -> String {
    format!("{vm}-{object}-{version}-{uid}-{generation}")
}

/// The revision that keeps an instance type or a preference, any of the four kinds, for a VM.
pub fn keep(vm: &VirtualMachine, object: &impl Serialize) -> serde_json::Result<ControllerRevision> {
    Ok(keep_value(vm, serde_json::to_value(object)?))
}

/// The revision that takes the place of an older one, with everything that a revision has today.
pub fn renew(
    vm: &VirtualMachine,
    role: Role,
    old: &ControllerRevision,
) -> Result<ControllerRevision, Problem> {
    kept_spec(role, old)?;
    Ok(keep_value(vm, old.data.as_ref().map(|data| data.0.clone()).unwrap_or_default()))
}

fn keep_value(vm: &VirtualMachine, mut object: Value) -> ControllerRevision {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !LEFT_OUT.contains(&key.as_str()));
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]).rsplit('/').next().unwrap_or_default().to_owned();
    let (name, uid) = (text(&object["metadata"]["name"]), text(&object["metadata"]["uid"]));
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    let vm_name = vm.metadata.name.as_deref().unwrap_or_default();
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(revision_name(vm_name, &name, &version, &uid, generation)),
            namespace: vm.metadata.namespace.clone(),
            owner_references: Some(vec![owner(vm)]),
            labels: Some(BTreeMap::from([
                (labels::REVISION_OBJECT_GENERATION.to_owned(), generation.to_string()),
                (labels::REVISION_OBJECT_KIND.to_owned(), text(&object["kind"])),
                (labels::REVISION_OBJECT_NAME.to_owned(), name),
                (labels::REVISION_OBJECT_UID.to_owned(), uid),
                (labels::REVISION_OBJECT_VERSION.to_owned(), version),
            ])),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(object)),
        revision: 0,
    }
}

fn owner(vm: &VirtualMachine) -> OwnerReference {
    OwnerReference {
        api_version: groups::KUBEVIRT_V1.to_owned(),
        kind: "VirtualMachine".to_owned(),
        name: vm.metadata.name.clone().unwrap_or_default(),
        uid: vm.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whether two revisions keep the same specification; metadata does not count.
pub fn keep_the_same(one: &ControllerRevision, other: &ControllerRevision) -> bool {
    let spec = |revision: &ControllerRevision| revision.data.as_ref().map(|data| data.0["spec"].clone());
    spec(one) == spec(other)
}

/// Whether a revision is marked with the newest version of the API.
pub fn is_latest(revision: &ControllerRevision) -> bool {
    label(revision, labels::REVISION_OBJECT_VERSION) == Some(VERSION)
}

/// Whether a revision keeps an object of this name.
pub(super) fn is_of(revision: &ControllerRevision, name: &str) -> bool {
    label(revision, labels::REVISION_OBJECT_NAME) == Some(name)
}

fn label<'a>(revision: &'a ControllerRevision, name: &str) -> Option<&'a str> {
    revision.metadata.labels.as_ref()?.get(name).map(String::as_str)
}

/// The revision that a VM's status names.
pub fn noted(status: Option<&InstancetypeStatusRef>) -> Option<&str> {
    let name = status?.controller_revision_ref.as_ref()?.name.as_deref();
    name.filter(|name| !name.is_empty())
}

/// What the status of a VM should say of one of its references; nothing where the VM has no such reference.
///
/// Without a ControllerRevision in it one is still to be kept.
pub fn status_to_be(role: Role, vm: &VirtualMachine) -> Option<InstancetypeStatusRef> {
    let matcher = role.matcher(vm)?;
    let mut status = role.status(vm).cloned().unwrap_or_default();
    let mut changed = false;
    for (field, wanted) in [
        (&mut status.name, matcher.name),
        (&mut status.kind, matcher.kind),
        (&mut status.infer_from_volume, matcher.infer_from_volume),
    ] {
        if !wanted.is_empty() && field.as_deref() != Some(wanted) {
            *field = Some(wanted.to_owned());
            changed = true;
        }
    }
    if changed {
        status.controller_revision_ref = None;
    }
    if let Some(policy) = matcher.failure_policy {
        status.infer_from_volume_failure_policy = Some(policy.clone());
    }
    if !matcher.revision_name.is_empty() {
        status.controller_revision_ref =
            Some(ControllerRevisionRef { name: Some(matcher.revision_name.to_owned()) });
    }
    Some(status)
}

/// The specification that a revision keeps.
pub(super) fn read<T: DeserializeOwned>(
    role: Role,
    revision: &ControllerRevision,
) -> Result<Box<T>, Problem> {
    let spec = kept_spec(role, revision)?;
    serde_json::from_value(spec.clone()).map(Box::new).map_err(|error| {
        let name = revision.metadata.name.as_deref().unwrap_or_default();
        let message = format!("the ControllerRevision {name:?} holds no usable {}: {error}", role.what());
        problem(role, Reason::Invalid, message)
    })
}

fn kept_spec(role: Role, revision: &ControllerRevision) -> Result<&Value, Problem> {
    let object = revision.data.as_ref().map(|data| &data.0);
    let kept = object.filter(|object| {
        let kind = object["kind"].as_str().unwrap_or_default();
        object["apiVersion"] == json!(format!("{}/{VERSION}", groups::INSTANCETYPE))
            && role.kinds().contains(&kind)
    });
    kept.map(|object| &object["spec"]).ok_or_else(|| {
        let name = revision.metadata.name.as_deref().unwrap_or_default();
        let holds = |field: &str| object.and_then(|object| object[field].as_str()).unwrap_or_default();
        let message = format!(
            "the ControllerRevision {name:?} should hold a {} of {}/{VERSION}, not {:?} of {:?}",
            role.what(),
            groups::INSTANCETYPE,
            holds("kind"),
            holds("apiVersion"),
        );
        problem(role, Reason::Invalid, message)
    })
}

#[cfg(test)]
mod tests {
    use kubevirt_api::instancetype::VirtualMachineInstancetype;

    use super::*;
    use crate::testing::read as object;

    fn vm(spec: Value, status: Value) -> VirtualMachine {
        let mut spec = spec;
        spec["template"] = json!({});
        let metadata = json!({ "name": "web", "namespace": "shop", "uid": "1-2" });
        object(json!({ "metadata": metadata, "spec": spec, "status": status }))
    }

    fn small() -> VirtualMachineInstancetype {
        object(json!({
            "metadata": {
                "name": "small", "namespace": "shop", "uid": "aa-bb", "generation": 3,
                "labels": { "a": "b" }, "annotations": { "c": "d" }, "finalizers": ["e"],
            },
            "spec": { "cpu": { "guest": 2 }, "memory": { "guest": "1Gi" } },
        }))
    }

    #[test]
    fn a_revision_names_the_vm_and_exactly_what_it_keeps() {
        let kept = keep(&vm(json!({}), Value::Null), &small()).unwrap();
        let kept = serde_json::to_value(&kept).unwrap();
        assert_eq!(kept["metadata"]["name"], "web-small-v1beta1-aa-bb-3");
        assert_eq!(kept["metadata"]["namespace"], "shop");
        assert_eq!(
            kept["metadata"]["labels"],
            json!({
                "instancetype.kubevirt.io/object-generation": "3",
                "instancetype.kubevirt.io/object-kind": "VirtualMachineInstancetype",
                "instancetype.kubevirt.io/object-name": "small",
                "instancetype.kubevirt.io/object-uid": "aa-bb",
                "instancetype.kubevirt.io/object-version": "v1beta1",
            })
        );
        assert_eq!(kept["metadata"]["ownerReferences"][0]["uid"], "1-2");
        assert_eq!(kept["data"]["kind"], "VirtualMachineInstancetype");
        assert_eq!(kept["data"]["metadata"]["uid"], "aa-bb");
        for left_out in LEFT_OUT {
            assert!(kept["data"]["metadata"].get(left_out).is_none(), "{left_out}");
        }
    }

    #[test]
    fn a_kept_object_is_read_back_and_can_be_renewed() {
        let vm = vm(json!({}), Value::Null);
        let mut kept = keep(&vm, &small()).unwrap();
        assert!(is_latest(&kept) && is_of(&kept, "small") && !is_of(&kept, "large"));
        assert_eq!(*read::<Value>(Role::Instancetype, &kept).unwrap(), json!(small().spec));
        assert!(read::<Value>(Role::Preference, &kept).is_err());
        kept.metadata.labels = None;
        assert!(!is_latest(&kept));
        let renewed = renew(&vm, Role::Instancetype, &kept).unwrap();
        assert!(is_latest(&renewed) && keep_the_same(&kept, &renewed));
        let mut other = small();
        other.spec.cpu.guest = 3;
        assert!(!keep_the_same(&kept, &keep(&vm, &other).unwrap()));
    }

    #[test]
    fn the_status_follows_the_reference_and_asks_for_a_new_revision_when_it_changes() {
        let noted = json!({ "name": "small", "controllerRevisionRef": { "name": "r" } });
        let cases = [
            ("new", json!({ "name": "small" }), Value::Null, json!({ "name": "small" })),
            ("same", json!({ "name": "small" }), noted.clone(), noted.clone()),
            ("name", json!({ "name": "big" }), noted.clone(), json!({ "name": "big" })),
            (
                "kind",
                json!({ "name": "small", "kind": "VirtualMachineInstancetype" }),
                noted.clone(),
                json!({ "name": "small", "kind": "VirtualMachineInstancetype" }),
            ),
            (
                "revision",
                json!({ "name": "small", "revisionName": "s" }),
                noted.clone(),
                json!({ "name": "small", "controllerRevisionRef": { "name": "s" } }),
            ),
            (
                "policy",
                json!({ "name": "small", "inferFromVolumeFailurePolicy": "Ignore" }),
                noted,
                json!({
                    "name": "small", "inferFromVolumeFailurePolicy": "Ignore",
                    "controllerRevisionRef": { "name": "r" },
                }),
            ),
        ];
        for (name, matcher, status, expected) in cases {
            let vm = vm(json!({ "instancetype": matcher }), json!({ "instancetypeRef": status }));
            assert_eq!(json!(status_to_be(Role::Instancetype, &vm).unwrap()), expected, "{name}");
            assert!(status_to_be(Role::Preference, &vm).is_none(), "{name}");
        }
    }
}
