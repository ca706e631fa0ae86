//! Labels and annotations that a running instance takes over from its machine, and the reverse.

use std::collections::BTreeMap;

use kubevirt_api::names::annotations::{PCI_INTERFACE_SLOT_COUNT, PCI_TOPOLOGY_VERSION, SKIP_BACKUP_HOOKS};
use kubevirt_api::names::external::autoscaler;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_api::vmi::VirtualMachineInstance;

use crate::vm::observe::Observed;
use crate::vm::plan::Plan;
use crate::vm::view;

type Marks = BTreeMap<String, String>;

/// Annotations that always follow from the template to a running instance.
const FOLLOWING: [&str; 2] = [autoscaler::DESCHEDULER_EVICT, autoscaler::DESCHEDULER_PREFER_NO_EVICTION];

/// Brings both sides in line.
pub fn follow(seen: &Observed, plan: &mut Plan) {
    let Some(vmi) = &mut plan.instance else { return };
    if !view::is_deleting(&vmi.metadata) {
        let template = plan.machine.spec.template.metadata.as_ref();
        let further = seen.mirrored.annotations.iter().map(String::as_str);
        let annotations: Vec<&str> = FOLLOWING.into_iter().chain(further).collect();
        let labels: Vec<&str> = seen.mirrored.labels.iter().map(String::as_str).collect();
        let metadata = &mut vmi.metadata;
        copy(&labels, template.and_then(|template| template.labels.as_ref()), &mut metadata.labels);
        let from = template.and_then(|template| template.annotations.as_ref());
        copy(&annotations, from, &mut metadata.annotations);
        let from = plan.machine.metadata.annotations.as_ref();
        copy(&[SKIP_BACKUP_HOOKS], from, &mut metadata.annotations);
    }
    keep_topology(&mut plan.machine, vmi);
}

/// Where the devices of an older guest are was found out on its node; its machine keeps it for the next start.
fn keep_topology(vm: &mut VirtualMachine, vmi: &VirtualMachineInstance) {
    let found = view::annotation(&vmi.metadata, PCI_TOPOLOGY_VERSION).filter(|version| !version.is_empty());
    let template = vm.spec.template.metadata.as_ref();
    let known = template.and_then(|template| view::annotation(template, PCI_TOPOLOGY_VERSION));
    let (Some(version), None) = (found, known.filter(|version| !version.is_empty())) else { return };
    let all = vm.spec.template.metadata.get_or_insert_default().annotations.get_or_insert_default();
    all.insert(PCI_TOPOLOGY_VERSION.to_owned(), version.to_owned());
    if let Some(count) = view::annotation(&vmi.metadata, PCI_INTERFACE_SLOT_COUNT) {
        all.insert(PCI_INTERFACE_SLOT_COUNT.to_owned(), count.to_owned());
    }
}

/// Copies marks of these names, and removes those that are gone. `prefix*` stands for many, but `*` for none.
fn copy(names: &[&str], from: Option<&Marks>, to: &mut Option<Marks>) {
    let matches = |key: &str| {
        names.iter().any(|name| match name.strip_suffix('*') {
            Some(prefix) => !prefix.is_empty() && key.starts_with(prefix),
            None => key == *name,
        })
    };
    let wanted = from.into_iter().flatten().filter(|(key, _)| matches(key));
    let wanted: Marks = wanted.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let Some(to) = to {
        to.retain(|key, _| !matches(key) || wanted.contains_key(key));
    }
    if !wanted.is_empty() {
        to.get_or_insert_default().extend(wanted);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::vm::testing::{machine, read};

    #[test]
    fn named_marks_follow_and_others_are_left_alone() {
        let names = ["exact", "vendor.io/*", "*", ""];
        let cases = [
            (json!({ "exact": "1" }), Value::Null, json!({ "exact": "1" })),
            (
                json!({ "exact": "1" }),
                json!({ "exact": "0", "own": "x" }),
                json!({ "exact": "1", "own": "x" }),
            ),
            (json!({}), json!({ "exact": "0", "own": "x" }), json!({ "own": "x" })),
            (
                json!({ "vendor.io/a": "1", "b": "2" }),
                json!({ "vendor.io/c": "3" }),
                json!({ "vendor.io/a": "1" }),
            ),
            (json!({ "other": "2" }), Value::Null, Value::Null),
        ];
        for (from, to, expected) in cases {
            let mut to: Option<Marks> = read(to);
            copy(&names, Some(&read(from)), &mut to);
            assert_eq!(json!(to), expected);
        }
    }

    #[test]
    fn a_machine_keeps_where_its_devices_were_found() {
        let vmi = read(json!({ "metadata": { "annotations": {
            PCI_TOPOLOGY_VERSION: "v2", PCI_INTERFACE_SLOT_COUNT: "5",
        } } }));
        let mut vm = machine(json!({}));
        keep_topology(&mut vm, &vmi);
        let kept = json!(vm.spec.template.metadata)["annotations"].clone();
        assert_eq!(kept, json!({ PCI_TOPOLOGY_VERSION: "v2", PCI_INTERFACE_SLOT_COUNT: "5" }));
        let own = json!({ "annotations": { PCI_TOPOLOGY_VERSION: "v3" } });
        let mut vm = machine(json!({ "spec": { "template": { "metadata": own } } }));
        keep_topology(&mut vm, &vmi);
        assert_eq!(json!(vm.spec.template.metadata), own);
    }
}
