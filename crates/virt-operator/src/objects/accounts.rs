//! A service account for each component.

use kubevirt_api::names::accounts::{API, CONTROLLER, HANDLER};
use serde_json::{Value, json};

use super::metadata;
use crate::config::InstallConfig;

/// All of them.
pub fn all(config: &InstallConfig) -> Vec<Value> {
    [API, CONTROLLER, HANDLER].iter().map(|name| account(config, name)).collect()
}

fn account(config: &InstallConfig, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata::local(config, name) })
}

/// The name by which the API server knows an account.
pub fn user(config: &InstallConfig, account: &str) -> String {
    format!("system:serviceaccount:{}:{account}", config.namespace)
}
