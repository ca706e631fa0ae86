//! Services, by which the cluster reaches the components.

use kubevirt_api::names::components::{API, OPERATOR, services};
use kubevirt_api::names::labels;
use serde_json::{Value, json};

use super::{metadata, pods};
use crate::config::InstallConfig;

/// All of them but the operator's.
pub fn all(config: &InstallConfig) -> Vec<Value> {
    vec![api(config), metrics(config)]
}

/// virt-api, for webhooks and subresources.
pub fn api(config: &InstallConfig) -> Value {
    let port = json!({ "port": 443, "protocol": "TCP", "targetPort": pods::PORT });
    service(metadata::of_component(config, API, API), &json!({ labels::APP: API }), &port)
}

/// The operator's webhooks.
pub fn operator_webhook(config: &InstallConfig) -> Value {
    let port = json!({ "name": "webhooks", "port": 443, "protocol": "TCP", "targetPort": "webhooks" });
    let metadata = metadata::local(config, services::OPERATOR_WEBHOOK);
    service(metadata, &json!({ labels::APP: OPERATOR }), &port)
}

/// The metrics of all components; without an address, since each pod is asked on its own.
pub fn metrics(config: &InstallConfig) -> Value {
    let port = json!({ "name": "metrics", "port": 443, "protocol": "TCP", "targetPort": "metrics" });
    let mut metadata = metadata::local(config, services::METRICS);
    metadata["labels"][labels::PROMETHEUS] = "true".into();
    let mut service = service(metadata, &json!({ labels::PROMETHEUS: "true" }), &port);
    service["spec"]["clusterIP"] = "None".into();
    service
}

fn service(metadata: Value, selector: &Value, port: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": { "type": "ClusterIP", "selector": selector, "ports": [port] },
    })
}
