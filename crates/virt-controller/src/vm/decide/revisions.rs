//! The revision that a machine is started from, and which generation of the machine its instance is.

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kubevirt_admission::instancetype::revision::noted;
use kubevirt_admission::validate::same::same;
use kubevirt_api::names::annotations;
use kubevirt_api::vm::{VirtualMachine, VirtualMachineSpec};
use kubevirt_api::vmi::VirtualMachineInstance;
use serde::Deserialize;
use serde_json::json;

use crate::vm::observe::Observed;
use crate::vm::view;

/// What all revisions of a machine's starts are called, up to the generation.
fn prefix(vm: &VirtualMachine) -> String {
    format!("revision-start-vm-{}-", vm.metadata.uid.as_deref().unwrap_or_default())
}

/// What the revision of the machine's present generation is called.
pub fn name(vm: &VirtualMachine) -> String {
    format!("{}{}", prefix(vm), vm.metadata.generation.unwrap_or_default())
}

/// The revision of the machine's present generation. It names the exact copies of instance type and preference, so
/// that it says the same whatever becomes of these.
pub fn of_start(vm: &VirtualMachine) -> ControllerRevision {
    let mut spec = vm.spec.clone();
    let status = vm.status.as_ref();
    let kept = noted(status.and_then(|status| status.instancetype_ref.as_ref()));
    if let (Some(matcher), Some(kept)) = (&mut spec.instancetype, kept) {
        matcher.revision_name = Some(kept.to_owned());
    }
    let kept = noted(status.and_then(|status| status.preference_ref.as_ref()));
    if let (Some(matcher), Some(kept)) = (&mut spec.preference, kept) {
        matcher.revision_name = Some(kept.to_owned());
    }
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(name(vm)),
            namespace: vm.metadata.namespace.clone(),
            owner_references: Some(vec![view::owner_reference(vm)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(json!({ "spec": spec }))),
        revision: vm.metadata.generation.unwrap_or_default(),
    }
}

/// The specification that the machine was last started from.
pub fn last_start(seen: &Observed) -> Option<VirtualMachineSpec> {
    let starts = seen.revisions.iter().filter_map(|revision| Some((generation(seen, revision)?, revision)));
    spec(starts.max_by_key(|(generation, _)| *generation)?.1)
}

/// Revisions of starts of earlier generations.
pub fn outdated(seen: &Observed) -> Vec<String> {
    let present = seen.vm.metadata.generation.unwrap_or_default();
    let old = |revision: &&std::sync::Arc<ControllerRevision>| {
        generation(seen, revision).is_some_and(|generation| generation != present)
    };
    seen.revisions.iter().filter(old).filter_map(|revision| revision.metadata.name.clone()).collect()
}

/// Whether the revision of the present generation is there.
pub fn is_kept(seen: &Observed) -> bool {
    let name = name(&seen.vm);
    seen.revisions.iter().any(|revision| revision.metadata.name.as_ref() == Some(&name))
}

fn generation(seen: &Observed, revision: &ControllerRevision) -> Option<i64> {
    revision.metadata.name.as_deref()?.strip_prefix(&prefix(&seen.vm))?.parse().ok()
}

fn spec(revision: &ControllerRevision) -> Option<VirtualMachineSpec> {
    VirtualMachineSpec::deserialize(&revision.data.as_ref()?.0["spec"]).ok()
}

/// Which generation an instance is of, as it says itself.
pub fn generation_of(vmi: &VirtualMachineInstance) -> Option<i64> {
    view::annotation(&vmi.metadata, annotations::VM_GENERATION)?.parse().ok()
}

/// Marks an instance with the generation that it is of.
pub fn mark(vmi: &mut VirtualMachineInstance, generation: i64) {
    let all = vmi.metadata.annotations.get_or_insert_default();
    all.insert(annotations::VM_GENERATION.to_owned(), generation.to_string());
}

/// Marks an instance with the machine's present generation where only what does not concern it has changed, and one
/// without a mark with the generation that it was started from.
pub fn follow(seen: &Observed, vmi: &mut VirtualMachineInstance) {
    let present = seen.vm.metadata.generation.unwrap_or_default();
    let marked = generation_of(vmi);
    if marked == Some(present) {
        return;
    }
    let started_from = vmi.status.as_ref().and_then(|status| status.virtual_machine_revision_name.as_ref());
    let started_from = started_from.and_then(|name| {
        seen.revisions.iter().find(|revision| revision.metadata.name.as_ref() == Some(name))
    });
    let Some(started_from) = started_from else { return };
    if spec(started_from).is_some_and(|spec| same(&spec.template, &seen.vm.spec.template)) {
        mark(vmi, present);
    } else if let (None, Some(generation)) = (marked, generation(seen, started_from)) {
        mark(vmi, generation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::testing::{machine, read, seen, shared};

    #[test]
    fn a_revision_names_what_the_machine_is_started_from() {
        let vm = machine(json!({
            "metadata": { "generation": 3 },
            "spec": { "instancetype": { "name": "small" }, "preference": { "name": "linux" } },
            "status": { "instancetypeRef": { "controllerRevisionRef": { "name": "kept" } } },
        }));
        let revision = of_start(&vm);
        assert_eq!(revision.metadata.name.as_deref(), Some("revision-start-vm-vm-uid-3"));
        assert_eq!(revision.revision, 3);
        let spec = spec(&revision).unwrap();
        assert_eq!(spec.instancetype.unwrap().revision_name.as_deref(), Some("kept"));
        assert_eq!(spec.preference.unwrap().revision_name, None);
    }

    #[test]
    fn the_last_start_counts_and_earlier_ones_are_outdated() {
        let mut seen = seen(machine(json!({ "metadata": { "generation": 12 } })));
        for generation in [9, 12, 10] {
            let vm = machine(json!({
                "metadata": { "generation": generation },
                "spec": { "runStrategy": format!("at {generation}") },
            }));
            seen.revisions.push(std::sync::Arc::new(of_start(&vm)));
        }
        seen.revisions
            .push(shared(json!({ "metadata": { "name": "web-small-v1beta1-a-1" }, "revision": 0 })));
        assert_eq!(last_start(&seen).unwrap().run_strategy.unwrap().as_str(), "at 12");
        assert_eq!(outdated(&seen), ["revision-start-vm-vm-uid-9", "revision-start-vm-vm-uid-10"]);
        assert!(is_kept(&seen));
    }

    #[test]
    fn an_instance_follows_the_generation_unless_the_template_changed() {
        let template = |name: &str| json!({ "spec": { "hostname": name, "domain": { "devices": {} } } });
        let at = |generation: i64, hostname: &str| {
            machine(
                json!({ "metadata": { "generation": generation }, "spec": { "template": template(hostname) } }),
            )
        };
        let marked = |now: VirtualMachine, mark: Option<&str>| {
            let mut seen = seen(now);
            seen.revisions.push(std::sync::Arc::new(of_start(&at(1, "a"))));
            let annotations = mark.map(|mark| json!({ annotations::VM_GENERATION: mark }));
            let mut vmi = read(json!({
                "metadata": { "annotations": annotations },
                "status": { "virtualMachineRevisionName": "revision-start-vm-vm-uid-1" },
            }));
            follow(&seen, &mut vmi);
            generation_of(&vmi)
        };
        assert_eq!(marked(at(1, "a"), Some("1")), Some(1));
        assert_eq!(marked(at(2, "a"), Some("1")), Some(2));
        assert_eq!(marked(at(2, "b"), Some("1")), Some(1));
        assert_eq!(marked(at(2, "b"), None), Some(1));
        assert_eq!(marked(at(2, "b"), Some("odd")), Some(1));
        assert_eq!(marked(at(2, "a"), None), Some(2));
    }
}
