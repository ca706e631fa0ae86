//! The DataVolumes that a machine brings along: made once, waited for, and never made anew once they are filled.

use kubevirt_api::condition;
use kubevirt_api::data_volume::{DataVolume, DataVolumePhase};
use kubevirt_api::names::{conditions, events, external, labels, reasons};
use kubevirt_api::vm::{DataVolumeTemplate, VirtualMachine};

use crate::vm::observe::Observed;
use crate::vm::plan::{Failure, Plan, Step};
use crate::vm::view;

/// Makes and adopts what is missing. Whether an instance can use all of them.
pub fn decide(seen: &Observed, plan: &mut Plan) -> Result<bool, Failure> {
    let mut ready = true;
    for template in seen.vm.spec.data_volume_templates.iter().flatten() {
        ready &= one(seen, plan, template)?;
    }
    Ok(ready)
}

fn one(seen: &Observed, plan: &mut Plan, template: &DataVolumeTemplate) -> Result<bool, Failure> {
    let name = name(template);
    if let Some(existing) = seen.data_volumes.get(name) {
        adopt(seen, plan, existing);
        return usable(plan, name, existing);
    }
    if is_filled(seen, name) {
        return Ok(true);
    }
    if !seen.data_volumes_served {
        return Err(Failure::new(
            reasons::vm::FAILED_CREATE,
            format!(
                "spec.dataVolumeTemplates asks for {name:?}, but the cluster has no DataVolumes: install the \
                 Containerized Data Importer, or use a PersistentVolumeClaim"
            ),
        ));
    }
    plan.steps.push(Step::CreateDataVolume(Box::new(make(&seen.vm, template))));
    Ok(false)
}

/// The name of the DataVolume that a template stands for.
pub fn name(template: &DataVolumeTemplate) -> &str {
    template.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default()
}

/// Whether the claim was filled by a DataVolume that has gone since.
fn is_filled(seen: &Observed, name: &str) -> bool {
    let claim = seen.claims.get(name);
    claim.is_some_and(|claim| view::annotation(&claim.metadata, external::cdi::POPULATED_FOR) == Some(name))
}

fn adopt(seen: &Observed, plan: &mut Plan, existing: &DataVolume) {
    let free = view::controller(&existing.metadata).is_none() && !view::is_deleting(&existing.metadata);
    if free && !view::is_deleting(&seen.vm.metadata) {
        let mut adopted = existing.clone();
        adopted.metadata.owner_references.get_or_insert_default().push(view::owner_reference(&seen.vm));
        plan.steps.push(Step::AdoptDataVolume(Box::new(adopted)));
    }
}

fn usable(plan: &mut Plan, name: &str, existing: &DataVolume) -> Result<bool, Failure> {
    let status = existing.status.as_ref();
    match status.and_then(|status| status.phase.as_ref()) {
        Some(
            DataVolumePhase::Succeeded
            | DataVolumePhase::WaitForFirstConsumer
            | DataVolumePhase::PendingPopulation,
        ) => Ok(true),
        Some(DataVolumePhase::Failed) => {
            plan.warn(
                events::data_volume::FAILED_IMPORT,
                format!("The DataVolume {name} could not be filled"),
            );
            Ok(false)
        }
        Some(DataVolumePhase::Pending) => {
            let all = status.and_then(|status| status.conditions.as_deref());
            let bound = condition::find(all, conditions::data_volume::BOUND);
            let over_quota =
                bound.filter(|bound| !bound.is_true() && bound.reason.as_deref() == Some("ErrExceededQuota"));
            match over_quota {
                None => Ok(false),
                Some(bound) => {
                    let why = bound.message.as_deref().unwrap_or("the quota of the namespace is used up");
                    let message = format!("The DataVolume {name} cannot be filled: {why}");
                    plan.warn(events::data_volume::FAILED_IMPORT, message.clone());
                    Err(Failure::new(reasons::vm::FAILED_CREATE, message))
                }
            }
        }
        _ => Ok(false),
    }
}

/// The DataVolume of a template.
fn make(vm: &VirtualMachine, template: &DataVolumeTemplate) -> DataVolume {
    let mut made = DataVolume {
        metadata: template.metadata.clone().unwrap_or_default(),
        spec: template.spec.clone(),
        status: None,
    };
    let metadata = &mut made.metadata;
    metadata.namespace.clone_from(&vm.metadata.namespace);
    metadata.owner_references = Some(vec![view::owner_reference(vm)]);
    let uid = vm.metadata.uid.clone().unwrap_or_default();
    metadata.labels.get_or_insert_default().insert(labels::CREATED_BY.to_owned(), uid);
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(external::cdi::CLAIM_ADOPTION.to_owned(), "true".to_owned());
    let own = made.spec.priority_class_name.as_deref().unwrap_or_default();
    let of_machine = view::template(vm).and_then(|spec| spec.priority_class_name.as_ref());
    if let (true, Some(class)) = (own.is_empty(), of_machine.filter(|class| !class.is_empty())) {
        made.spec.priority_class_name = Some(class.clone());
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{machine, seen, shared};
    use serde_json::{Value, json};

    fn world() -> Observed {
        let template = json!({ "metadata": { "name": "disk", "labels": { "a": "b" } }, "spec": { "source": { "blank": {} } } });
        seen(machine(json!({ "spec": {
            "dataVolumeTemplates": [template],
            "template": { "spec": { "priorityClassName": "high", "domain": { "devices": {} } } },
        } })))
    }

    fn decided(seen: &Observed) -> (Result<bool, Failure>, Plan) {
        let mut plan = Plan::keeping(seen);
        (decide(seen, &mut plan), plan)
    }

    #[test]
    fn a_missing_one_is_made_once() {
        let seen = world();
        let (ready, plan) = decided(&seen);
        assert_eq!(ready, Ok(false));
        let [Step::CreateDataVolume(made)] = &plan.steps[..] else { panic!("{:?}", plan.steps) };
        let made = json!(made);
        assert_eq!(made["metadata"]["name"], "disk");
        assert_eq!(made["metadata"]["labels"], json!({ "a": "b", "kubevirt.io/created-by": "vm-uid" }));
        assert_eq!(made["metadata"]["annotations"], json!({ "cdi.kubevirt.io/allowClaimAdoption": "true" }));
        assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "vm-uid");
        assert_eq!(made["spec"]["priorityClassName"], "high");
    }

    #[test]
    fn one_that_was_filled_and_went_is_not_made_anew() {
        let mut seen = world();
        let claim = |annotations: Value| {
            shared(json!({ "metadata": { "name": "disk", "annotations": annotations } }))
        };
        seen.claims
            .insert("disk".to_owned(), claim(json!({ "cdi.kubevirt.io/storage.populatedFor": "disk" })));
        let (ready, plan) = decided(&seen);
        assert_eq!((ready, plan.steps.len()), (Ok(true), 0));
        seen.claims.insert("disk".to_owned(), claim(json!({})));
        let (ready, plan) = decided(&seen);
        assert_eq!((ready, plan.steps.len()), (Ok(false), 1));
    }

    #[test]
    fn without_the_importer_the_user_is_told() {
        let mut seen = world();
        seen.data_volumes_served = false;
        let (ready, plan) = decided(&seen);
        let failure = ready.unwrap_err();
        assert!(failure.message.contains("spec.dataVolumeTemplates"), "{failure:?}");
        assert!(plan.steps.is_empty());
    }

    #[test]
    fn an_instance_waits_until_they_can_be_used() {
        let quota =
            json!([{ "type": "Bound", "status": "Unknown", "reason": "ErrExceededQuota", "message": "m" }]);
        for (status, expected, events) in [
            (json!(null), Some(false), 0),
            (json!({ "phase": "ImportInProgress" }), Some(false), 0),
            (json!({ "phase": "Succeeded" }), Some(true), 0),
            (json!({ "phase": "WaitForFirstConsumer" }), Some(true), 0),
            (json!({ "phase": "PendingPopulation" }), Some(true), 0),
            (json!({ "phase": "Pending" }), Some(false), 0),
            (json!({ "phase": "Pending", "conditions": quota }), None, 1),
            (json!({ "phase": "Failed" }), Some(false), 1),
        ] {
            let mut seen = world();
            let owner = json!([view::owner_reference(&seen.vm)]);
            let existing =
                json!({ "metadata": { "name": "disk", "ownerReferences": owner }, "status": status });
            seen.data_volumes.insert("disk".to_owned(), shared(existing));
            let (ready, plan) = decided(&seen);
            assert_eq!((ready.ok(), plan.events.len(), plan.steps.len()), (expected, events, 0), "{status}");
        }
    }

    #[test]
    fn one_that_belongs_to_nobody_becomes_the_machines() {
        let mut seen = world();
        let existing = json!({ "metadata": { "name": "disk" }, "status": { "phase": "Succeeded" } });
        seen.data_volumes.insert("disk".to_owned(), shared(existing));
        let (ready, plan) = decided(&seen);
        assert_eq!(ready, Ok(true));
        assert!(matches!(&plan.steps[..], [Step::AdoptDataVolume(_)]));
        assert!(plan.takes_over());
    }
}
