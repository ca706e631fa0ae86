//! Service accounts of a test, for requests that not everybody may make.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use kube::Client;
use serde_json::{Value, json};

use crate::Test;
use crate::test::connect;

/// Somebody who may do what a role says.
pub struct Account {
    /// A kubeconfig with nothing but the account's token.
    pub kubeconfig: PathBuf,
    /// A client that is the account.
    pub client: Client,
}

impl Test {
    /// Makes a service account and lets it do what a ClusterRole says, within the test's namespace; without a role, only
    /// what everybody may.
    pub async fn account(&self, name: &str, role: Option<&str>) -> Result<Account> {
        self.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}))
            .await?;
        if let Some(role) = role {
            self.apply(&json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace()}],
            }))
            .await?;
        }
        let token = self.kubectl(&["create", "token", name])?;
        let mut config: Value =
            serde_json::from_str(&self.kubectl(&["config", "view", "--raw", "-o=json"])?)?;
        // The administrator's certificate would be believed before the token.
        config["users"][0]["user"] = json!({"token": token.trim()});
        let folder = self.cluster().layout().root().join("accounts");
        fs::create_dir_all(&folder)?;
        let kubeconfig = folder.join(format!("{}-{name}", self.namespace()));
        fs::write(&kubeconfig, config.to_string()).context("write a kubeconfig")?;
        let client = connect(&kubeconfig).await?;
        Ok(Account { kubeconfig, client })
    }
}
