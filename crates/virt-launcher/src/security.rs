//! Protected guests.

use crate::error::CommandError;
use crate::launcher::Launcher;

impl Launcher {
    /// SEV.
    pub async fn sev_info(&self) -> Result<serde_json::Value, CommandError> {
        missing("SEV")
    }

    /// Measurement.
    pub async fn launch_measurement(&self) -> Result<serde_json::Value, CommandError> {
        missing("SEV")
    }

    /// Secret.
    pub async fn inject_launch_secret(&self, _: &[u8]) -> Result<(), CommandError> {
        missing("SEV")
    }
}

fn missing<T>(what: &str) -> Result<T, CommandError> {
    Err(CommandError::Unsupported(format!("{what} is not part of this version yet")))
}
