//! Which secrets hold a user's keys and passwords, and what is in them: pure functions.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kubevirt_api::names::groups;
use kubevirt_api::vmi::access_credentials::{
    AccessCredential, CredentialSecret, SshKeyByGuestAgent, SshPublicKey, SshPublicKeyPropagation,
    SshPublicKeySource,
};
use serde_json::{Value, json};

const VM: &str = "VirtualMachine";

/// Why no secret is changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is more than one.
    #[error("multiple secrets specified, use option --secret to specify which secret to modify: {0}")]
    Several(String),
    /// There is none of that name.
    #[error("secret {0} was not assigned")]
    NotAssigned(String),
}

/// The secrets with keys that the guest agent writes for a user.
pub fn with_keys_of(credentials: &[AccessCredential], user: &str) -> Vec<String> {
    let of = |credential: &AccessCredential| {
        let key = credential.ssh_public_key.as_ref()?;
        let agent = key.propagation_method.qemu_guest_agent.as_ref()?;
        let secret = key.source.secret.as_ref()?.secret_name.clone();
        (agent.users.iter().any(|known| known == user) && !secret.is_empty()).then_some(secret)
    };
    credentials.iter().filter_map(of).collect()
}

/// The secrets with passwords that the guest agent sets.
pub fn with_passwords(credentials: &[AccessCredential]) -> Vec<String> {
    let of = |credential: &AccessCredential| {
        let password = credential.user_password.as_ref()?;
        password.propagation_method.qemu_guest_agent.as_ref()?;
        let secret = password.source.secret.as_ref()?.secret_name.clone();
        (!secret.is_empty()).then_some(secret)
    };
    credentials.iter().filter_map(of).collect()
}

/// The one that is meant; there is at least one.
pub fn chosen(wanted: Option<&str>, secrets: &[String]) -> Result<String, Error> {
    match (wanted.filter(|name| !name.is_empty()), secrets) {
        (Some(name), _) if secrets.iter().any(|secret| secret == name) => Ok(name.to_owned()),
        (Some(name), _) => Err(Error::NotAssigned(name.to_owned())),
        (None, [one]) => Ok(one.clone()),
        (None, several) => Err(Error::Several(several.join(", "))),
    }
}

/// Whether the machine owns the secret.
pub fn is_owned(secret: &ObjectMeta, vm: &ObjectMeta) -> bool {
    secret.owner_references.iter().flatten().any(|owner| {
        owner.kind == VM && Some(&owner.name) == vm.name.as_ref() && Some(&owner.uid) == vm.uid.as_ref()
    })
}

/// Whether the lines of a secret have the key, or each of them if there are several.
pub fn contains(secret: &Secret, keys: &str) -> bool {
    let has = |key: &str| {
        let mut entries = secret.data.iter().flatten();
        entries.any(|(_, data)| String::from_utf8_lossy(&data.0).lines().any(|line| is_key(line, key)))
    };
    each(keys).all(has)
}

/// The keys of a text, a line for each.
fn each(keys: &str) -> impl Iterator<Item = &str> {
    keys.lines().map(str::trim).filter(|key| !key.is_empty())
}

/// A comment behind the key makes no other key of it; a longer key is one.
fn is_key(line: &str, key: &str) -> bool {
    let rest = line.trim().strip_prefix(key);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// What remains of a secret without the key, or without all of them if there are several: entries that are left with nothing go, and `null` takes them out in a
/// merge patch. Nothing if no entry has the key.
pub fn without(secret: &Secret, keys: &str) -> Option<Value> {
    let is_meant = |line: &str| each(keys).any(|key| is_key(line, key));
    let mut changed = serde_json::Map::new();
    for (name, data) in secret.data.iter().flatten() {
        // What is not text is no key of ours and stays as it is.
        let Ok(text) = std::str::from_utf8(&data.0) else { continue };
        if !text.lines().any(is_meant) {
            continue;
        }
        let kept: Vec<_> = text.lines().filter(|line| !is_meant(line) && !line.trim().is_empty()).collect();
        let value = if kept.is_empty() { Value::Null } else { STANDARD.encode(kept.join("\n")).into() };
        changed.insert(name.clone(), value);
    }
    // The version makes sure that nobody adds a line meanwhile.
    let version = &secret.metadata.resource_version;
    (!changed.is_empty()).then(|| json!({ "metadata": { "resourceVersion": version }, "data": changed }))
}

/// A merge patch that sets one entry of a secret.
pub fn entry(key: &str, value: &str) -> Value {
    json!({ "data": { key: STANDARD.encode(value) } })
}

/// A secret of the machine's own with one key.
pub fn new(vm: &ObjectMeta, entry: &str, key: &str) -> Secret {
    let name = vm.name.clone().unwrap_or_default();
    let owner = OwnerReference {
        api_version: groups::KUBEVIRT_V1.into(),
        kind: VM.into(),
        name: name.clone(),
        uid: vm.uid.clone().unwrap_or_default(),
        controller: Some(true),
        ..Default::default()
    };
    Secret {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-ssh-key-")),
            namespace: vm.namespace.clone(),
            owner_references: Some(vec![owner]),
            ..Default::default()
        },
        data: Some(BTreeMap::from([(entry.to_owned(), ByteString(key.into()))])),
        ..Default::default()
    }
}

/// What tells the guest agent to write the keys of a secret for a user.
pub fn credential(secret: &str, user: &str) -> AccessCredential {
    let agent = SshKeyByGuestAgent { users: vec![user.to_owned()] };
    let key = SshPublicKey {
        source: SshPublicKeySource { secret: Some(CredentialSecret { secret_name: secret.to_owned() }) },
        propagation_method: SshPublicKeyPropagation { qemu_guest_agent: Some(agent), ..Default::default() },
    };
    AccessCredential { ssh_public_key: Some(key), user_password: None }
}

/// JSON patch operations that add the credential to a machine: to its list, or with a list that it has not got.
pub fn add_credential(known: bool, credential: &AccessCredential) -> Value {
    let path = "/spec/template/spec/accessCredentials";
    if known {
        return json!([{ "op": "add", "path": format!("{path}/-"), "value": credential }]);
    }
    json!([
        { "op": "test", "path": path, "value": null },
        { "op": "add", "path": path, "value": [credential] },
    ])
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
