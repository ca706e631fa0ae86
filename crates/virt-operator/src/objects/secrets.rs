//! Certificates as secrets, and what to trust as a config map.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use kubevirt_api::names::annotations::CERTIFICATE_DURATION;
use kubevirt_api::names::components::secrets;
use serde_json::{Value, json};

use super::metadata;
use crate::certificates::Pair;
use crate::config::InstallConfig;

/// The secret of every certificate, and the config map of the authority.
pub fn all(config: &InstallConfig) -> Vec<Value> {
    let certificates = &config.certificates;
    let secrets = certificates.pairs().map(|(name, pair)| {
        let issued = name != secrets::CA;
        let lifetimes = certificates.lifetimes;
        secret(config, name, pair, if issued { lifetimes.issued } else { lifetimes.authority })
    });
    secrets.chain([trusted(config)]).collect()
}

fn secret(config: &InstallConfig, name: &str, pair: &Pair, lifetime: SignedDuration) -> Value {
    let mut metadata = metadata::local(config, name);
    metadata["annotations"] = json!({ CERTIFICATE_DURATION: format!("{}h0m0s", lifetime.as_hours()) });
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "kubernetes.io/tls",
        "data": { "tls.crt": STANDARD.encode(&pair.certificate), "tls.key": STANDARD.encode(&pair.key) },
    })
}

fn trusted(config: &InstallConfig) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata::local(config, secrets::CA),
        "data": { secrets::CA_BUNDLE: config.certificates.authority.certificate },
    })
}

/// What the API server trusts when it calls a component.
pub(super) fn ca_bundle(config: &InstallConfig) -> String {
    STANDARD.encode(&config.certificates.authority.certificate)
}
