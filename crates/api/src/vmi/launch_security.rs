//! Confidential computing: SEV, SEV-SNP, TDX.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Confidential computing technology that protects the guest's memory; pick one.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaunchSecurity {
    /// Encrypt memory with AMD SEV, or SEV-ES through its policy.
    pub sev: Option<Sev>,
    /// Protect memory with AMD SEV-SNP.
    pub snp: Option<SevSnp>,
    /// Protect memory with Intel TDX.
    pub tdx: Option<Tdx>,
}

/// AMD Secure Encrypted Virtualization settings.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sev {
    /// Guest policy; debugging of the guest is always forbidden.
    pub policy: Option<SevPolicy>,
    /// If present, the VM starts paused so its owner can verify it and inject secrets.
    pub attestation: Option<SevAttestation>,
    /// Launch session data from the guest owner, base64; can be set later through the API.
    pub session: Option<String>,
    /// Guest owner's Diffie-Hellman certificate, base64; goes together with `session`.
    pub dh_cert: Option<String>,
}

/// SEV guest policy flags.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SevPolicy {
    /// Also encrypt CPU registers (SEV-ES), which the host must support; false if unset.
    pub encrypted_state: Option<bool>,
}

/// Presence requests attestation at start; has no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SevAttestation {}

/// Presence turns on AMD SEV-SNP; has no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SevSnp {}

/// Presence turns on Intel TDX; has no settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tdx {}
