//! Presets: defaults of a namespace for the instances that a selector finds. Deprecated, and warned of.

mod merge;

use std::sync::Arc;

use kubevirt_api::names::annotations::{PRESET_EXCLUDE, PRESET_PREFIX};
use kubevirt_api::names::groups;
use kubevirt_api::preset::VirtualMachineInstancePreset;
use kubevirt_api::vmi::VirtualMachineInstance;

use crate::validate::labels;
use crate::{Context, Path, Problems};

/// Lays the presets that match an instance under it, unless they contradict each other.
pub fn apply(cx: &Context<'_>, vmi: &mut VirtualMachineInstance) -> Problems {
    let mut problems = Problems::default();
    for preset in matching(cx, vmi, &mut problems) {
        let Some(domain) = &preset.spec.domain else { continue };
        if merge::fill(domain, &mut vmi.spec.domain) {
            let mark = format!("{PRESET_PREFIX}{}", preset.metadata.name.as_deref().unwrap_or_default());
            vmi.metadata.annotations.get_or_insert_default().insert(mark, groups::KUBEVIRT_V1.to_owned());
        }
    }
    let mut annotations = vmi.metadata.annotations.iter().flatten();
    if annotations.any(|(key, _)| key.contains("virtualmachinepreset")) {
        problems.warn("VirtualMachineInstancePresets are deprecated and end with v2: use instance types and preferences");
    }
    problems
}

fn matching(
    cx: &Context<'_>,
    vmi: &VirtualMachineInstance,
    problems: &mut Problems,
) -> Vec<Arc<VirtualMachineInstancePreset>> {
    let excluded = vmi.metadata.annotations.as_ref().and_then(|annotations| annotations.get(PRESET_EXCLUDE));
    let namespace = vmi.metadata.namespace.as_deref().unwrap_or(&cx.request.namespace);
    if excluded.is_some_and(|value| value == "true") || namespace.is_empty() {
        return Vec::new();
    }
    let mut matching = Vec::new();
    for preset in cx.objects.presets(namespace) {
        match labels::matches(&preset.spec.selector, vmi.metadata.labels.as_ref()) {
            Ok(true) => matching.push(preset),
            Ok(false) => {}
            Err(reason) => problems.invalid(
                &Path::WHOLE,
                format!(
                    "preset {:?} cannot be used: {reason}",
                    preset.metadata.name.as_deref().unwrap_or_default()
                ),
            ),
        }
    }
    let conflicts = merge::conflicts(&matching);
    if conflicts.is_empty() && problems.is_empty() {
        return matching;
    }
    for conflict in conflicts {
        problems.invalid(&Path::WHOLE, conflict);
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, patched, read, shared};

    fn preset(name: &str, selector: Value, domain: Value) -> Value {
        let domain = patched(&json!({ "devices": {} }), &domain);
        json!({ "metadata": { "namespace": "default", "name": name }, "spec": { "selector": selector, "domain": domain } })
    }

    fn run(presets: Vec<Value>, patch: &Value) -> (VirtualMachineInstance, Problems) {
        let mut world = World::default();
        world.objects.presets = presets.into_iter().map(shared).collect();
        let base = json!({
            "metadata": { "namespace": "default", "name": "test", "labels": { "os": "linux" } },
            "spec": { "domain": { "devices": {} } },
        });
        let mut vmi = read(patched(&base, patch));
        let problems = world.run(|cx| apply(cx, &mut vmi));
        (vmi, problems)
    }

    fn linux() -> Value {
        json!({ "matchLabels": { "os": "linux" } })
    }

    #[test]
    fn a_matching_preset_fills_in_and_leaves_a_mark() {
        let (vmi, problems) =
            run(vec![preset("small", linux(), json!({ "cpu": { "cores": 2 } }))], &json!({}));
        assert_fields("small", &problems, &[]);
        assert_eq!(problems.warnings().len(), 1);
        assert_eq!(vmi.spec.domain.cpu.unwrap().cores, Some(2));
        assert_eq!(
            vmi.metadata.annotations.unwrap()["virtualmachinepreset.kubevirt.io/small"],
            "kubevirt.io/v1"
        );
    }

    #[test]
    fn a_preset_is_passed_over_where_it_does_not_belong() {
        let other = json!({ "matchLabels": { "os": "windows" } });
        let cpu = json!({ "cpu": { "cores": 2 } });
        let elsewhere =
            patched(&preset("p", linux(), cpu.clone()), &json!({ "metadata": { "namespace": "other" } }));
        let excluded = json!({ "metadata": { "annotations": { "virtualmachineinstancepresets.admission.kubevirt.io/exclude": "true" } } });
        let own = json!({ "spec": { "domain": { "cpu": { "cores": 1 } } } });
        for (case, preset, patch) in [
            ("selector", preset("p", other, cpu.clone()), &json!({})),
            ("namespace", elsewhere, &json!({})),
            ("excluded", preset("p", linux(), cpu.clone()), &excluded),
            ("own setting", preset("p", linux(), cpu.clone()), &own),
            ("nothing in it", preset("p", linux(), json!({})), &json!({})),
        ] {
            let (vmi, problems) = run(vec![preset], patch);
            assert_fields(case, &problems, &[]);
            assert!(problems.warnings().is_empty(), "{case}");
            assert_ne!(vmi.spec.domain.cpu.and_then(|cpu| cpu.cores), Some(2), "{case}");
        }
    }

    #[test]
    fn presets_that_contradict_each_other_refuse_the_instance() {
        let presets = vec![
            preset("a", linux(), json!({ "cpu": { "cores": 1 } })),
            preset("b", json!({}), json!({ "cpu": { "cores": 2 } })),
        ];
        let (vmi, problems) = run(presets, &json!({}));
        assert_fields("cpu", &problems, &[""]);
        assert_eq!(vmi.spec.domain.cpu, None);
    }

    #[test]
    fn a_selector_that_makes_no_sense_refuses_the_instance() {
        let selector = json!({ "matchExpressions": [{ "key": "os", "operator": "Like", "values": ["l"] }] });
        let (_, problems) = run(vec![preset("a", selector, json!({}))], &json!({}));
        assert_fields("operator", &problems, &[""]);
    }
}
