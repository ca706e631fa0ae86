//! The objects of an upload: a data volume or a claim, a data source, and the wish for a token.

use std::collections::BTreeMap;

use kubevirt_api::data_volume::DataVolumeContentType;
use kubevirt_api::names::external::cdi;
use kubevirt_api::names::groups;
use serde_json::{Map, Value, json};

use super::plan::Plan;

/// The group of tokens for uploads.
pub const UPLOAD: &str = "upload.cdi.kubevirt.io";
/// The version of the importer's objects.
pub const VERSION: &str = "v1beta1";

/// A data volume that waits for an upload. The importer fills in what is left open.
pub fn data_volume(plan: &Plan, namespace: &str) -> Value {
    let mut storage = request(plan);
    if let Some(mode) = &plan.access_mode {
        storage.insert("accessModes".into(), json!([mode]));
    }
    let annotations = plan.force_bind.then(|| json!({ cdi::BIND_IMMEDIATE: "" }));
    json!({
        "apiVersion": format!("{}/{VERSION}", groups::CDI),
        "kind": "DataVolume",
        "metadata": metadata(plan, namespace, annotations, plan.labels.clone()),
        "spec": {
            "source": { "upload": {} },
            "contentType": content_type(plan).as_str(),
            "storage": storage,
        },
    })
}

/// A claim that waits for an upload.
pub fn claim(plan: &Plan, namespace: &str) -> Value {
    let mut spec = request(plan);
    spec.insert("accessModes".into(), json!([plan.access_mode.as_deref().unwrap_or("ReadWriteOnce")]));
    let mut annotations = json!({ cdi::UPLOAD_TARGET: "", cdi::CONTENT_TYPE: content_type(plan).as_str() });
    if plan.force_bind {
        annotations[cdi::BIND_IMMEDIATE] = "".into();
    }
    let mut labels = plan.labels.clone();
    labels.insert(cdi::APPLY_STORAGE_PROFILE.to_owned(), "true".to_owned());
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(plan, namespace, Some(annotations), labels),
        "spec": spec,
    })
}

/// What both ask for.
fn request(plan: &Plan) -> Map<String, Value> {
    let mut spec = Map::new();
    let size = plan.size.as_ref().map(|size| size.0.as_str());
    spec.insert("resources".into(), json!({ "requests": { "storage": size } }));
    if let Some(class) = &plan.storage_class {
        spec.insert("storageClassName".into(), class.as_str().into());
    }
    if let Some(mode) = plan.volume_mode {
        spec.insert("volumeMode".into(), mode.into());
    }
    spec
}

fn metadata(
    plan: &Plan,
    namespace: &str,
    annotations: Option<Value>,
    labels: BTreeMap<String, String>,
) -> Value {
    let mut metadata = json!({ "name": plan.name, "namespace": namespace });
    if let Some(annotations) = annotations {
        metadata["annotations"] = annotations;
    }
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
    }
    metadata
}

fn content_type(plan: &Plan) -> DataVolumeContentType {
    if plan.archive { DataVolumeContentType::Archive } else { DataVolumeContentType::Kubevirt }
}

/// A data source that points to the volume.
pub fn data_source(plan: &Plan, namespace: &str) -> Value {
    json!({
        "apiVersion": format!("{}/{VERSION}", groups::CDI),
        "kind": "DataSource",
        "metadata": metadata(plan, namespace, None, plan.labels.clone()),
        "spec": { "source": { "pvc": { "name": plan.name, "namespace": namespace } } },
    })
}

/// A merge patch that makes a data source point to the volume, and nowhere else.
pub fn pointing(plan: &Plan, namespace: &str) -> Value {
    let source =
        json!({ "pvc": { "name": plan.name, "namespace": namespace }, "snapshot": null, "dataSource": null });
    json!({ "metadata": { "labels": plan.labels }, "spec": { "source": source } })
}

/// The wish for a token.
pub fn token_request(plan: &Plan, namespace: &str) -> Value {
    json!({
        "apiVersion": format!("{UPLOAD}/{VERSION}"),
        "kind": "UploadTokenRequest",
        "metadata": { "generateName": "token-for-virtctl-", "namespace": namespace },
        "spec": { "pvcName": plan.name },
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::PersistentVolumeClaim;
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
    use kubevirt_api::data_volume::DataVolume;

    use super::super::plan::Kind;
    use super::*;

    fn plan() -> Plan {
        Plan {
            kind: Kind::DataVolume,
            name: "a".into(),
            file: "f".into(),
            archive: false,
            size: Some(Quantity("1Gi".into())),
            storage_class: None,
            access_mode: None,
            volume_mode: None,
            no_create: false,
            force_bind: false,
            data_source: false,
            labels: BTreeMap::new(),
            proxy: None,
            insecure: false,
            retries: 0,
            wait: Duration::ZERO,
        }
    }

    fn rich() -> Plan {
        Plan {
            archive: true,
            storage_class: Some("s".into()),
            access_mode: Some("ReadWriteMany".into()),
            volume_mode: Some("Filesystem"),
            force_bind: true,
            labels: BTreeMap::from([("l".to_owned(), "v".to_owned())]),
            ..plan()
        }
    }

    #[test]
    fn data_volumes_wait_for_an_upload() {
        let expected = json!({
            "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
            "metadata": { "name": "a", "namespace": "ns" },
            "spec": {
                "source": { "upload": {} }, "contentType": "kubevirt",
                "storage": { "resources": { "requests": { "storage": "1Gi" } } },
            },
        });
        let made = data_volume(&plan(), "ns");
        assert_eq!(made, expected);
        let typed: DataVolume = serde_json::from_value(made.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), made);
        let made = data_volume(&rich(), "ns");
        assert_eq!(made["metadata"]["annotations"], json!({ cdi::BIND_IMMEDIATE: "" }));
        assert_eq!(made["metadata"]["labels"], json!({ "l": "v" }));
        assert_eq!(made["spec"]["contentType"], "archive");
        let storage = json!({
            "accessModes": ["ReadWriteMany"], "resources": { "requests": { "storage": "1Gi" } },
            "storageClassName": "s", "volumeMode": "Filesystem",
        });
        assert_eq!(made["spec"]["storage"], storage);
    }

    #[test]
    fn claims_wait_for_an_upload() {
        let made = claim(&plan(), "ns");
        let expected = json!({
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
        });
        assert_eq!(made["spec"], expected);
        assert_eq!(
            made["metadata"]["annotations"],
            json!({ cdi::UPLOAD_TARGET: "", cdi::CONTENT_TYPE: "kubevirt" })
        );
        assert_eq!(made["metadata"]["labels"], json!({ cdi::APPLY_STORAGE_PROFILE: "true" }));
        let typed: PersistentVolumeClaim = serde_json::from_value(made.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), made);
        let made = claim(&rich(), "ns");
        assert_eq!(made["metadata"]["annotations"][cdi::CONTENT_TYPE], "archive");
        assert_eq!(made["metadata"]["annotations"][cdi::BIND_IMMEDIATE], "");
        assert_eq!(made["metadata"]["labels"]["l"], "v");
    }

    #[test]
    fn a_data_source_points_to_the_volume() {
        let made = data_source(&rich(), "ns");
        assert_eq!(made["spec"], json!({ "source": { "pvc": { "name": "a", "namespace": "ns" } } }));
        assert_eq!(pointing(&rich(), "ns")["spec"]["source"]["pvc"], made["spec"]["source"]["pvc"]);
        assert_eq!(token_request(&plan(), "ns")["spec"], json!({ "pvcName": "a" }));
    }
}
