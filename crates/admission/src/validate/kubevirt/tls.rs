//! Which TLS versions and ciphers the components offer.

use kubevirt_api::kubevirt::configuration::{TlsConfiguration, TlsProtocolVersion};

use crate::{Path, Problems};

/// The cipher suites that can be named, the insecure ones included; those of TLS 1.3 cannot be chosen from.
const CIPHERS: [&str; 25] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// Checks the TLS settings of an installation.
pub fn check(tls: &TlsConfiguration, problems: &mut Problems) {
    let ciphers = tls.ciphers.as_deref().unwrap_or_default();
    let least = tls.min_tls_version.as_ref().filter(|version| !version.is_empty());
    let field = "spec.configuration.tlsConfiguration.ciphers";
    if least.is_none_or(|version| *version == TlsProtocolVersion::Tls13) {
        if !ciphers.is_empty() {
            problems.not_supported(
                &Path::new(field),
                "can only be set with a minTLSVersion below VersionTLS13, which has fixed ciphers",
            );
        }
        return;
    }
    for (index, cipher) in ciphers.iter().enumerate() {
        if !CIPHERS.contains(&cipher.as_str()) {
            let item = format!("{field}#{index}");
            problems.not_supported(&Path::new(&item), format!("{cipher:?} is not a known cipher suite"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{assert_fields, read};

    #[test]
    fn versions_and_ciphers() {
        let list = "spec.configuration.tlsConfiguration.ciphers";
        let good = json!(["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA"]);
        let cases = [
            ("nothing", json!({}), vec![]),
            ("1.3", json!({ "minTLSVersion": "VersionTLS13" }), vec![]),
            (
                "1.3 with ciphers",
                json!({ "minTLSVersion": "VersionTLS13", "ciphers": good }),
                vec![list.to_owned()],
            ),
            ("default with ciphers", json!({ "ciphers": good }), vec![list.to_owned()]),
            ("empty with ciphers", json!({ "minTLSVersion": "", "ciphers": ["x"] }), vec![list.to_owned()]),
            ("1.2", json!({ "minTLSVersion": "VersionTLS12", "ciphers": good }), vec![]),
            ("1.2 alone", json!({ "minTLSVersion": "VersionTLS12" }), vec![]),
            (
                "unknown ciphers",
                json!({ "minTLSVersion": "VersionTLS10", "ciphers": ["AES", "TLS_RSA_WITH_AES_128_CBC_SHA", ""] }),
                vec![format!("{list}#0"), format!("{list}#2")],
            ),
        ];
        for (case, value, expected) in cases {
            let mut problems = Problems::default();
            check(&read(value), &mut problems);
            assert_fields(case, &problems, &expected.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
