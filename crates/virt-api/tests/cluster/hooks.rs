//! The webhook configurations of a test, as an installation has them but for its own namespace only.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// Path, operations, group and resources, as the reference lists them; mutating ones first.
const MUTATING: [(&str, &[&str], &str, &[&str]); 4] = [
    ("/virtualmachines-mutate", &["CREATE", "UPDATE"], "kubevirt.io", &["virtualmachines"]),
    ("/virtualmachineinstances-mutate", &["CREATE", "UPDATE"], "kubevirt.io", &["virtualmachineinstances"]),
    ("/migration-mutate-create", &["CREATE"], "kubevirt.io", &["virtualmachineinstancemigrations"]),
    ("/vm-clone-mutate-create", &["CREATE"], "clone.kubevirt.io", &["virtualmachineclones"]),
];

const BOTH: &[&str] = &["CREATE", "UPDATE"];
const INSTANCETYPE: &str = "instancetype.kubevirt.io";

const VALIDATING: [(&str, &[&str], &str, &[&str]); 22] = [
    ("/pod-eviction-validate", &["*"], "", &["pods/eviction"]),
    ("/virtualmachineinstances-validate-create", &["CREATE"], "kubevirt.io", &["virtualmachineinstances"]),
    ("/virtualmachineinstances-validate-update", &["UPDATE"], "kubevirt.io", &["virtualmachineinstances"]),
    ("/virtualmachines-validate", BOTH, "kubevirt.io", &["virtualmachines"]),
    ("/virtualmachinereplicaset-validate", BOTH, "kubevirt.io", &["virtualmachineinstancereplicasets"]),
    ("/virtualmachinepool-validate", BOTH, "pool.kubevirt.io", &["virtualmachinepools"]),
    ("/vmipreset-validate", BOTH, "kubevirt.io", &["virtualmachineinstancepresets"]),
    ("/migration-validate-create", &["CREATE"], "kubevirt.io", &["virtualmachineinstancemigrations"]),
    ("/migration-validate-update", &["UPDATE"], "kubevirt.io", &["virtualmachineinstancemigrations"]),
    ("/virtualmachinesnapshots-validate", BOTH, "snapshot.kubevirt.io", &["virtualmachinesnapshots"]),
    ("/virtualmachinerestores-validate", BOTH, "snapshot.kubevirt.io", &["virtualmachinerestores"]),
    ("/virtualmachinebackups-validate", BOTH, "backup.kubevirt.io", &["virtualmachinebackups"]),
    ("/virtualmachinebackuptrackers-validate", BOTH, "backup.kubevirt.io", &["virtualmachinebackuptrackers"]),
    ("/virtualmachineexports-validate", BOTH, "export.kubevirt.io", &["virtualmachineexports"]),
    ("/virtualmachineinstancetypes-validate", BOTH, INSTANCETYPE, &["virtualmachineinstancetypes"]),
    (
        "/virtualmachineclusterinstancetypes-validate",
        BOTH,
        INSTANCETYPE,
        &["virtualmachineclusterinstancetypes"],
    ),
    ("/virtualmachinepreferences-validate", BOTH, INSTANCETYPE, &["virtualmachinepreferences"]),
    ("/virtualmachineclusterpreferences-validate", BOTH, INSTANCETYPE, &["virtualmachineclusterpreferences"]),
    (
        "/status-validate",
        BOTH,
        "kubevirt.io",
        &[
            "virtualmachines/status",
            "virtualmachineinstancereplicasets/status",
            "virtualmachineinstancemigrations/status",
        ],
    ),
    ("/migration-policy-validate-create", BOTH, "migrations.kubevirt.io", &["migrationpolicies"]),
    ("/vm-clone-validate-create", BOTH, "clone.kubevirt.io", &["virtualmachineclones"]),
    ("/plugin-validate", BOTH, "plugin.kubevirt.io", &["plugins"]),
];

/// All paths.
pub fn paths() -> impl Iterator<Item = &'static str> {
    MUTATING.iter().chain(&VALIDATING).map(|(path, ..)| *path)
}

/// Both configurations of a server.
pub fn configurations(name: &str, address: &str, authorities: &str, namespace: &str) -> [Value; 2] {
    let webhook = |(path, operations, group, resources): &(&str, &[&str], &str, &[&str])| {
        let mut webhook = json!({
            "name": format!("{}.kubevirt.io", path.trim_start_matches('/')),
            "clientConfig": {
                "url": format!("https://{address}{path}"),
                "caBundle": ByteString(authorities.as_bytes().to_vec()),
            },
            "rules": [{
                "apiGroups": [group], "apiVersions": ["*"], "operations": operations, "resources": resources,
            }],
            "failurePolicy": "Fail", "sideEffects": "NoneOnDryRun", "timeoutSeconds": 10,
            "admissionReviewVersions": ["v1"],
        });
        let cluster = ["cluster", "policies", "plugins"];
        if resources.iter().any(|resource| cluster.iter().any(|word| resource.contains(word))) {
            webhook["objectSelector"] = json!({ "matchLabels": { "test": namespace } });
        } else {
            webhook["namespaceSelector"] =
                json!({ "matchLabels": { "kubernetes.io/metadata.name": namespace } });
        }
        webhook
    };
    let configuration = |kind: &str, webhooks: Vec<Value>| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": { "name": name }, "webhooks": webhooks,
        })
    };
    [
        configuration("MutatingWebhookConfiguration", MUTATING.iter().map(webhook).collect()),
        configuration("ValidatingWebhookConfiguration", VALIDATING.iter().map(webhook).collect()),
    ]
}
