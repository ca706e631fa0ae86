//! What the agent tells of itself and its system.

use serde::Deserialize;
use serde_json::json;

use super::client::Agent;
use super::error::AgentError;

/// The agent itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Info {
    /// Its version.
    pub version: String,
    /// What it knows.
    pub supported_commands: Vec<SupportedCommand>,
}

/// A command that an agent knows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SupportedCommand {
    /// Its name.
    pub name: String,
    /// Whether it may be used.
    pub enabled: bool,
}

impl Info {
    /// Whether a command is known and may be used.
    pub fn supports(&self, command: &str) -> bool {
        self.supported_commands.iter().any(|one| one.name == command && one.enabled)
    }
}

/// The guest's operating system. Each field only as far as the guest knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[expect(missing_docs, reason = "the fields are those of os-release and uname")]
pub struct OsInfo {
    pub id: Option<String>,
    pub name: Option<String>,
    pub pretty_name: Option<String>,
    pub version: Option<String>,
    pub version_id: Option<String>,
    pub kernel_release: Option<String>,
    pub kernel_version: Option<String>,
    pub machine: Option<String>,
    pub variant: Option<String>,
    pub variant_id: Option<String>,
}

/// The guest's time zone.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TimeZone {
    /// Its name, if it has one.
    pub zone: Option<String>,
    /// Seconds east of UTC.
    pub offset: i64,
}

/// Someone who is logged in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct User {
    /// The name.
    #[serde(rename = "user")]
    pub name: String,
    /// The domain, on Windows.
    pub domain: Option<String>,
    /// Since when, in seconds since 1970.
    pub login_time: f64,
}

impl Agent {
    /// Whether anybody answers.
    pub async fn ping(&self) -> Result<(), AgentError> {
        self.run("guest-ping", json!(null)).await
    }

    /// The agent's version and commands.
    pub async fn info(&self) -> Result<Info, AgentError> {
        self.call("guest-info", json!(null)).await
    }

    /// The operating system.
    pub async fn os_info(&self) -> Result<OsInfo, AgentError> {
        self.call("guest-get-osinfo", json!(null)).await
    }

    /// The host name.
    pub async fn host_name(&self) -> Result<String, AgentError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        struct Named {
            host_name: String,
        }
        self.call::<Named>("guest-get-host-name", json!(null)).await.map(|told| told.host_name)
    }

    /// The time zone.
    pub async fn time_zone(&self) -> Result<TimeZone, AgentError> {
        self.call("guest-get-timezone", json!(null)).await
    }

    /// Who is logged in.
    pub async fn users(&self) -> Result<Vec<User>, AgentError> {
        self.call("guest-get-users", json!(null)).await
    }
}
