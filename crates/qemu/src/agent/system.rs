//! File systems, interfaces, the clock and the power of the guest.

use serde::Deserialize;
use serde_json::json;

use super::client::Agent;
use super::error::AgentError;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Filesystem {
    /// The name of its disk.
    pub name: String,
    /// Where it is mounted.
    pub mountpoint: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its size in bytes, where the agent tells it.
    pub total_bytes: Option<u64>,
    /// How much of it is used, in bytes.
    pub used_bytes: Option<u64>,
    /// The disks beneath it.
    #[serde(default, rename = "disk")]
    pub disks: Vec<Disk>,
}

/// A disk beneath a file system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Disk {
    /// Its bus: `virtio`, `scsi`, `sata`, …
    pub bus_type: String,
    /// Its serial number.
    pub serial: Option<String>,
    /// Its device in the guest.
    pub dev: Option<String>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Interface {
    /// Its name in the guest.
    pub name: String,
    /// Its MAC address.
    pub hardware_address: Option<String>,
    /// Its IP addresses.
    #[serde(default)]
    pub ip_addresses: Vec<Address>,
}

/// An IP address of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Address {
    /// The address as text.
    pub ip_address: String,
    /// `ipv4` or `ipv6`.
    #[serde(rename = "ip-address-type")]
    pub family: String,
    /// The length of its network's prefix.
    pub prefix: u8,
}

impl Agent {
    /// The mounted file systems.
    pub async fn filesystems(&self) -> Result<Vec<Filesystem>, AgentError> {
        self.call("guest-get-fsinfo", json!(null)).await
    }

    /// The network interfaces.
    pub async fn interfaces(&self) -> Result<Vec<Interface>, AgentError> {
        self.call("guest-network-get-interfaces", json!(null)).await
    }

    /// Sets the guest's clock: to nanoseconds since 1970, or from its hardware clock.
    pub async fn set_time(&self, nanoseconds: Option<i64>) -> Result<(), AgentError> {
        match nanoseconds {
            Some(time) => self.run("guest-set-time", json!({ "time": time })).await,
            None => self.run("guest-set-time", json!(null)).await,
        }
    }

    /// Asks the guest to power off. [`crate::qmp::Event::Shutdown`] tells when it has.
    pub async fn power_off(&self) -> Result<(), AgentError> {
        self.run_unanswered("guest-shutdown", json!({ "mode": "powerdown" })).await
    }

    /// Asks the guest to boot again.
    pub async fn reboot(&self) -> Result<(), AgentError> {
        self.run_unanswered("guest-shutdown", json!({ "mode": "reboot" })).await
    }
}
