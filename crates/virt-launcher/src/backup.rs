//! Backups.

use crate::error::CommandError;
use crate::launcher::Launcher;

impl Launcher {
    /// Backs up.
    pub async fn back_up(&self, _: &[u8]) -> Result<(), CommandError> {
        missing("backup")
    }

    /// Checkpoint.
    pub async fn redefine_checkpoint(&self, _: &[u8]) -> Result<bool, CommandError> {
        missing("backup")
    }
}

fn missing<T>(what: &str) -> Result<T, CommandError> {
    Err(CommandError::Unsupported(format!("{what} is not part of this version yet")))
}
