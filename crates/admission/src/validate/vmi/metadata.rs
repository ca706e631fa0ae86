//! Labels that only our own components set, and annotations behind feature gates.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubevirt_api::names::{annotations, labels};

use crate::{Context, Gate, Path, Problems};

/// Labels by which our own components find their objects; not for users.
const OWN_LABELS: [&str; 6] = [
    labels::CREATED_BY,
    labels::MIGRATION_JOB_UID,
    labels::NODE_NAME,
    labels::MIGRATION_TARGET_NODE_NAME,
    labels::NODE_SCHEDULABLE,
    labels::INSTALL_STRATEGY,
];

/// Annotations that need a feature gate.
const GATED_ANNOTATIONS: [(&str, Gate); 2] =
    [(annotations::IGNITION_DATA, Gate::Ignition), (annotations::HOOK_SIDECARS, Gate::Sidecar)];

/// Everything that is wrong with the metadata, at `path`, of an instance or of the template of one.
pub fn check(cx: &Context<'_>, path: &Path<'_>, metadata: &ObjectMeta, problems: &mut Problems) {
    if !cx.by_own_component()
        && let Some((label, _)) = own_labels(metadata.labels.as_ref()).next()
    {
        problems.not_supported(&path.at("labels"), format!("the label {label} is not for users; remove it"));
    }
    let own = metadata.annotations.as_ref();
    for (name, gate) in GATED_ANNOTATIONS {
        let given = own.and_then(|all| all.get(name)).is_some_and(|value| !value.is_empty());
        if given && !cx.config.enabled(gate) {
            let message = format!("{name} needs the feature gate {}, which is off", gate.name());
            problems.invalid(&path.at("annotations"), message);
        }
    }
}

/// The labels that only our own components set.
pub(super) fn own_labels(labels: Option<&BTreeMap<String, String>>) -> impl Iterator<Item = (&str, &str)> {
    OWN_LABELS.into_iter().filter_map(move |name| {
        let (name, value) = labels?.get_key_value(name)?;
        Some((name.as_str(), value.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde_json::json;

    use super::OWN_LABELS;
    use crate::testing::{World, assert_fields, read};
    use crate::{Path, Problems, Reason};

    fn problems(world: &World, metadata: serde_json::Value) -> Problems {
        let metadata: ObjectMeta = read(metadata);
        let mut problems = Problems::default();
        world.run(|cx| super::check(cx, &Path::new("spec.template.metadata"), &metadata, &mut problems));
        problems
    }

    #[test]
    fn our_own_labels_are_not_for_users() {
        for label in OWN_LABELS {
            let metadata = json!({ "labels": { label: "x", "app": "web" } });
            let found = problems(&World::default(), metadata.clone());
            assert_fields(label, &found, &["spec.template.metadata.labels"]);
            assert!(found.iter().all(|problem| problem.reason == Reason::NotSupported));
            assert_fields(label, &problems(&World::default().by_controller(), metadata), &[]);
        }
        let others = json!({ "labels": { "kubevirt.io/size": "small", "app": "web" } });
        assert_fields("others", &problems(&World::default(), others), &[]);
        let all: serde_json::Map<_, _> =
            OWN_LABELS.iter().map(|label| ((*label).to_owned(), json!("x"))).collect();
        let all = problems(&World::default(), json!({ "labels": all }));
        assert_fields("one problem for all", &all, &["spec.template.metadata.labels"]);
    }

    #[test]
    fn annotations_behind_gates() {
        for (annotation, gate) in [
            ("kubevirt.io/ignitiondata", "ExperimentalIgnitionSupport"),
            ("hooks.kubevirt.io/hookSidecars", "Sidecar"),
        ] {
            let metadata = json!({ "annotations": { annotation: "{}" } });
            let off = problems(&World::default(), metadata.clone());
            assert_fields(annotation, &off, &["spec.template.metadata.annotations"]);
            assert_fields(annotation, &problems(&World::default().with_gates(&[gate]), metadata), &[]);
            let empty = json!({ "annotations": { annotation: "" } });
            assert_fields(annotation, &problems(&World::default(), empty), &[]);
        }
    }
}
