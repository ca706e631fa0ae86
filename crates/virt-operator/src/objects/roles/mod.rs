//! What the components and users may do.

mod api;
mod controller;
mod handler;
mod rules;
mod users;

use kubevirt_api::names::accounts;
use serde_json::{Value, json};

use super::metadata;
use crate::config::InstallConfig;

pub(crate) use rules::Rule;

/// What a component may do.
struct Rights {
    account: &'static str,
    /// Everywhere.
    global: Vec<Rule>,
    /// In the namespace of the installation.
    local: Vec<Rule>,
}

/// All roles, each with its binding.
pub fn all(config: &InstallConfig) -> Vec<Value> {
    let components = [api::rights(), controller::rights(), handler::rights()];
    let mut objects: Vec<Value> = components.iter().flat_map(|rights| of_component(config, rights)).collect();
    objects.push(delegate(config));
    objects.extend(users::all());
    objects
}

fn of_component(config: &InstallConfig, rights: &Rights) -> [Value; 4] {
    let name = rights.account;
    [
        role("ClusterRole", metadata::global(name), &rights.global),
        binding("ClusterRoleBinding", metadata::global(name), "ClusterRole", name, &account(config, name)),
        role("Role", metadata::local(config, name), &rights.local),
        binding("RoleBinding", metadata::local(config, name), "Role", name, &account(config, name)),
    ]
}

/// virt-api may ask the API server who somebody is and what they may do.
fn delegate(config: &InstallConfig) -> Value {
    let metadata = metadata::global("kubevirt-apiserver-auth-delegator");
    let subject = account(config, accounts::API);
    binding("ClusterRoleBinding", metadata, "ClusterRole", "system:auth-delegator", &subject)
}

fn role(kind: &str, metadata: Value, rules: &[Rule]) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| rule.to_value()).collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules
    })
}

fn binding(kind: &str, metadata: Value, role_kind: &str, role: &str, subject: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role },
        "subjects": [subject],
    })
}

fn account(config: &InstallConfig, name: &str) -> Value {
    json!({ "kind": "ServiceAccount", "namespace": config.namespace, "name": name })
}
