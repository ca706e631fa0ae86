//! Data volumes that a virtual machine brings along.
//!
//! Whether the user may clone the source of a data volume from another namespace is a question to the cluster:
//! whoever calls these rules asks it.

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::api::core::v1::VolumeResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::data_volume::{DataVolumeSource, DataVolumeSpec};
use kubevirt_api::quantity::QuantityExt;
use kubevirt_api::vm::{DataVolumeTemplate, VirtualMachineSpec};

use crate::{Path, Problems};

/// Everything that is wrong with the data volume templates of a VM's specification that stands at `path`.
pub fn check(path: &Path<'_>, spec: &VirtualMachineSpec, problems: &mut Problems) {
    let templates = spec.data_volume_templates.as_deref().unwrap_or_default();
    if templates.is_empty() {
        return;
    }
    let used = names_in_use(spec);
    let list = path.at("dataVolumeTemplate");
    for (index, template) in templates.iter().enumerate() {
        let at = list.index(index);
        let name = name_of(template);
        if name.is_empty() {
            problems.required(&at.at("name"), "the name of the data volume is missing: set metadata.name");
        } else if !used.contains(name) {
            let message =
                format!("no volume of the template uses the data volume {name:?}: add one or drop it");
            problems.required(&at, message);
        }
        check_spec(&at, &template.spec, problems);
    }
}

fn check_spec(at: &Path<'_>, spec: &DataVolumeSpec, problems: &mut Problems) {
    let populated = match (&spec.pvc, &spec.storage) {
        (None, None) => {
            problems.invalid(&at.at("PVC.Storage"), "the data volume has no size: set storage or pvc");
            None
        }
        (Some(_), Some(_)) => {
            problems.invalid(&at.at("PVC.Storage"), "the data volume has storage and pvc: keep one of them");
            None
        }
        (Some(claim), None) => {
            check_amounts(&at.at("spec.pvc.resources"), claim.resources.as_ref(), problems);
            Some(claim.data_source.is_some() || claim.data_source_ref.is_some())
        }
        (None, Some(storage)) => {
            check_amounts(&at.at("spec.storage.resources"), storage.resources.as_ref(), problems);
            Some(storage.data_source.is_some() || storage.data_source_ref.is_some())
        }
    };
    let has_source = spec.source.is_some() || spec.source_ref.is_some();
    match populated {
        Some(true) if has_source => {
            let message =
                "the claim has a dataSource, so the data volume can have no source and no sourceRef";
            problems.invalid(&at.at("source"), message);
        }
        Some(false) if !has_source => {
            let message =
                "the data volume has no content: set source, sourceRef or the dataSource of its claim";
            problems.invalid(&at.at("source.sourceRef"), message);
        }
        _ => {}
    }
    match spec.source.as_ref().map(sources_of) {
        None | Some(1) => {}
        Some(0) => problems.invalid(&at.at("source"), "the source is empty: set one, such as http or blank"),
        Some(several) => problems.invalid(&at.at("source"), format!("{several} sources are set: keep one")),
    }
}

fn check_amounts(at: &Path<'_>, resources: Option<&VolumeResourceRequirements>, problems: &mut Problems) {
    let Some(resources) = resources else { return };
    let mut check = |field: &str, amounts: Option<&BTreeMap<String, Quantity>>| {
        for (name, amount) in amounts.into_iter().flatten() {
            if let Err(why) = amount.amount() {
                problems.invalid(&at.at(field).key(name), why.to_string());
            }
        }
    };
    check("requests", resources.requests.as_ref());
    check("limits", resources.limits.as_ref());
}

/// The data volumes and claims that the volumes of the VM's template use.
fn names_in_use(spec: &VirtualMachineSpec) -> HashSet<&str> {
    let volumes = spec.template.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let claims = volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let data_volumes = volumes.iter().filter_map(|volume| volume.data_volume.as_ref());
    claims.map(|claim| claim.claim_name.as_str()).chain(data_volumes.map(|dv| dv.name.as_str())).collect()
}

fn name_of(template: &DataVolumeTemplate) -> &str {
    template.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default()
}

fn sources_of(source: &DataVolumeSource) -> usize {
    let sources = [
        source.http.is_some(),
        source.s3.is_some(),
        source.gcs.is_some(),
        source.registry.is_some(),
        source.pvc.is_some(),
        source.upload.is_some(),
        source.blank.is_some(),
        source.imageio.is_some(),
        source.vddk.is_some(),
        source.snapshot.is_some(),
    ];
    sources.into_iter().filter(|set| *set).count()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Reason;
    use crate::testing::{assert_fields, patched, read};

    #[test]
    fn a_data_volume_has_a_size_a_source_and_a_use() {
        let base = json!({
            "metadata": {"name": "dv"},
            "spec": {"storage": {"resources": {"requests": {"storage": "1Gi"}}}, "source": {"blank": {}}},
        });
        let at = "spec.dataVolumeTemplate[0]";
        let size = "spec.dataVolumeTemplate[0].PVC.Storage";
        let source = "spec.dataVolumeTemplate[0].source";
        let none = "spec.dataVolumeTemplate[0].source.sourceRef";
        let reference = json!({"kind": "VolumeSnapshot", "name": "s"});
        let cases: Vec<(&str, Value, Vec<&str>)> = vec![
            ("whole", json!({}), vec![]),
            ("on a claim", json!({"spec": {"storage": null, "pvc": {}}}), vec![]),
            ("no name", json!({"metadata": {"name": ""}}), vec!["spec.dataVolumeTemplate[0].name"]),
            ("no metadata", json!({"metadata": null}), vec!["spec.dataVolumeTemplate[0].name"]),
            ("not used", json!({"metadata": {"name": "other"}}), vec![at]),
            ("used as a claim", json!({"metadata": {"name": "claim"}}), vec![]),
            ("no size", json!({"spec": {"storage": null}}), vec![size]),
            ("two sizes", json!({"spec": {"pvc": {}}}), vec![size]),
            ("no source", json!({"spec": {"source": null}}), vec![none]),
            ("no size and no source", json!({"spec": {"source": null, "storage": null}}), vec![size]),
            (
                "a source by reference",
                json!({"spec": {"source": null, "sourceRef": {"kind": "DataSource", "name": "x"}}}),
                vec![],
            ),
            ("an empty source", json!({"spec": {"source": {"blank": null}}}), vec![source]),
            ("two sources", json!({"spec": {"source": {"upload": {}}}}), vec![source]),
            (
                "from elsewhere",
                json!({"spec": {"source": null, "storage": {"dataSource": reference}}}),
                vec![],
            ),
            (
                "from elsewhere by reference",
                json!({"spec": {"source": null, "storage": {"dataSourceRef": reference}}}),
                vec![],
            ),
            (
                "from elsewhere, on a claim",
                json!({"spec": {"source": null, "storage": null, "pvc": {"dataSource": reference}}}),
                vec![],
            ),
            (
                "from elsewhere and from a source",
                json!({"spec": {"storage": {"dataSource": reference}}}),
                vec![source],
            ),
            (
                "from elsewhere and by reference",
                json!({"spec": {"source": null, "sourceRef": {"kind": "DataSource", "name": "x"}, "storage": {"dataSourceRef": reference}}}),
                vec![source],
            ),
            (
                "a malformed size",
                json!({"spec": {"storage": {"resources": {"requests": {"storage": "much"}}}}}),
                vec!["spec.dataVolumeTemplate[0].spec.storage.resources.requests[storage]"],
            ),
            (
                "several things",
                json!({"metadata": {"name": "other"}, "spec": {"source": {"upload": {}}}}),
                vec![at, source],
            ),
        ];
        for (case, patch, expected) in cases {
            let spec: VirtualMachineSpec = read(json!({
                "dataVolumeTemplates": [patched(&base, &patch)],
                "template": {"spec": {"domain": {"devices": {}}, "volumes": [
                    {"name": "a", "dataVolume": {"name": "dv"}},
                    {"name": "b", "persistentVolumeClaim": {"claimName": "claim"}},
                ]}},
            }));
            let mut problems = Problems::default();
            check(&Path::new("spec"), &spec, &mut problems);
            assert_fields(case, &problems, &expected);
            for problem in problems.iter() {
                let missing = problem.field == at || problem.field.ends_with(".name");
                let reason = if missing { Reason::Required } else { Reason::Invalid };
                assert_eq!(problem.reason, reason, "{case}");
            }
        }
    }

    #[test]
    fn every_source_is_enough_by_itself() {
        for source in [
            json!({"http": {"url": "u"}}),
            json!({"s3": {"url": "u"}}),
            json!({"gcs": {"url": "u"}}),
            json!({"registry": {"url": "u"}}),
            json!({"pvc": {"namespace": "n", "name": "p"}}),
            json!({"upload": {}}),
            json!({"blank": {}}),
            json!({"imageio": {"url": "u", "diskId": "d"}}),
            json!({"vddk": {}}),
            json!({"snapshot": {"namespace": "n", "name": "s"}}),
        ] {
            assert_eq!(sources_of(&read(source.clone())), 1, "{source}");
        }
    }
}
