//! Rules for `VirtualMachineInstanceReplicaSet`.

use std::borrow::Cow;

use kubevirt_api::replica_set::VirtualMachineInstanceReplicaSet;

use super::vmi_spec::domain::{discontinued, grace};
use super::{labels, vmi_spec};
use crate::{Context, Path, Problems};

/// Everything that is wrong with a replica set.
pub fn check(
    cx: &Context<'_>,
    new: &VirtualMachineInstanceReplicaSet,
    old: Option<&VirtualMachineInstanceReplicaSet>,
) -> Problems {
    let mut problems = Problems::default();
    let path = Path::new("spec");
    let metadata = new.spec.template.metadata.as_ref();
    let spec = new.spec.template.spec.as_ref().map_or_else(Cow::default, Cow::Borrowed);

    let annotations = metadata.and_then(|metadata| metadata.annotations.as_ref());
    grace::check_annotations(cx, &path.at("template.metadata"), annotations, &spec, &mut problems);
    problems.append(vmi_spec::check(cx, &path.at("template.spec"), &spec));
    let template_labels = metadata.and_then(|metadata| metadata.labels.as_ref());
    match labels::matches(&new.spec.selector, template_labels) {
        Ok(true) => {}
        Ok(false) => problems.invalid(
            &path.at("selector"),
            "selector does not match labels of spec.template.metadata; the set would never find its own instances",
        ),
        Err(problem) => problems.invalid(&path.at("selector"), problem),
    }
    if old.is_none() {
        discontinued::check(cx, &spec, &mut problems);
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, patched, read};

    fn base() -> Value {
        json!({
            "metadata": { "name": "set", "namespace": "default" },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": { "app": "db" } },
                "template": {
                    "metadata": { "labels": { "app": "db" } },
                    "spec": {
                        "architecture": "amd64",
                        "domain": { "memory": { "guest": "1Gi" }, "machine": { "type": "q35" }, "devices": {} },
                    },
                },
            },
        })
    }

    #[test]
    fn the_selector_must_be_usable_and_match_the_template() {
        let cases = [
            ("as it is", json!({}), &[][..]),
            (
                "other label",
                json!({ "spec": { "selector": { "matchLabels": { "app": "web" } } } }),
                &["spec.selector"],
            ),
            ("no labels", json!({ "spec": { "template": { "metadata": null } } }), &["spec.selector"]),
            (
                "unknown operator",
                json!({ "spec": { "selector": { "matchExpressions": [{ "key": "app", "operator": "Near" }] } } }),
                &["spec.selector"],
            ),
            ("everything", json!({ "spec": { "selector": { "matchLabels": null } } }), &[]),
            (
                "expression",
                json!({ "spec": { "selector": {
                    "matchExpressions": [{ "key": "app", "operator": "In", "values": ["db"] }],
                } } }),
                &[],
            ),
        ];
        World::default().assert_new(check, &base(), &cases);
    }

    #[test]
    fn a_binding_that_is_gone_is_refused_for_new_sets_while_its_gate_is_named() {
        let patch = json!({ "spec": { "template": { "spec": { "domain": { "devices": {
            "interfaces": [{ "name": "default", "passt": {} }],
        } }, "networks": [{ "name": "default", "pod": {} }] } } } });
        let set: VirtualMachineInstanceReplicaSet = read(patched(&base(), &patch));
        let gone = |problems: Problems| problems.iter().any(|problem| problem.field.is_empty());
        let gated = World::default().with_gates(&["Passt"]);
        assert!(gone(gated.run(|cx| check(cx, &set, None))));
        assert!(!gone(gated.run(|cx| check(cx, &set, Some(&set)))));
        assert!(!gone(World::default().run(|cx| check(cx, &set, None))));
    }
}
