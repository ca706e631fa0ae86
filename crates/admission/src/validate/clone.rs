//! Rules for `VirtualMachineClone`.

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use kubevirt_api::clone::VirtualMachineClone;
use kubevirt_api::names::groups;
use serde::de::IgnoredAny;

use super::address::is_mac;
use crate::{Context, Gate, Path, Problems};

const MACHINE: &str = "VirtualMachine";
const SNAPSHOT: &str = "VirtualMachineSnapshot";

/// Everything that is wrong with a clone.
pub fn check(cx: &Context<'_>, new: &VirtualMachineClone, old: Option<&VirtualMachineClone>) -> Problems {
    let mut problems = Problems::default();
    let (path, spec) = (Path::new("spec"), &new.spec);

    if old.is_none() && !cx.config.enabled(Gate::Snapshot) {
        let gate = Gate::Snapshot.name();
        problems.forbidden(
            &Path::WHOLE,
            format!("clones are made from snapshots, which need the feature gate {gate}"),
        );
    }
    let template = spec.template.as_ref();
    let filters = [
        ("annotations", spec.annotation_filters.as_ref()),
        ("labels", spec.label_filters.as_ref()),
        ("template.annotations", template.and_then(|template| template.annotation_filters.as_ref())),
        ("template.labels", template.and_then(|template| template.label_filters.as_ref())),
    ];
    for (field, filters) in filters {
        check_filters(&path.at(field), filters.into_iter().flatten(), &mut problems);
    }
    check_source(&path, &spec.source, &mut problems);
    if let Some(target) = &spec.target {
        check_target(&path, &spec.source, target, &mut problems);
    }
    for (interface, address) in spec.new_mac_addresses.iter().flatten() {
        if !address.is_empty() && !is_mac(address) {
            let addresses = path.at("newMacAddresses");
            problems.invalid(
                &addresses.at(interface),
                format!("{address:?} is not a MAC address such as 02:00:00:12:34:56"),
            );
        }
    }
    let patches = path.at("patches");
    for (index, patch) in spec.patches.iter().flatten().enumerate() {
        if let Err(error) = serde_json::from_str::<IgnoredAny>(patch) {
            problems.invalid(&patches.index(index), format!("is not JSON: {error}"));
        }
    }
    problems
}

/// A filter is a key that may start with `!` and end with `*`.
fn check_filters<'a>(path: &Path<'_>, filters: impl Iterator<Item = &'a String>, problems: &mut Problems) {
    for filter in filters {
        if matches!(filter.as_str(), "" | "!") {
            problems.invalid(path, format!("the filter {filter:?} names no key"));
            continue;
        }
        if filter.char_indices().any(|(at, letter)| letter == '!' && at > 0) {
            problems.invalid(path, format!("the filter {filter:?} has a '!' that is not at its start"));
        }
        if filter.char_indices().any(|(at, letter)| letter == '*' && at + 1 < filter.len()) {
            problems.invalid(path, format!("the filter {filter:?} has a '*' that is not at its end"));
        }
    }
}

fn check_source(path: &Path<'_>, source: &TypedLocalObjectReference, problems: &mut Problems) {
    if ![MACHINE, SNAPSHOT].contains(&source.kind.as_str()) {
        problems.invalid(
            &path.at("Source.Kind"),
            format!("{:?} cannot be cloned; use {MACHINE} or {SNAPSHOT}", source.kind),
        );
    }
    if source.api_group.as_deref().unwrap_or_default().is_empty() {
        let message = format!("is empty; use {} or {}", groups::KUBEVIRT, groups::SNAPSHOT);
        problems.invalid(&path.at("Source.APIGroup"), message);
    }
    if source.kind.is_empty() {
        problems.invalid(&path.at("Source"), "has no kind");
    }
    if source.name.is_empty() {
        problems.invalid(&path.at("Source.Name"), "is empty");
    }
}

fn check_target(
    path: &Path<'_>,
    source: &TypedLocalObjectReference,
    target: &TypedLocalObjectReference,
    problems: &mut Problems,
) {
    if target.kind != MACHINE {
        problems.invalid(
            &path.at("Target.Kind"),
            format!("{:?} cannot be made; only {MACHINE} can", target.kind),
        );
    } else if source.kind == MACHINE && source.name == target.name {
        problems.invalid(
            &path.at("target.name"),
            format!("{:?} is the source itself; use another name", target.name),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Case, World, assert_fields, read};

    fn base() -> Value {
        json!({
            "metadata": { "name": "copy", "namespace": "default" },
            "spec": {
                "source": { "apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "a" },
                "target": { "apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "b" },
            },
        })
    }

    fn assert_cases(cases: &[Case<'_>]) {
        let whole: Vec<Case<'_>> =
            cases.iter().map(|(case, spec, expected)| (*case, json!({ "spec": spec }), *expected)).collect();
        World::default().assert_new(check, &base(), &whole);
    }

    #[test]
    fn source_and_target() {
        let kind = "spec.Source.Kind";
        assert_cases(&[
            ("as it is", json!({}), &[]),
            (
                "snapshot",
                json!({ "source": { "apiGroup": "snapshot.kubevirt.io", "kind": "VirtualMachineSnapshot" } }),
                &[],
            ),
            ("no target", json!({ "target": null }), &[]),
            ("other kind", json!({ "source": { "kind": "Pod" } }), &[kind]),
            ("no kind", json!({ "source": { "kind": "" } }), &[kind, "spec.Source"]),
            ("no group", json!({ "source": { "apiGroup": null } }), &["spec.Source.APIGroup"]),
            ("empty group", json!({ "source": { "apiGroup": "" } }), &["spec.Source.APIGroup"]),
            ("no name", json!({ "source": { "name": "" } }), &["spec.Source.Name"]),
            (
                "other target",
                json!({ "target": { "kind": "VirtualMachineSnapshot" } }),
                &["spec.Target.Kind"],
            ),
            ("itself", json!({ "target": { "name": "a" } }), &["spec.target.name"]),
            (
                "same name as the snapshot",
                json!({ "source": { "kind": "VirtualMachineSnapshot", "name": "b" } }),
                &[],
            ),
            (
                "everything",
                json!({ "source": { "apiGroup": "", "kind": "", "name": "" }, "target": { "kind": "x" } }),
                &[kind, "spec.Source", "spec.Source.APIGroup", "spec.Source.Name", "spec.Target.Kind"],
            ),
        ]);
    }

    #[test]
    fn filters() {
        let fields = [("annotationFilters", "spec.annotations"), ("labelFilters", "spec.labels")];
        for (field, path) in fields {
            assert_cases(&[
                ("fine", json!({ field: ["*", "!a", "a*", "!some/key*", "x"] }), &[]),
                ("only a negation", json!({ field: ["!"] }), &[path]),
                ("empty", json!({ field: [""] }), &[path]),
                ("late negation", json!({ field: ["a!b"] }), &[path]),
                ("two negations", json!({ field: ["!!a"] }), &[path]),
                ("early wildcard", json!({ field: ["*a"] }), &[path]),
                ("two wildcards", json!({ field: ["a**"] }), &[path]),
                ("both", json!({ field: ["a*!"] }), &[path, path]),
                ("two filters", json!({ field: ["*a", "b!"] }), &[path, path]),
            ]);
            let below = path.replace("spec.", "spec.template.");
            assert_cases(&[
                ("of the template", json!({ "template": { field: ["*a"] } }), &[&below]),
                ("fine", json!({ "template": { field: ["a*"] } }), &[]),
            ]);
        }
    }

    #[test]
    fn addresses_and_patches() {
        let address = |text: &str| json!({ "newMacAddresses": { "net": text } });
        let path = &["spec.newMacAddresses.net"][..];
        assert_cases(&[
            ("colons", address("02:00:00:12:34:56"), &[]),
            ("dashes", address("02-00-00-12-34-AB"), &[]),
            ("dots", address("0200.0012.34ab"), &[]),
            ("none", address(""), &[]),
            ("short", address("02:00:00:12:34"), path),
            ("infiniband", address("02:00:5e:10:00:00:00:01"), path),
            ("mixed", address("02:00-00:12:34:56"), path),
            ("no digits", address("02:00:00:12:34:xx"), path),
            ("text", address("fresh"), path),
            ("patch", json!({ "patches": [r#"{"op": "remove", "path": "/metadata/labels/a"}"#, "[]"] }), &[]),
            (
                "no JSON",
                json!({ "patches": ["{}", "{op: remove}", ""] }),
                &["spec.patches[1]", "spec.patches[2]"],
            ),
        ]);
    }

    #[test]
    fn new_clones_need_snapshots() {
        let clone = read(base());
        let world = World::default().with_configuration(
            json!({ "developerConfiguration": { "disabledFeatureGates": ["Snapshot"] } }),
        );
        assert_fields("new", &world.run(|cx| check(cx, &clone, None)), &[""]);
        assert_fields("old", &world.run(|cx| check(cx, &clone, Some(&clone))), &[]);
    }
}
