//! virt-handler, on every node that runs machines.

use kubevirt_api::names::components::{HANDLER, LAUNCHER, NODE_LABELLER, secrets};
use kubevirt_api::names::external::openshift;
use kubevirt_api::names::{accounts, labels};
use serde_json::{Value, json};

use super::deployments::CONSOLE_PORT;
use super::pods::{self, PORT};
use super::{metadata, placement};
use crate::config::InstallConfig;

/// Where the node labeller of the launcher's image leaves what it found.
pub const LABELLER_FOLDER: &str = "/var/lib/kubevirt-node-labeller";

/// How long a handler may take to leave, and what it is told of that.
const GRACE: u32 = 330;
const GRACE_TOLD: u32 = GRACE - 15;

/// virt-handler.
pub fn handler(config: &InstallConfig) -> Value {
    let mut metadata = metadata::of_component(config, HANDLER, HANDLER);
    metadata["labels"][labels::SUPPORTS_MIGRATION_CN_TYPES] = "true".into();
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata,
        "spec": {
            "selector": { "matchLabels": { labels::APP: HANDLER } },
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "10%" } },
            "template": template(config),
        },
    })
}

fn arguments(config: &InstallConfig) -> Vec<String> {
    let flags = [
        ("--port", PORT.to_string()),
        ("--hostname-override", "$(NODE_NAME)".to_owned()),
        ("--pod-ip-address", "$(MY_POD_IP)".to_owned()),
        ("--max-metric-requests", "3".to_owned()),
        ("--console-server-port", CONSOLE_PORT.to_string()),
        ("--graceful-shutdown-seconds", GRACE_TOLD.to_string()),
        ("-v", config.verbosity.to_string()),
    ];
    flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
}

fn template(config: &InstallConfig) -> Value {
    let mut template = pods::template(config, HANDLER, accounts::HANDLER, &arguments(config));
    template["metadata"]["annotations"] = json!({ openshift::REQUIRED_SCC: accounts::HANDLER });
    let pod = &mut template["spec"];
    pod["terminationGracePeriodSeconds"] = GRACE.into();
    // Launchers are found by their processes.
    pod["hostPID"] = true.into();
    pod["initContainers"] = json!([labeller(config)]);
    placement::workloads(pod, &config.workloads);

    let container = &mut pod["containers"][0];
    container["env"] =
        json!([from_field("NODE_NAME", "spec.nodeName"), from_field("MY_POD_IP", "status.podIP")]);
    container["livenessProbe"] = pods::probe("/healthz", 45, 3);
    container["readinessProbe"] = pods::probe("/readyz", 5, 3);
    container["resources"] = json!({ "requests": { "cpu": "100m", "memory": "50Mi" } });
    container["securityContext"] = privileged();

    for (secret, folder) in [
        (secrets::HANDLER_CLIENT, "/etc/virt-handler/clientcertificates"),
        (secrets::HANDLER_SERVER, "/etc/virt-handler/servercertificates"),
        (secrets::HANDLER_MIGRATION_CLIENT, "/etc/virt-handler/migrationservercertificates"),
        (secrets::HANDLER_VSOCK_CLIENT, "/etc/virt-handler/vsockclientcertificates"),
    ] {
        pods::mount_certificate(pod, secret, folder);
    }
    pods::mount_authority(pod);
    mount_host(pod);
    template
}

/// The folders of the node that handler, launchers and kubelet share.
fn mount_host(pod: &mut Value) {
    const BOTH_WAYS: &str = "Bidirectional";
    let folders = [
        ("virt-share-dir", "/var/run/kubevirt", Some(BOTH_WAYS)),
        ("virt-private-dir", "/var/run/kubevirt-private", None),
        // Pods, device plugins and what the kubelet tells of CPUs. What is mounted below pods must reach them.
        ("kubelet", "/var/lib/kubelet", Some(BOTH_WAYS)),
    ];
    for (name, path, propagation) in folders {
        let mut mount = json!({ "mountPath": path });
        if let Some(propagation) = propagation {
            mount["mountPropagation"] = propagation.into();
        }
        let source = json!({ "path": path, "type": "DirectoryOrCreate" });
        pods::mount(pod, name, ("hostPath", source), mount);
    }
    let mount = json!({ "mountPath": LABELLER_FOLDER, "readOnly": true });
    pods::mount(pod, NODE_LABELLER, ("emptyDir", json!({})), mount);
}

/// Asks the hypervisor of the launcher's image what this node can do.
fn labeller(config: &InstallConfig) -> Value {
    json!({
        "name": LAUNCHER,
        "image": config.images.launcher,
        "imagePullPolicy": config.images.pull_policy,
        "command": [NODE_LABELLER],
        "args": ["--output", LABELLER_FOLDER],
        "securityContext": privileged(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{ "name": NODE_LABELLER, "mountPath": LABELLER_FOLDER }],
    })
}

/// The images have users of their own, who are nobody.
fn privileged() -> Value {
    json!({ "privileged": true, "runAsUser": 0, "seLinuxOptions": { "level": "s0" } })
}

fn from_field(name: &str, path: &str) -> Value {
    json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } })
}
