//! What the cluster's API server hands over to virt-api: subresources of machines.

use kubevirt_api::names::annotations::CERTIFICATE_SECRET;
use kubevirt_api::names::components::{API, secrets};
use kubevirt_api::names::{groups, labels};
use serde_json::{Value, json};

use super::metadata;
use super::secrets::ca_bundle;
use crate::config::InstallConfig;

const VERSIONS: [&str; 2] = ["v1", "v1alpha3"];

/// One for each version.
pub fn all(config: &InstallConfig) -> Vec<Value> {
    VERSIONS.iter().map(|version| api_service(config, version)).collect()
}

fn api_service(config: &InstallConfig, version: &str) -> Value {
    let mut metadata = metadata::global(&format!("{version}.{}", groups::SUBRESOURCES));
    metadata["labels"][labels::APP] = "virt-api-aggregator".into();
    metadata["annotations"] = json!({ CERTIFICATE_SECRET: secrets::API });
    json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": metadata,
        "spec": {
            "group": groups::SUBRESOURCES,
            "version": version,
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "service": { "namespace": config.namespace, "name": API, "port": 443 },
            "caBundle": ca_bundle(config),
        },
    })
}
