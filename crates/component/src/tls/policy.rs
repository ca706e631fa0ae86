//! Which versions and ciphers the cluster allows.

use std::sync::Arc;

use kubevirt_admission::ClusterConfig;
use kubevirt_api::kubevirt::configuration::TlsProtocolVersion;
use rustls::crypto::CryptoProvider;
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

/// Which versions and ciphers are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    only_newest: bool,
    ciphers: Vec<String>,
}

impl Policy {
    /// What the cluster configuration says. Versions before TLS 1.2 are not spoken, whatever it allows.
    pub fn of(config: &ClusterConfig) -> Self {
        let Some(own) = config.configuration().tls_configuration.as_ref() else { return Self::default() };
        Self {
            only_newest: own.min_tls_version == Some(TlsProtocolVersion::Tls13),
            ciphers: own.ciphers.clone().unwrap_or_default(),
        }
    }

    /// What that means to the TLS library. Ciphers of TLS 1.3 cannot be chosen, as in Go.
    pub(super) fn apply(&self) -> (Arc<CryptoProvider>, Vec<&'static SupportedProtocolVersion>) {
        let mut provider = rustls::crypto::ring::default_provider();
        let allowed = |suite: &SupportedCipherSuite| {
            let name = format!("{:?}", suite.suite());
            name.starts_with("TLS13_") || self.ciphers.contains(&name)
        };
        if !self.ciphers.is_empty() {
            provider.cipher_suites.retain(allowed);
        }
        let old_left = provider.cipher_suites.iter().any(|suite| suite.version() == &TLS12);
        let versions = if self.only_newest || !old_left { vec![&TLS13] } else { vec![&TLS13, &TLS12] };
        (Arc::new(provider), versions)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn applied(tls: Value) -> (usize, usize) {
        let kubevirt = json!({ "spec": { "configuration": { "tlsConfiguration": tls } } });
        let config = ClusterConfig::of(&serde_json::from_value(kubevirt).unwrap());
        let (provider, versions) = Policy::of(&config).apply();
        let old = provider.cipher_suites.iter().filter(|suite| suite.version() == &TLS12).count();
        (old, versions.len())
    }

    #[test]
    fn versions_and_ciphers() {
        assert_eq!(applied(json!({})), (6, 2));
        assert_eq!(applied(json!({ "minTLSVersion": "VersionTLS10" })).1, 2);
        assert_eq!(applied(json!({ "minTLSVersion": "VersionTLS13" })).1, 1);
        let one =
            json!({ "ciphers": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"] });
        assert_eq!(applied(one), (1, 2));
        assert_eq!(applied(json!({ "ciphers": ["TLS_RSA_WITH_AES_128_CBC_SHA"] })), (0, 1));
    }
}
