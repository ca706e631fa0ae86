//! What the pods of all components have in common.

use kubevirt_api::names::components::{PRIORITY_CLASS, secrets};
use kubevirt_api::names::external::kubernetes::{APP_COMPONENT, APP_NAME};
use kubevirt_api::names::{labels, values};
use serde_json::{Value, json};

use crate::config::InstallConfig;

/// Where every component answers over TLS: webhooks, metrics, health.
pub(super) const PORT: u16 = 8443;
/// Where the certificates of the authority are.
pub(super) const CA_FOLDER: &str = "/etc/kubevirt/ca";

/// A pod with one container, which runs a component.
pub(super) fn template(
    config: &InstallConfig,
    component: &str,
    account: &str,
    arguments: &[String],
) -> Value {
    let images = &config.images;
    let mut spec = json!({
        "serviceAccountName": account,
        "priorityClassName": PRIORITY_CLASS,
        "containers": [{
            "name": component,
            "image": images.components,
            "imagePullPolicy": images.pull_policy,
            "command": [component],
            "args": arguments,
            "ports": [{ "name": "metrics", "protocol": "TCP", "containerPort": PORT }],
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [],
        }],
        "volumes": [],
    });
    if !images.pull_secrets.is_empty() {
        let reference = |name: &String| json!({ "name": name });
        spec["imagePullSecrets"] = images.pull_secrets.iter().map(reference).collect();
    }
    json!({
        "metadata": { "labels": {
            labels::APP: component,
            APP_NAME: component,
            APP_COMPONENT: values::component::KUBEVIRT,
            labels::PROMETHEUS: "true",
            labels::ALLOW_ACCESS_CLUSTER_SERVICES: "true",
        } },
        "spec": spec,
    })
}

/// Mounts a volume into the pod's only container.
pub(super) fn mount(pod: &mut Value, name: &str, source: (&str, Value), mount: Value) {
    let (kind, source) = source;
    push(&mut pod["volumes"], json!({ "name": name, kind: source }));
    let mut mount = mount;
    mount["name"] = name.into();
    push(&mut pod["containers"][0]["volumeMounts"], mount);
}

/// Mounts a certificate. A pod starts without it and finds it when it comes.
pub(super) fn mount_certificate(pod: &mut Value, secret: &str, folder: &str) {
    let source = ("secret", json!({ "secretName": secret, "optional": true }));
    mount(pod, secret, source, json!({ "mountPath": folder, "readOnly": true }));
}

/// Mounts what to trust of peers.
pub(super) fn mount_authority(pod: &mut Value) {
    let source = ("configMap", json!({ "name": secrets::CA, "optional": true }));
    mount(pod, secrets::CA, source, json!({ "mountPath": CA_FOLDER, "readOnly": true }));
}

/// Asks a path whether the component is well.
pub(super) fn probe(path: &str, period: u32, failures: u32) -> Value {
    json!({
        "httpGet": { "scheme": "HTTPS", "port": PORT, "path": path },
        "timeoutSeconds": 10,
        "periodSeconds": period,
        "failureThreshold": failures,
    })
}

fn push(list: &mut Value, value: Value) {
    if let Value::Array(list) = list {
        list.push(value);
    }
}
