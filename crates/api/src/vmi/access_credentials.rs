//! SSH keys and passwords that are put into the guest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A credential injected into the guest; either an SSH key or a password.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessCredential {
    /// SSH public keys to authorize in the guest.
    pub ssh_public_key: Option<SshPublicKey>,
    /// Passwords to set for guest users.
    pub user_password: Option<UserPassword>,
}

/// SSH public keys and the way they reach the guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshPublicKey {
    /// Where the keys come from.
    pub source: SshPublicKeySource,
    /// How the keys reach the guest; exactly one method is set.
    pub propagation_method: SshPublicKeyPropagation,
}

/// Source of SSH public keys.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshPublicKeySource {
    /// Secret in which every value is a public key.
    pub secret: Option<CredentialSecret>,
}

/// Reference to a Secret in the namespace of the VMI.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialSecret {
    /// Name of the Secret.
    pub secret_name: String,
}

/// Way to deliver SSH keys; exactly one of the members is set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshPublicKeyPropagation {
    /// Through config drive metadata at boot; needs a cloudInitConfigDrive volume.
    pub config_drive: Option<SshKeyByConfigDrive>,
    /// Through NoCloud metadata at boot; needs a cloudInitNoCloud volume.
    pub no_cloud: Option<SshKeyByNoCloud>,
    /// Through the guest agent while running, so that later Secret changes are picked up.
    pub qemu_guest_agent: Option<SshKeyByGuestAgent>,
}

/// Delivers keys by config drive; it takes no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshKeyByConfigDrive {}

/// Delivers keys by NoCloud; it takes no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshKeyByNoCloud {}

/// Delivers keys by the guest agent, which must run in the guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshKeyByGuestAgent {
    /// Guest users whose authorized_keys file receives the keys; at least one.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub users: Vec<String>,
}

/// Guest user passwords and the way they reach the guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserPassword {
    /// Where the passwords come from.
    pub source: UserPasswordSource,
    /// How the passwords reach the guest; only the guest agent is supported.
    pub propagation_method: UserPasswordPropagation,
}

/// Source of guest passwords.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserPasswordSource {
    /// Secret whose keys are user names and whose values are their passwords.
    pub secret: Option<CredentialSecret>,
}

/// Way to deliver passwords; exactly one method is set.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserPasswordPropagation {
    /// Through the guest agent while running, so that later Secret changes are picked up.
    pub qemu_guest_agent: Option<UserPasswordByGuestAgent>,
}

/// Delivers passwords by the guest agent; it takes no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserPasswordByGuestAgent {}
