//! What the cluster's API server hands over to virt-api: subresources of machines.

use kubevirt_api::names::annotations::CERTIFICATE_SECRET;
use kubevirt_api::names::components::{API, secrets};
use kubevirt_api::names::{groups, labels};
use serde_json::{Value, json};

use super::metadata;
use super::secrets::ca_bundle;
use crate::config::InstallConfig;

/// The groups, each with its versions.
const GROUPS: [(&str, [&str; 2]); 2] = [
    (groups::SUBRESOURCES, ["v1", "v1alpha3"]),
    // Nothing is done there yet, but who asks is told so.
    (groups::TEMPLATE_SUBRESOURCES, ["v1alpha1", "v1beta1"]),
];

/// One for each version of each group.
pub fn all(config: &InstallConfig) -> Vec<Value> {
    let versions = GROUPS.iter().flat_map(|(group, versions)| versions.iter().map(move |it| (group, it)));
    versions.map(|(group, version)| api_service(config, group, version)).collect()
}

fn api_service(config: &InstallConfig, group: &str, version: &str) -> Value {
    let mut metadata = metadata::global(&format!("{version}.{group}"));
    metadata["labels"][labels::APP] = "virt-api-aggregator".into();
    metadata["annotations"] = json!({ CERTIFICATE_SECRET: secrets::API });
    json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": metadata,
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "service": { "namespace": config.namespace, "name": API, "port": 443 },
            "caBundle": ca_bundle(config),
        },
    })
}
