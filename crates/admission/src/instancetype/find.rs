//! Finds what a VM refers to: the copy that was kept for it, or else the object itself.

use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use kubevirt_api::instancetype::{
    VirtualMachineClusterInstancetype, VirtualMachineInstancetype, VirtualMachineInstancetypeSpec,
};
use kubevirt_api::preference::{
    VirtualMachineClusterPreference, VirtualMachinePreference, VirtualMachinePreferenceSpec,
};
use kubevirt_api::vm::VirtualMachine;

use super::reference::{Matcher, Role, Scope};
use super::revision;
use crate::{Objects, Problem, Reason};

macro_rules! found {
    ($(#[$doc:meta])* $found:ident: $namespaced:ty, $cluster:ty => $spec:ty) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub enum $found {
            /// The object in the VM's namespace.
            Namespaced(Arc<$namespaced>),
            /// The cluster's object.
            Cluster(Arc<$cluster>),
            /// A copy from a ControllerRevision.
            Kept(Box<$spec>),
        }

        impl Deref for $found {
            type Target = $spec;

            fn deref(&self) -> &$spec {
                match self {
                    Self::Namespaced(object) => &object.spec,
                    Self::Cluster(object) => &object.spec,
                    Self::Kept(spec) => spec,
                }
            }
        }
    };
}

found! {
    /// The instance type of a VM.
    FoundInstancetype: VirtualMachineInstancetype, VirtualMachineClusterInstancetype => VirtualMachineInstancetypeSpec
}

found! {
    /// The preference of a VM.
    FoundPreference: VirtualMachinePreference, VirtualMachineClusterPreference => VirtualMachinePreferenceSpec
}

/// The instance type that a VM refers to, if it refers to one.
pub fn instancetype(
    objects: &dyn Objects,
    vm: &VirtualMachine,
) -> Result<Option<FoundInstancetype>, Problem> {
    let role = Role::Instancetype;
    let Some(matcher) = role.matcher(vm) else { return Ok(None) };
    let found = match place(objects, vm, role, matcher)? {
        Place::Revision(kept) => Some(FoundInstancetype::Kept(revision::read(role, &kept)?)),
        Place::Object(Scope::Namespace) => {
            objects.instancetype(namespace(vm), matcher.name).map(FoundInstancetype::Namespaced)
        }
        Place::Object(Scope::Cluster) => {
            objects.cluster_instancetype("", matcher.name).map(FoundInstancetype::Cluster)
        }
    };
    found.map(Some).ok_or_else(|| missing(role, vm, matcher))
}

/// The preference that a VM refers to, if it refers to one.
pub fn preference(objects: &dyn Objects, vm: &VirtualMachine) -> Result<Option<FoundPreference>, Problem> {
    let role = Role::Preference;
    let Some(matcher) = role.matcher(vm) else { return Ok(None) };
    let found = match place(objects, vm, role, matcher)? {
        Place::Revision(kept) => Some(FoundPreference::Kept(revision::read(role, &kept)?)),
        Place::Object(Scope::Namespace) => {
            objects.preference(namespace(vm), matcher.name).map(FoundPreference::Namespaced)
        }
        Place::Object(Scope::Cluster) => {
            objects.cluster_preference("", matcher.name).map(FoundPreference::Cluster)
        }
    };
    found.map(Some).ok_or_else(|| missing(role, vm, matcher))
}

/// Where to look for what a VM refers to.
enum Place {
    Revision(Arc<ControllerRevision>),
    Object(Scope),
}

fn place(
    objects: &dyn Objects,
    vm: &VirtualMachine,
    role: Role,
    matcher: Matcher<'_>,
) -> Result<Place, Problem> {
    let kept = |name: &str| {
        let revision = objects.controller_revision(namespace(vm), name);
        revision.ok_or_else(|| {
            let message = format!("the ControllerRevision {name:?} with the {} does not exist", role.what());
            problem(role, Reason::NotFound, message)
        })
    };
    // The user's word counts before the status, which may still speak of an earlier reference.
    if !matcher.revision_name.is_empty() {
        return kept(matcher.revision_name).map(Place::Revision);
    }
    if let Some(name) = revision::noted(role.status(vm)) {
        let revision = kept(name)?;
        if revision::is_of(&revision, matcher.name) {
            return Ok(Place::Revision(revision));
        }
    }
    role.scope(matcher.kind).map(Place::Object).ok_or_else(|| {
        let [namespaced, cluster] = role.kinds();
        let message =
            format!("{:?} is not a kind of {}: use {namespaced} or {cluster}", matcher.kind, role.what());
        problem(role, Reason::NotSupported, message)
    })
}

/// The namespace of a VM.
pub(super) fn namespace(vm: &VirtualMachine) -> &str {
    vm.metadata.namespace.as_deref().unwrap_or_default()
}

fn missing(role: Role, vm: &VirtualMachine, matcher: Matcher<'_>) -> Problem {
    let place = match role.scope(matcher.kind) {
        Some(Scope::Namespace) => format!("in the namespace {:?}", namespace(vm)),
        _ => "in the cluster".to_owned(),
    };
    problem(role, Reason::NotFound, format!("there is no {} {:?} {place}", role.what(), matcher.name))
}

/// A problem with a reference.
pub(super) fn problem(role: Role, reason: Reason, message: String) -> Problem {
    Problem { reason, field: role.field().to_owned(), message }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::KnownObjects;
    use crate::testing::{read, shared};

    fn sized(name: &str, namespace: Option<&str>, cpus: u32) -> Value {
        json!({
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "cpu": { "guest": cpus }, "memory": { "guest": "1Gi" } },
        })
    }

    fn kept(name: &str, of: &str, data: Value) -> Value {
        json!({
            "metadata": {
                "name": name, "namespace": "default",
                "labels": { "instancetype.kubevirt.io/object-name": of },
            },
            "revision": 0,
            "data": data,
        })
    }

    fn stored(version: &str, kind: &str, spec: Value) -> Value {
        json!({ "apiVersion": format!("instancetype.kubevirt.io/{version}"), "kind": kind, "spec": spec })
    }

    fn objects() -> KnownObjects {
        let size = |cpus: u32| json!({ "cpu": { "guest": cpus }, "memory": { "guest": "1Gi" } });
        KnownObjects {
            instancetypes: vec![
                shared(sized("small", Some("default"), 1)),
                shared(sized("far", Some("other"), 9)),
            ],
            cluster_instancetypes: vec![shared(sized("small", None, 2))],
            preferences: vec![shared(json!({
                "metadata": { "name": "linux", "namespace": "default" },
                "spec": { "preferredSubdomain": "own" },
            }))],
            cluster_preferences: vec![shared(json!({
                "metadata": { "name": "linux" }, "spec": { "preferredSubdomain": "cluster" },
            }))],
            controller_revisions: vec![
                shared(kept("vm-small-1", "small", stored("v1beta1", "VirtualMachineInstancetype", size(3)))),
                shared(kept(
                    "vm-small-2",
                    "small",
                    stored("v1beta1", "VirtualMachineClusterInstancetype", size(4)),
                )),
                shared(kept("old", "small", stored("v1alpha2", "VirtualMachineInstancetype", size(5)))),
                shared(kept("broken", "small", stored("v1beta1", "VirtualMachineInstancetype", json!("x")))),
                shared(kept("empty", "small", Value::Null)),
                shared(kept(
                    "vm-linux-1",
                    "linux",
                    stored("v1beta1", "VirtualMachinePreference", json!({ "preferredSubdomain": "kept" })),
                )),
            ],
            ..KnownObjects::default()
        }
    }

    fn vm(spec: Value, status: Value) -> VirtualMachine {
        let mut spec = spec;
        spec["template"] = json!({});
        read(json!({ "metadata": { "name": "vm", "namespace": "default" }, "spec": spec, "status": status }))
    }

    #[test]
    fn an_instance_type_is_looked_for_where_the_reference_points() {
        let status = |name: &str| json!({ "instancetypeRef": { "controllerRevisionRef": { "name": name } } });
        let cases = [
            ("cluster by default", json!({ "name": "small" }), Value::Null, Ok(2)),
            (
                "cluster",
                json!({ "name": "small", "kind": "VirtualMachineClusterInstancetype" }),
                Value::Null,
                Ok(2),
            ),
            (
                "namespaced",
                json!({ "name": "small", "kind": "virtualmachineinstancetypes" }),
                Value::Null,
                Ok(1),
            ),
            ("revision", json!({ "name": "small", "revisionName": "vm-small-1" }), Value::Null, Ok(3)),
            (
                "revision over status",
                json!({ "name": "small", "revisionName": "vm-small-1" }),
                status("vm-small-2"),
                Ok(3),
            ),
            ("status", json!({ "name": "small" }), status("vm-small-2"), Ok(4)),
            ("status of another type", json!({ "name": "small" }), status("vm-linux-1"), Ok(2)),
            (
                "other namespace",
                json!({ "name": "far", "kind": "VirtualMachineInstancetype" }),
                Value::Null,
                Err(Reason::NotFound),
            ),
            ("no such type", json!({ "name": "huge" }), Value::Null, Err(Reason::NotFound)),
            (
                "no such kind",
                json!({ "name": "small", "kind": "Pod" }),
                Value::Null,
                Err(Reason::NotSupported),
            ),
            (
                "no such revision",
                json!({ "name": "small", "revisionName": "x" }),
                Value::Null,
                Err(Reason::NotFound),
            ),
            ("no such revision in status", json!({ "name": "small" }), status("x"), Err(Reason::NotFound)),
            (
                "revision of an old version",
                json!({ "name": "small", "revisionName": "old" }),
                Value::Null,
                Err(Reason::Invalid),
            ),
            (
                "unreadable revision",
                json!({ "name": "small", "revisionName": "broken" }),
                Value::Null,
                Err(Reason::Invalid),
            ),
            (
                "empty revision",
                json!({ "name": "small", "revisionName": "empty" }),
                Value::Null,
                Err(Reason::Invalid),
            ),
            (
                "revision of a preference",
                json!({ "name": "small", "revisionName": "vm-linux-1" }),
                Value::Null,
                Err(Reason::Invalid),
            ),
        ];
        for (name, matcher, status, expected) in cases {
            let found = instancetype(&objects(), &vm(json!({ "instancetype": matcher }), status));
            let found = found.map(|found| found.unwrap().cpu.guest).map_err(|problem| {
                assert_eq!(problem.field, "spec.instancetype", "{name}");
                problem.reason
            });
            assert_eq!(found, expected, "{name}");
        }
        assert!(instancetype(&objects(), &vm(json!({}), Value::Null)).unwrap().is_none());
    }

    #[test]
    fn a_preference_is_looked_for_where_the_reference_points() {
        let status = json!({ "preferenceRef": { "controllerRevisionRef": { "name": "vm-linux-1" } } });
        let cases = [
            ("cluster", json!({ "name": "linux" }), Value::Null, Ok("cluster")),
            (
                "namespaced",
                json!({ "name": "linux", "kind": "VirtualMachinePreference" }),
                Value::Null,
                Ok("own"),
            ),
            ("revision", json!({ "name": "linux", "revisionName": "vm-linux-1" }), Value::Null, Ok("kept")),
            ("status", json!({ "name": "linux" }), status, Ok("kept")),
            ("none", json!({ "name": "dos" }), Value::Null, Err(Reason::NotFound)),
            (
                "kind",
                json!({ "name": "linux", "kind": "VirtualMachineInstancetype" }),
                Value::Null,
                Err(Reason::NotSupported),
            ),
            (
                "wrong revision",
                json!({ "name": "linux", "revisionName": "vm-small-1" }),
                Value::Null,
                Err(Reason::Invalid),
            ),
        ];
        for (name, matcher, status, expected) in cases {
            let found = preference(&objects(), &vm(json!({ "preference": matcher }), status));
            let found = found.map(|found| found.unwrap().preferred_subdomain.clone().unwrap());
            let found = found.map_err(|problem| {
                assert_eq!(problem.field, "spec.preference", "{name}");
                problem.reason
            });
            assert_eq!(found, expected.map(str::to_owned), "{name}");
        }
        assert!(preference(&objects(), &vm(json!({}), Value::Null)).unwrap().is_none());
    }
}
