//! Passwords and SSH keys of the guest's users.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::json;

use super::client::Agent;
use super::error::AgentError;

impl Agent {
    /// Sets a user's password, plain or already crypted.
    pub async fn set_password(&self, user: &str, password: &str, crypted: bool) -> Result<(), AgentError> {
        let password = BASE64_STANDARD.encode(password);
        let arguments = json!({ "username": user, "password": password, "crypted": crypted });
        self.run("guest-set-user-password", arguments).await
    }

    /// The keys with which a user can log in.
    pub async fn ssh_keys(&self, user: &str) -> Result<Vec<String>, AgentError> {
        #[derive(Deserialize)]
        struct Keys {
            keys: Vec<String>,
        }
        let arguments = json!({ "username": user });
        self.call::<Keys>("guest-ssh-get-authorized-keys", arguments).await.map(|told| told.keys)
    }

    /// Lets a user log in with more keys, or with these only.
    pub async fn add_ssh_keys(&self, user: &str, keys: &[String], only: bool) -> Result<(), AgentError> {
        let arguments = json!({ "username": user, "keys": keys, "reset": only });
        self.run("guest-ssh-add-authorized-keys", arguments).await
    }

    /// No longer lets a user log in with these keys.
    pub async fn remove_ssh_keys(&self, user: &str, keys: &[String]) -> Result<(), AgentError> {
        let arguments = json!({ "username": user, "keys": keys });
        self.run("guest-ssh-remove-authorized-keys", arguments).await
    }
}
