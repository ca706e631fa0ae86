//! virt-api and virt-controller, and how many of them must always run.

use kubevirt_api::names::components::{self, secrets};
use kubevirt_api::names::external::openshift;
use kubevirt_api::names::{accounts, labels};
use serde_json::{Value, json};

use super::pods::{self, PORT};
use super::{metadata, placement};
use crate::config::InstallConfig;

/// Where virt-handler serves consoles.
pub(super) const CONSOLE_PORT: u16 = 8186;

/// virt-api.
pub fn api(config: &InstallConfig) -> Value {
    let arguments = [
        ("--port", PORT.to_string()),
        ("--console-server-port", CONSOLE_PORT.to_string()),
        ("-v", config.verbosity.to_string()),
    ];
    let mut template = template(config, components::API, accounts::API, &arguments);
    let pod = &mut template["spec"];
    pods::mount_certificate(pod, secrets::API, "/etc/virt-api/certificates");
    pods::mount_certificate(pod, secrets::HANDLER_CLIENT, "/etc/virt-handler/clientcertificates");
    pods::mount_authority(pod);
    let container = &mut pod["containers"][0];
    container["livenessProbe"] = pods::probe("/healthz", 10, 8);
    container["readinessProbe"] = pods::probe("/readyz", 5, 3);
    container["resources"] = json!({ "requests": { "cpu": "100m", "memory": "50Mi" } });
    deployment(config, components::API, template)
}

/// virt-controller.
pub fn controller(config: &InstallConfig) -> Value {
    let arguments = [
        ("--launcher-image", config.images.launcher.clone()),
        ("--port", PORT.to_string()),
        ("-v", config.verbosity.to_string()),
    ];
    let mut template = template(config, components::CONTROLLER, accounts::CONTROLLER, &arguments);
    let pod = &mut template["spec"];
    pods::mount_certificate(pod, secrets::CONTROLLER, "/etc/virt-controller/certificates");
    let container = &mut pod["containers"][0];
    container["livenessProbe"] = pods::probe("/healthz", 10, 8);
    container["readinessProbe"] = pods::probe("/leader", 5, 3);
    container["resources"] = json!({ "requests": { "cpu": "100m", "memory": "50Mi" } });
    deployment(config, components::CONTROLLER, template)
}

/// How many of a deployment must run while nodes are emptied; a single one may go, as nothing else could.
pub fn budget(config: &InstallConfig, deployment: &Value) -> Option<Value> {
    let name = deployment["metadata"]["name"].as_str()?;
    let (name, least) = (format!("{name}-pdb"), config.replicas.checked_sub(1)?);
    (least > 0).then(|| {
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata::local(config, &name),
            "spec": { "minAvailable": least, "selector": deployment["spec"]["selector"] },
        })
    })
}

/// A pod without any privilege, which writes no files.
fn template(config: &InstallConfig, component: &str, account: &str, flags: &[(&str, String)]) -> Value {
    let arguments: Vec<String> =
        flags.iter().flat_map(|(flag, value)| [(*flag).to_owned(), value.clone()]).collect();
    let mut template = pods::template(config, component, account, &arguments);
    template["metadata"]["annotations"] = json!({ openshift::REQUIRED_SCC: "restricted-v2" });
    let seccomp = json!({ "type": "RuntimeDefault" });
    let pod = &mut template["spec"];
    pod["securityContext"] = json!({ "runAsNonRoot": true, "seccompProfile": seccomp });
    pod["containers"][0]["securityContext"] = json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
        "seccompProfile": seccomp,
    });
    placement::infra(pod, component, &config.infra);
    template
}

fn deployment(config: &InstallConfig, component: &str, template: Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata::of_component(config, component, component),
        "spec": {
            "replicas": config.replicas,
            "selector": { "matchLabels": { labels::APP: component } },
            "template": template,
        },
    })
}
