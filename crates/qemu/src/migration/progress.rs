//! How a migration goes.

use serde::Deserialize;

use crate::machine::{Machine, words};
use crate::qmp::{NoArguments, QmpError};

words! {
    /// The phase of a migration.
    MigrationStatus {
        None = "none",
        Setup = "setup",
        Cancelling = "cancelling",
        Cancelled = "cancelled",
        Active = "active",
        PostcopyDevice = "postcopy-device",
        PostcopyActive = "postcopy-active",
        PostcopyPaused = "postcopy-paused",
        PostcopyRecoverSetup = "postcopy-recover-setup",
        PostcopyRecover = "postcopy-recover",
        Completed = "completed",
        Failed = "failed",
        Colo = "colo",
        PreSwitchover = "pre-switchover",
        Device = "device",
        WaitUnplug = "wait-unplug",
    }
}

impl MigrationStatus {
    /// Whether it is over, one way or another.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// How far a migration is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Progress {
    /// Its phase.
    #[serde(default = "none")]
    pub status: MigrationStatus,
    /// Milliseconds since its start.
    #[serde(rename = "total-time")]
    pub elapsed: Option<u64>,
    /// How long the guest stood still, in milliseconds, once it is over.
    pub downtime: Option<u64>,
    /// How long it would stand still now, in milliseconds.
    pub expected_downtime: Option<u64>,
    /// How long the setup took, in milliseconds.
    pub setup_time: Option<u64>,
    /// The memory.
    pub ram: Option<Ram>,
    /// How hard auto-converge brakes the guest, in percent.
    pub cpu_throttle_percentage: Option<u64>,
    /// Why it failed.
    pub error_desc: Option<String>,
    /// Why it cannot even start.
    pub blocked_reasons: Option<Vec<String>>,
}

fn none() -> MigrationStatus {
    MigrationStatus::None
}

/// How far the memory is, in bytes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ram {
    /// All of it.
    pub total: u64,
    /// Still to go.
    pub remaining: u64,
    /// Gone over the wire.
    pub transferred: u64,
    /// Pages that were all zero.
    #[serde(default, rename = "duplicate")]
    pub zero_pages: u64,
    /// Pages sent whole.
    #[serde(default, rename = "normal")]
    pub normal_pages: u64,
    /// Pages that the guest dirties a second.
    #[serde(default, rename = "dirty-pages-rate")]
    pub dirty_rate: u64,
    /// Passes over the memory.
    #[serde(default, rename = "dirty-sync-count")]
    pub passes: u64,
    /// The size of a page.
    #[serde(default)]
    pub page_size: u64,
    /// Megabits a second.
    #[serde(default)]
    pub mbps: f64,
    /// Pages that the target asked for in postcopy.
    #[serde(default)]
    pub postcopy_requests: u64,
}

impl Machine {
    /// How far the migration is, out or in.
    pub async fn migration_progress(&self) -> Result<Progress, QmpError> {
        self.qmp().call("query-migrate", NoArguments {}).await
    }
}
