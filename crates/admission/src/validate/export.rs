//! Exports: the volumes of a virtual machine, a snapshot, a claim, a backup or a template for download.

use kubevirt_api::export::VirtualMachineExport;
use kubevirt_api::names::groups;

use super::same::same;
use crate::{Context, Gate, Path, Problems};

/// The kinds that can be exported, each with its group; claims are in the group without a name.
const SOURCES: [(&str, &str); 5] = [
    ("PersistentVolumeClaim", ""),
    ("VirtualMachineSnapshot", groups::SNAPSHOT),
    ("VirtualMachine", groups::KUBEVIRT),
    ("VirtualMachineBackup", groups::BACKUP),
    ("VirtualMachineTemplate", groups::TEMPLATE),
];

/// Everything that is wrong with an export.
pub fn check(cx: &Context<'_>, new: &VirtualMachineExport, old: Option<&VirtualMachineExport>) -> Problems {
    let mut problems = Problems::default();
    if let Some(old) = old {
        if !same(&new.spec, &old.spec) {
            problems.invalid(&Path::new("spec"), "an export cannot be changed: make another");
        }
        return problems;
    }
    let path = Path::new("spec.source");
    let source = &new.spec.source;
    let Some((kind, group)) = SOURCES.iter().find(|(kind, _)| *kind == source.kind) else {
        let kinds = SOURCES.map(|(kind, _)| kind).join(", ");
        problems.invalid(&path.at("kind"), format!("{:?} cannot be exported: only {kinds} can", source.kind));
        return problems;
    };
    if *kind == "VirtualMachineTemplate" && !templates_can_be_exported(cx) {
        let message = "exports of templates need the feature gate OCIExport and virt-template to be deployed";
        problems.invalid(&path.at("kind"), message);
        return problems;
    }
    if source.name.is_empty() {
        problems.invalid(&path.at("name"), format!("the name of the {kind} is missing"));
    }
    if source.api_group.as_deref().unwrap_or_default() != *group {
        let message = match *group {
            "" => format!("a {kind} has no API group: leave it out"),
            group => format!("the API group of a {kind} is {group}"),
        };
        problems.invalid(&path.at("APIGroup"), message);
    }
    problems
}

fn templates_can_be_exported(cx: &Context<'_>) -> bool {
    let deployment = cx.config.configuration().virt_template_deployment.as_ref();
    cx.config.enabled(Gate::OciExport)
        && cx.config.enabled(Gate::Template)
        && deployment.is_none_or(|deployment| deployment.enabled != Some(false))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{World, assert_fields, read};

    fn export(source: &Value) -> VirtualMachineExport {
        read(json!({"metadata": {"name": "e", "namespace": "default"}, "spec": {"source": source}}))
    }

    #[test]
    fn an_export_has_a_known_source() {
        let world = World::default().with_gates(&["OCIExport"]);
        let found = |source: &Value| world.run(|cx| check(cx, &export(source), None));
        for (kind, group) in SOURCES {
            assert_fields(kind, &found(&json!({"kind": kind, "apiGroup": group, "name": "x"})), &[]);
            let nameless = found(&json!({"kind": kind, "apiGroup": group, "name": ""}));
            assert_fields(kind, &nameless, &["spec.source.name"]);
            let other = found(&json!({"kind": kind, "apiGroup": "apps", "name": "x"}));
            assert_fields(kind, &other, &["spec.source.APIGroup"]);
            let both = found(&json!({"kind": kind, "apiGroup": "apps", "name": ""}));
            assert_fields(kind, &both, &["spec.source.name", "spec.source.APIGroup"]);
            let absent = found(&json!({"kind": kind, "name": "x"}));
            let expected: &[&str] = if group.is_empty() { &[] } else { &["spec.source.APIGroup"] };
            assert_fields(kind, &absent, expected);
        }
        let unknown = found(&json!({"kind": "Pod", "apiGroup": "", "name": ""}));
        assert_fields("another kind", &unknown, &["spec.source.kind"]);
    }

    #[test]
    fn templates_are_exported_where_they_are_deployed() {
        let source = json!({"kind": "VirtualMachineTemplate", "apiGroup": "x", "name": ""});
        let kind: &[&str] = &["spec.source.kind"];
        let cases = [
            ("by default", json!({}), kind),
            (
                "with the gate",
                json!({"developerConfiguration": {"featureGates": ["OCIExport"]}}),
                &["spec.source.name", "spec.source.APIGroup"],
            ),
            (
                "without templates",
                json!({"developerConfiguration": {"featureGates": ["OCIExport"], "disabledFeatureGates": ["Template"]}}),
                kind,
            ),
            (
                "not deployed",
                json!({"developerConfiguration": {"featureGates": ["OCIExport"]}, "virtTemplateDeployment": {"enabled": false}}),
                kind,
            ),
            (
                "deployed",
                json!({"developerConfiguration": {"featureGates": ["OCIExport"]}, "virtTemplateDeployment": {"enabled": true}}),
                &["spec.source.name", "spec.source.APIGroup"],
            ),
        ];
        for (case, configuration, expected) in cases {
            let world = World::default().with_configuration(configuration);
            assert_fields(case, &world.run(|cx| check(cx, &export(&source), None)), expected);
        }
    }

    #[test]
    fn an_export_does_not_change() {
        let old = export(&json!({"kind": "VirtualMachine", "apiGroup": "kubevirt.io", "name": "vm"}));
        let mut new = old.clone();
        let world = World::default().updating();
        assert_fields("nothing", &world.run(|cx| check(cx, &new, Some(&old))), &[]);
        new.spec.token_secret_ref = Some(String::new());
        assert_fields("an empty token", &world.run(|cx| check(cx, &new, Some(&old))), &[]);
        new.spec.token_secret_ref = Some("t".into());
        assert_fields("a token", &world.run(|cx| check(cx, &new, Some(&old))), &["spec"]);
    }
}
