//! The `KubeVirt` object, by which the components are configured.

use k8s_openapi::api::core::v1::LocalObjectReference;
use kubevirt_api::kubevirt::KubeVirtSpec;
use kubevirt_api::kubevirt::install::{ComponentConfig, NodePlacement};
use kubevirt_api::names::groups::KUBEVIRT_V1;
use serde_json::{Value, json};

use super::metadata;
use crate::config::InstallConfig;

/// Its name.
pub const NAME: &str = "kubevirt";

/// The object. It says what the installation was made from, so that the operator can take over.
pub fn installation(config: &InstallConfig) -> Value {
    json!({
        "apiVersion": KUBEVIRT_V1,
        "kind": "KubeVirt",
        "metadata": metadata::local(config, NAME),
        "spec": spec(config),
    })
}

fn spec(config: &InstallConfig) -> KubeVirtSpec {
    let secrets = &config.images.pull_secrets;
    let reference = |name: &String| LocalObjectReference { name: name.clone() };
    let placed =
        |placement: &NodePlacement| (*placement != NodePlacement::default()).then(|| placement.clone());
    let workloads = placed(&config.workloads);
    KubeVirtSpec {
        image_pull_policy: Some(config.images.pull_policy.clone()),
        image_pull_secrets: (!secrets.is_empty()).then(|| secrets.iter().map(reference).collect()),
        configuration: Some(config.configuration.clone()),
        infra: Some(ComponentConfig {
            node_placement: placed(&config.infra),
            replicas: Some(config.replicas.into()),
        }),
        workloads: workloads.map(|place| ComponentConfig { node_placement: Some(place), replicas: None }),
        ..KubeVirtSpec::default()
    }
}
