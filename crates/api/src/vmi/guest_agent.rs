//! What the guest agent tells of the guest, as the subresources of an instance answer it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde::{Deserialize, Serialize};

use super::status::GuestOsInfo;

/// The guest agent, its system, its users and its file systems.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GuestAgentInfo {
    /// Version of the agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub guest_agent_version: String,
    /// Commands that the agent knows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supported_commands: Vec<GuestAgentCommand>,
    /// Host name of the guest.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// Operating system of the guest.
    pub os: GuestOsInfo,
    /// Name of the time zone and seconds east of UTC: `CET, 3600`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub timezone: String,
    /// Who is logged in; the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_list: Vec<GuestUser>,
    /// What is mounted; the first of them.
    pub fs_info: GuestFilesystems,
    /// `frozen` while file systems are held still.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fs_freeze_status: String,
}

/// A command that the agent knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestAgentCommand {
    /// Its name.
    pub name: String,
    /// Whether the agent may run it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enabled: bool,
}

/// Someone who is logged in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GuestUser {
    /// The name.
    pub user_name: String,
    /// The domain, on Windows.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// Since when, in seconds since 1970.
    pub login_time: f64,
}

/// Everyone who is logged in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestUserList {
    /// Of the list.
    pub metadata: ListMeta,
    /// Those who are.
    pub items: Vec<GuestUser>,
}

/// What is mounted in the guest, as part of [`GuestAgentInfo`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestFilesystems {
    /// Each mounted file system.
    pub disks: Vec<GuestFilesystem>,
}

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GuestFilesystem {
    /// Name of its disk in the guest.
    pub disk_name: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Its type.
    pub file_system_type: String,
    /// How much of it is used.
    pub used_bytes: u64,
    /// Its size.
    pub total_bytes: u64,
    /// The disks beneath it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disk: Vec<GuestFilesystemDisk>,
}

/// A disk beneath a file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GuestFilesystemDisk {
    /// Its serial number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial: String,
    /// Its bus.
    pub bus_type: String,
}

/// Everything that is mounted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestFilesystemList {
    /// Of the list.
    pub metadata: ListMeta,
    /// What is.
    pub items: Vec<GuestFilesystem>,
}
