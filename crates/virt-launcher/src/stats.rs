//! Measurements.

use kubevirt_launcher_rpc::cmd::{VmStatsRequest, VmStatsResponse};

use crate::error::CommandError;
use crate::launcher::Launcher;

impl Launcher {
    /// Stats.
    pub async fn stats(&self) -> Result<kubevirt_launcher_rpc::stats::DomainStats, CommandError> {
        missing("stats")
    }

    /// Dirty rate.
    pub async fn dirty_rate(&self) -> Result<i64, CommandError> {
        missing("dirty rate")
    }

    /// All.
    pub async fn vm_stats(&self, _: VmStatsRequest) -> VmStatsResponse {
        VmStatsResponse::default()
    }
}

fn missing<T>(what: &str) -> Result<T, CommandError> {
    Err(CommandError::Unsupported(format!("{what} is not part of this version yet")))
}
