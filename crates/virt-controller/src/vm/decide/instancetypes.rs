//! Keeps copies of what a machine refers to, or writes it into the machine, as the cluster's policy says.

use std::ops::ControlFlow;

use k8s_openapi::api::apps::v1::ControllerRevision;
use kubevirt_admission::instancetype::find::{self, FoundInstancetype, FoundPreference};
use kubevirt_admission::instancetype::policy::{Treatment, treatment};
use kubevirt_admission::instancetype::{Role, apply, expand, revision};
use kubevirt_admission::mutate::vmi::{default_instance_spec, disks, network};
use kubevirt_admission::{Objects, Path, Problem, Problems};
use kubevirt_api::names::{events, reasons};
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vm::status::{ControllerRevisionRef, InstancetypeStatusRef};

use crate::vm::observe::Observed;
use crate::vm::plan::{Failure, Plan, Step};

/// Takes care of the references. After a change the machine is looked at anew, so that all that follows is decided on
/// what is stored.
pub fn decide(seen: &Observed, plan: &mut Plan) -> Result<ControlFlow<()>, Failure> {
    let vm = &*seen.vm;
    if vm.spec.instancetype.is_none() && vm.spec.preference.is_none() {
        return Ok(ControlFlow::Continue(()));
    }
    let failed = |reason| move |problem: Problem| Failure::new(reason, problem.to_string());
    let instancetype =
        find::instancetype(&seen.objects, vm).map_err(failed(reasons::vm::FAILED_FIND_INSTANCETYPE))?;
    let preference =
        find::preference(&seen.objects, vm).map_err(failed(reasons::vm::FAILED_FIND_PREFERENCE))?;
    let changed = match treatment(&seen.config.instancetype_reference_policy(), vm) {
        Treatment::Leave => return Ok(ControlFlow::Continue(())),
        Treatment::Expand => write_out(seen, plan),
        Treatment::Keep => keep(seen, plan, instancetype.as_ref(), preference.as_ref()),
    };
    let changed = changed.inspect_err(|failure| {
        plan.warn(events::objects::FAILED_CREATE, failure.message.clone());
    })?;
    Ok(if changed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}

/// Writes everything that the machine refers to into it.
fn write_out(seen: &Observed, plan: &mut Plan) -> Result<bool, Failure> {
    let devices = |spec: &mut _| {
        disks::add_missing(spec);
        network::add_default(&seen.config, spec)
    };
    let defaults = |spec: &mut _| default_instance_spec(&seen.config, spec);
    let expanded =
        expand::into_vm(&seen.objects, &plan.machine, devices, defaults).map_err(|all| sentence(&all))?;
    for role in Role::ALL {
        plan.outdated_revisions.extend(revision::noted(role.status(&seen.vm)).map(str::to_owned));
    }
    plan.machine = expanded;
    Ok(true)
}

/// Keeps copies, and brings those of an older version of the API up to date.
fn keep(
    seen: &Observed,
    plan: &mut Plan,
    instancetype: Option<&FoundInstancetype>,
    preference: Option<&FoundPreference>,
) -> Result<bool, Failure> {
    let vm = &*seen.vm;
    let copy_of_instancetype = || match instancetype {
        Some(found @ FoundInstancetype::Namespaced(object)) => {
            check_conflicts(vm, found)?;
            copy(vm, &**object)
        }
        Some(found @ FoundInstancetype::Cluster(object)) => {
            check_conflicts(vm, found)?;
            copy(vm, &**object)
        }
        Some(FoundInstancetype::Kept(_)) | None => Ok(None),
    };
    let copy_of_preference = || match preference {
        Some(FoundPreference::Namespaced(object)) => copy(vm, &**object),
        Some(FoundPreference::Cluster(object)) => copy(vm, &**object),
        Some(FoundPreference::Kept(_)) | None => Ok(None),
    };
    let instancetype = note(seen, plan, Role::Instancetype, copy_of_instancetype)?;
    let preference = note(seen, plan, Role::Preference, copy_of_preference)?;
    let status = plan.status();
    let changed = (instancetype != status.instancetype_ref && instancetype.is_some())
        || (preference != status.preference_ref && preference.is_some());
    if instancetype.is_some() {
        status.instancetype_ref = instancetype;
    }
    if preference.is_some() {
        status.preference_ref = preference;
    }
    Ok(changed)
}

/// What the status says of a reference once a copy is kept.
fn note(
    seen: &Observed,
    plan: &mut Plan,
    role: Role,
    copy: impl FnOnce() -> Result<Option<ControllerRevision>, Failure>,
) -> Result<Option<InstancetypeStatusRef>, Failure> {
    let Some(mut status) = revision::status_to_be(role, &seen.vm) else { return Ok(None) };
    let kept = match revision::noted(Some(&status)) {
        None => copy()?,
        Some(name) => renewed(seen, plan, role, name)?,
    };
    if let Some(kept) = kept {
        status.controller_revision_ref = Some(ControllerRevisionRef { name: kept.metadata.name.clone() });
        plan.steps.push(Step::CreateRevision(Box::new(kept)));
    }
    Ok(Some(status))
}

/// The copy in today's form, where the one that is kept is older.
fn renewed(
    seen: &Observed,
    plan: &mut Plan,
    role: Role,
    name: &str,
) -> Result<Option<ControllerRevision>, Failure> {
    let namespace = seen.vm.metadata.namespace.as_deref().unwrap_or_default();
    let Some(old) = seen.objects.controller_revision(namespace, name) else { return Ok(None) };
    if revision::is_latest(&old) {
        return Ok(None);
    }
    let renewed = revision::renew(&seen.vm, role, &old)
        .map_err(|problem| Failure::new(reasons::vm::FAILED_CREATE, problem.to_string()))?;
    if renewed.metadata.name.as_deref() != Some(name) {
        plan.outdated_revisions.push(name.to_owned());
    }
    Ok(Some(renewed))
}

fn copy(vm: &VirtualMachine, object: &impl serde::Serialize) -> Result<Option<ControllerRevision>, Failure> {
    let kept = revision::keep(vm, object);
    kept.map(Some).map_err(|error| Failure::new(reasons::vm::FAILED_CREATE, error.to_string()))
}

/// The object may have changed since admission checked it.
fn check_conflicts(vm: &VirtualMachine, found: &FoundInstancetype) -> Result<(), Failure> {
    let mut spec = vm.spec.template.spec.clone().unwrap_or_default();
    let mut annotations =
        vm.spec.template.metadata.as_ref().and_then(|metadata| metadata.annotations.clone());
    let path = Path::new("spec.template.spec");
    let problems = apply::apply(&path, Some(&**found), None, &mut spec, &mut annotations);
    problems.into_result().map_err(|all| sentence(&all))
}

/// All problems as one failure.
pub fn sentence(problems: &Problems) -> Failure {
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Failure::new(reasons::vm::FAILED_CREATE, all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{machine, read, seen, shared};
    use kubevirt_admission::ClusterConfig;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn cluster(spec: Value, status: Value) -> Observed {
        let mut seen = seen(machine(json!({ "spec": spec, "status": status })));
        seen.objects.cluster_instancetypes.push(shared(json!({
            "metadata": { "name": "small", "uid": "i", "generation": 1 },
            "spec": { "cpu": { "guest": 2 }, "memory": { "guest": "1Gi" } },
        })));
        seen.objects.cluster_preferences.push(shared(json!({
            "metadata": { "name": "linux", "uid": "p", "generation": 2 },
            "spec": { "preferredSubdomain": "s" },
        })));
        seen
    }

    fn policy(seen: &mut Observed, policy: &str) {
        let kubevirt =
            json!({ "spec": { "configuration": { "instancetype": { "referencePolicy": policy } } } });
        seen.config = Arc::new(ClusterConfig::of(&read(kubevirt)));
    }

    #[test]
    fn copies_are_kept_and_noted_before_anything_else_happens() {
        let both = json!({ "instancetype": { "name": "small" }, "preference": { "name": "linux" } });
        let mut seen = cluster(both, json!({}));
        let mut plan = Plan::keeping(&seen);
        assert!(decide(&seen, &mut plan).unwrap().is_break());
        let names = ["web-small-v1beta1-i-1", "web-linux-v1beta1-p-2"];
        assert_eq!(plan.steps.len(), 2);
        let status = plan.machine.status.clone().unwrap();
        assert_eq!(revision::noted(status.instancetype_ref.as_ref()), Some(names[0]));
        assert_eq!(revision::noted(status.preference_ref.as_ref()), Some(names[1]));
        for step in plan.steps {
            let Step::CreateRevision(kept) = step else { panic!("{step:?}") };
            seen.objects.controller_revisions.push(Arc::from(kept));
        }
        seen.vm = Arc::new(plan.machine);
        let mut plan = Plan::keeping(&seen);
        assert!(decide(&seen, &mut plan).unwrap().is_continue());
        assert!(plan.steps.is_empty());
    }

    #[test]
    fn a_machine_is_written_out_where_the_policy_says_so() {
        let mut seen = cluster(json!({ "instancetype": { "name": "small" } }), json!({}));
        policy(&mut seen, "expand");
        let mut plan = Plan::keeping(&seen);
        assert!(decide(&seen, &mut plan).unwrap().is_break());
        assert_eq!(plan.machine.spec.instancetype, None);
        let cpu = plan.machine.spec.template.spec.unwrap().domain.cpu.unwrap();
        assert_eq!(cpu.sockets, Some(2));
    }

    #[test]
    fn what_does_not_exist_or_conflicts_is_a_failure() {
        let template = json!({ "spec": { "domain": { "cpu": { "cores": 1 }, "devices": {} } } });
        for (spec, reason) in [
            (json!({ "instancetype": { "name": "huge" } }), reasons::vm::FAILED_FIND_INSTANCETYPE),
            (json!({ "preference": { "name": "dos" } }), reasons::vm::FAILED_FIND_PREFERENCE),
            (
                json!({ "instancetype": { "name": "small" }, "template": template }),
                reasons::vm::FAILED_CREATE,
            ),
        ] {
            let seen = cluster(spec.clone(), json!({}));
            let failure = decide(&seen, &mut Plan::keeping(&seen)).unwrap_err();
            assert_eq!(failure.reason, reason, "{spec}");
        }
    }

    #[test]
    fn an_older_copy_is_renewed() {
        let mut seen =
            cluster(json!({ "instancetype": { "name": "small", "revisionName": "old" } }), json!({}));
        seen.objects.controller_revisions.push(shared(json!({
            "metadata": { "name": "old", "namespace": "default" },
            "revision": 0,
            "data": {
                "apiVersion": "instancetype.kubevirt.io/v1beta1",
                "kind": "VirtualMachineClusterInstancetype",
                "metadata": { "name": "small", "uid": "i", "generation": 1 },
                "spec": { "cpu": { "guest": 2 }, "memory": { "guest": "1Gi" } },
            },
        })));
        let mut plan = Plan::keeping(&seen);
        assert!(decide(&seen, &mut plan).unwrap().is_break());
        let status = plan.machine.status.unwrap();
        assert_eq!(revision::noted(status.instancetype_ref.as_ref()), Some("web-small-v1beta1-i-1"));
    }
}
