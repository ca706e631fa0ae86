//! Which requests the API server asks virt-api and virt-operator about.

use kubevirt_api::crd::KINDS;
use kubevirt_api::names::annotations::CERTIFICATE_SECRET;
use kubevirt_api::names::components::{API, secrets, services, webhooks};
use kubevirt_api::names::{groups, labels};
use serde_json::{Value, json};

use super::metadata;
use super::secrets::ca_bundle;
use crate::config::InstallConfig;

/// A kind of request that is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    /// The name of the webhook.
    pub name: &'static str,
    /// Where it is served.
    pub path: &'static str,
    /// What is done.
    pub operations: &'static [&'static str],
    /// To what: the group …
    pub group: &'static str,
    /// … and resources of it.
    pub resources: &'static [&'static str],
    /// Only requests for which a named expression holds, in which [`OURS`] stands for the namespace of our accounts.
    pub only: Option<(&'static str, &'static str)>,
}

/// What user names of our own components begin with, as expressions have it.
const OURS: &str = "OURS";

const CREATE: &[&str] = &["CREATE"];
const UPDATE: &[&str] = &["UPDATE"];
const WRITE: &[&str] = &["CREATE", "UPDATE"];

/// Defaults.
pub const MUTATING: [Hook; 4] = [
    hook(
        "virtualmachines-mutator.kubevirt.io",
        "/virtualmachines-mutate",
        WRITE,
        groups::KUBEVIRT,
        &["virtualmachines"],
    ),
    Hook {
        // What our own components write to an instance is left as it is, and they write more often than all others.
        only: Some((
            "no-own-updates",
            "request.operation != 'UPDATE' || \
             !(request.userInfo.username in ['OURS:kubevirt-controller', 'OURS:kubevirt-handler'])",
        )),
        ..hook(
            "virtualmachineinstances-mutator.kubevirt.io",
            "/virtualmachineinstances-mutate",
            WRITE,
            groups::KUBEVIRT,
            &["virtualmachineinstances"],
        )
    },
    hook(
        "migrations-mutator.kubevirt.io",
        "/migration-mutate-create",
        CREATE,
        groups::KUBEVIRT,
        &["virtualmachineinstancemigrations"],
    ),
    hook(
        "virtualmachineclones-mutator.kubevirt.io",
        "/vm-clone-mutate-create",
        CREATE,
        groups::CLONE,
        &["virtualmachineclones"],
    ),
];

/// Verdicts.
pub const VALIDATING: [Hook; 23] = [
    Hook {
        only: Some(("only-vms", "object.metadata.name.startsWith('virt-launcher')")),
        ..hook(
            "virt-launcher-eviction-interceptor.kubevirt.io",
            "/pod-eviction-validate",
            &["*"],
            "",
            &["pods/eviction"],
        )
    },
    Hook {
        only: Some(("only-hotplug-pods", "object.metadata.name.startsWith('hp-volume-')")),
        ..hook(
            "hotplug-pod-eviction-interceptor.kubevirt.io",
            "/pod-eviction-validate",
            &["*"],
            "",
            &["pods/eviction"],
        )
    },
    hook(
        "virtualmachineinstances-create-validator.kubevirt.io",
        "/virtualmachineinstances-validate-create",
        CREATE,
        groups::KUBEVIRT,
        &["virtualmachineinstances"],
    ),
    Hook {
        // virt-controller may write all but some changes of a specification. So may virt-handler, for an instance of its
        // own node whose way it does not choose; what else it writes is looked at.
        only: Some((
            "no-own-status",
            "object.spec != oldObject.spec || !( \
             request.userInfo.username == 'OURS:kubevirt-controller' || \
             request.userInfo.username == 'OURS:kubevirt-handler' && \
             oldObject.?status.?nodeName.orValue('') in \
             request.userInfo.extra[?'authentication.kubernetes.io/node-name'].orValue([]) && \
             object.?status.?migrationState.?targetNode == oldObject.?status.?migrationState.?targetNode)",
        )),
        ..hook(
            "virtualmachineinstances-update-validator.kubevirt.io",
            "/virtualmachineinstances-validate-update",
            UPDATE,
            groups::KUBEVIRT,
            &["virtualmachineinstances"],
        )
    },
    hook(
        "virtualmachine-validator.kubevirt.io",
        "/virtualmachines-validate",
        WRITE,
        groups::KUBEVIRT,
        &["virtualmachines"],
    ),
    hook(
        "virtualmachinereplicaset-validator.kubevirt.io",
        "/virtualmachinereplicaset-validate",
        WRITE,
        groups::KUBEVIRT,
        &["virtualmachineinstancereplicasets"],
    ),
    hook(
        "virtualmachinepool-validator.kubevirt.io",
        "/virtualmachinepool-validate",
        WRITE,
        groups::POOL,
        &["virtualmachinepools"],
    ),
    hook(
        "virtualmachinepreset-validator.kubevirt.io",
        "/vmipreset-validate",
        WRITE,
        groups::KUBEVIRT,
        &["virtualmachineinstancepresets"],
    ),
    hook(
        "migration-create-validator.kubevirt.io",
        "/migration-validate-create",
        CREATE,
        groups::KUBEVIRT,
        &["virtualmachineinstancemigrations"],
    ),
    hook(
        "migration-update-validator.kubevirt.io",
        "/migration-validate-update",
        UPDATE,
        groups::KUBEVIRT,
        &["virtualmachineinstancemigrations"],
    ),
    hook(
        "virtualmachinesnapshot-validator.snapshot.kubevirt.io",
        "/virtualmachinesnapshots-validate",
        WRITE,
        groups::SNAPSHOT,
        &["virtualmachinesnapshots"],
    ),
    hook(
        "virtualmachinerestore-validator.snapshot.kubevirt.io",
        "/virtualmachinerestores-validate",
        WRITE,
        groups::SNAPSHOT,
        &["virtualmachinerestores"],
    ),
    hook(
        "virtualmachinebackup-validator.backup.kubevirt.io",
        "/virtualmachinebackups-validate",
        WRITE,
        groups::BACKUP,
        &["virtualmachinebackups"],
    ),
    hook(
        "virtualmachinebackuptracker-validator.backup.kubevirt.io",
        "/virtualmachinebackuptrackers-validate",
        WRITE,
        groups::BACKUP,
        &["virtualmachinebackuptrackers"],
    ),
    hook(
        "virtualmachineexport-validator.export.kubevirt.io",
        "/virtualmachineexports-validate",
        WRITE,
        groups::EXPORT,
        &["virtualmachineexports"],
    ),
    hook(
        "virtualmachineinstancetype-validator.instancetype.kubevirt.io",
        "/virtualmachineinstancetypes-validate",
        WRITE,
        groups::INSTANCETYPE,
        &["virtualmachineinstancetypes"],
    ),
    hook(
        "virtualmachineclusterinstancetype-validator.instancetype.kubevirt.io",
        "/virtualmachineclusterinstancetypes-validate",
        WRITE,
        groups::INSTANCETYPE,
        &["virtualmachineclusterinstancetypes"],
    ),
    hook(
        "virtualmachinepreference-validator.instancetype.kubevirt.io",
        "/virtualmachinepreferences-validate",
        WRITE,
        groups::INSTANCETYPE,
        &["virtualmachinepreferences"],
    ),
    hook(
        "virtualmachineclusterpreference-validator.instancetype.kubevirt.io",
        "/virtualmachineclusterpreferences-validate",
        WRITE,
        groups::INSTANCETYPE,
        &["virtualmachineclusterpreferences"],
    ),
    hook(
        "kubevirt-crd-status-validator.kubevirt.io",
        "/status-validate",
        WRITE,
        groups::KUBEVIRT,
        &[
            "virtualmachines/status",
            "virtualmachineinstancereplicasets/status",
            "virtualmachineinstancemigrations/status",
        ],
    ),
    hook(
        "migration-policy-validator.kubevirt.io",
        "/migration-policy-validate-create",
        WRITE,
        groups::MIGRATIONS,
        &["migrationpolicies"],
    ),
    hook(
        "vm-clone-validator.kubevirt.io",
        "/vm-clone-validate-create",
        WRITE,
        groups::CLONE,
        &["virtualmachineclones"],
    ),
    hook("plugin-validator.plugin.kubevirt.io", "/plugin-validate", WRITE, groups::PLUGIN, &["plugins"]),
];

/// Verdicts on the installation itself.
pub const OPERATOR: [Hook; 3] = [
    hook(
        "kubevirt-validator.kubevirt.io",
        "/kubevirt-validate-delete",
        &["DELETE"],
        groups::KUBEVIRT,
        &["kubevirts"],
    ),
    hook(
        "kubevirt-update-validator.kubevirt.io",
        "/kubevirt-validate-update",
        UPDATE,
        groups::KUBEVIRT,
        &["kubevirts"],
    ),
    hook(
        "kubevirt-create-validator.kubevirt.io",
        "/kubevirt-validate-create",
        CREATE,
        groups::KUBEVIRT,
        &["kubevirts"],
    ),
];

const fn hook(
    name: &'static str,
    path: &'static str,
    operations: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
) -> Hook {
    Hook { name, path, operations, group, resources, only: None }
}

/// The configuration for [`MUTATING`].
pub fn mutating(config: &InstallConfig) -> Value {
    configuration(config, "MutatingWebhookConfiguration", webhooks::MUTATING, &MUTATING, (API, secrets::API))
}

/// The configuration for [`VALIDATING`].
pub fn validating(config: &InstallConfig) -> Value {
    let service = (API, secrets::API);
    configuration(config, "ValidatingWebhookConfiguration", webhooks::VALIDATING, &VALIDATING, service)
}

/// The configuration for [`OPERATOR`].
pub fn operator(config: &InstallConfig) -> Value {
    let (name, service) = (webhooks::OPERATOR_VALIDATING, (services::OPERATOR_WEBHOOK, secrets::OPERATOR));
    configuration(config, "ValidatingWebhookConfiguration", name, &OPERATOR, service)
}

fn configuration(
    config: &InstallConfig,
    kind: &str,
    name: &str,
    hooks: &[Hook],
    (service, secret): (&str, &str),
) -> Value {
    let mut metadata = metadata::global(name);
    metadata["labels"][labels::APP] = name.into();
    metadata["annotations"] = json!({ CERTIFICATE_SECRET: secret });
    let bundle = ca_bundle(config);
    let entry = |hook: &Hook| {
        let service = json!({
            "namespace": config.namespace, "name": service, "path": hook.path, "port": 443
        });
        webhook(hook, &json!({ "service": service, "caBundle": bundle }), &config.namespace)
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "webhooks": hooks.iter().map(entry).collect::<Vec<Value>>(),
    })
}

fn webhook(hook: &Hook, client: &Value, namespace: &str) -> Value {
    let mut entry = json!({
        "name": hook.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "failurePolicy": "Fail",
        // An eviction is answered by a mark on the instance, unless it is only tried out.
        "sideEffects": if hook.group.is_empty() { "NoneOnDryRun" } else { "None" },
        "timeoutSeconds": 10,
        "rules": [{
            "operations": hook.operations,
            "apiGroups": [hook.group],
            "apiVersions": versions(hook),
            "resources": hook.resources,
        }],
    });
    if let Some((name, expression)) = hook.only {
        let expression = expression.replace(OURS, &format!("system:serviceaccount:{namespace}"));
        entry["matchConditions"] = json!([{ "name": name, "expression": expression }]);
    }
    entry
}

/// The versions of the API in which the resources are served.
fn versions(hook: &Hook) -> Vec<&'static str> {
    let plural = hook.resources.first().and_then(|resource| resource.split('/').next()).unwrap_or_default();
    match KINDS.iter().find(|kind| kind.group == hook.group && kind.plural == plural) {
        Some(kind) => kind.versions.iter().map(|version| version.name).collect(),
        None => vec!["v1"],
    }
}
