//! What a guest owner and an SEV host tell each other before the guest runs.

use serde::{Deserialize, Serialize};

/// Who the host is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SevPlatformInfo {
    /// The host's Diffie-Hellman key, base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pdh: String,
    /// The host's certificates, base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cert_chain: String,
}

/// What was loaded into the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SevMeasurementInfo {
    /// The measurement, base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub measurement: String,
    /// Version of the host's SEV firmware.
    pub api_major: u32,
    /// The same, after the dot.
    pub api_minor: u32,
    /// Build of the host's SEV firmware.
    #[serde(rename = "buildID")]
    pub build_id: u32,
    /// Bits of the guest's policy.
    pub policy: u32,
    /// SHA-256 of the guest's firmware, in hexadecimal.
    #[serde(rename = "loaderSHA", skip_serializing_if = "String::is_empty")]
    pub loader_sha: String,
}

/// The guest owner's side of the session, given before the guest starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SevSessionOptions {
    /// The session, base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The owner's Diffie-Hellman key, base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub dh_cert: String,
}

/// A secret for a guest whose measurement is right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SevSecretOptions {
    /// What is needed to decrypt it, base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub header: String,
    /// The encrypted secret, base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub secret: String,
}
