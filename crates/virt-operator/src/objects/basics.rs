//! The namespace and the priority of the components.

use kubevirt_api::names::components::PRIORITY_CLASS;
use kubevirt_api::names::external::openshift;
use serde_json::{Value, json};

use super::metadata;
use crate::config::InstallConfig;

/// The namespace. Handlers are privileged, so it must let such pods in.
pub fn namespace(config: &InstallConfig) -> Value {
    let mut metadata = metadata::global(&config.namespace);
    metadata["labels"]["pod-security.kubernetes.io/enforce"] = "privileged".into();
    metadata["labels"][openshift::CLUSTER_MONITORING] = "true".into();
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })
}

/// The priority of the components: the highest that is not the cluster's own.
pub fn priority_class() -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata::global(PRIORITY_CLASS),
        "description": "For the components of KubeVirt only.",
        "value": 1_000_000_000,
    })
}
